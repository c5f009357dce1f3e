package access

import (
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	cookiePrefix           = "mhc_"
	maxCookies             = 4096
	maxCookiesPerPrincipal = 32
	defaultCookieLifetime  = 12 * time.Hour
)

// CookieOptions are the optional parts of a Cookies.
type CookieOptions struct {
	// Random is where cookies come from. Nil: crypto/rand.
	Random io.Reader
	// Lifetime of a cookie. Zero: 12 hours.
	Lifetime time.Duration
}

// Cookies is the sign-ins of browsers. They live in memory: after a restart
// browsers sign in again. A cookie is worth nothing without the token behind it.
type Cookies struct {
	store    *Store
	random   io.Reader
	lifetime time.Duration

	mu     sync.Mutex
	byHash map[hash]signIn
}

type signIn struct {
	principal string
	expires   time.Time
}

// NewCookies returns an empty set of sign-ins by the tokens of a store.
func NewCookies(store *Store, o CookieOptions) *Cookies {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Lifetime <= 0 {
		o.Lifetime = defaultCookieLifetime
	}
	return &Cookies{store: store, random: o.Random, lifetime: o.Lifetime, byHash: make(map[hash]signIn)}
}

// Issue makes a cookie for whoever holds the token, valid until the time that it
// returns, which is not after the token's own end.
func (c *Cookies) Issue(token string, now time.Time) (Secret, time.Time, error) {
	principal, err := c.store.Authenticate(token, now)
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	behind, err := c.store.usable(principal.ID(), now)
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	secret, err := newSecret(c.random, cookiePrefix)
	if err != nil {
		return Secret{}, time.Time{}, err
	}
	expires := now.Add(c.lifetime)
	if !behind.Expires.IsZero() && behind.Expires.Before(expires) {
		expires = behind.Expires
	}
	c.add(hashOf(secret.Reveal()), signIn{principal.ID(), expires}, now)
	return secret, expires, nil
}

// Authenticate returns who the cookie stands for, if the token behind it is
// still valid. Its errors are those of Store.Authenticate.
func (c *Cookies) Authenticate(cookie string, now time.Time) (Principal, error) {
	if !wellFormed(cookie, cookiePrefix) {
		return Principal{}, fmt.Errorf("not a cookie of this host: %w", ErrUnauthenticated)
	}
	// The map is keyed by a hash of 256 random bits: what its search takes longer
	// for cannot be steered towards a cookie.
	c.mu.Lock()
	found, ok := c.byHash[hashOf(cookie)]
	c.mu.Unlock()
	if !ok || !now.Before(found.expires) {
		return Principal{}, fmt.Errorf("signed out: %w", ErrUnauthenticated)
	}
	token, err := c.store.usable(found.principal, now)
	if err != nil {
		return Principal{}, err
	}
	return token.principal(), nil
}

// End signs a browser out. An unknown cookie is no error.
func (c *Cookies) End(cookie string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byHash, hashOf(cookie))
}

// add is the one way into the map, and keeps its bounds: what has expired goes,
// then the oldest of the same principal or of all.
func (c *Cookies) add(key hash, s signIn, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for k, other := range c.byHash {
		switch {
		case !now.Before(other.expires):
			delete(c.byHash, k)
		case other.principal == s.principal:
			own++
		}
	}
	if own >= maxCookiesPerPrincipal {
		c.dropOldestLocked(func(other signIn) bool { return other.principal == s.principal })
	}
	if len(c.byHash) >= maxCookies {
		c.dropOldestLocked(func(signIn) bool { return true })
	}
	c.byHash[key] = s
}

func (c *Cookies) dropOldestLocked(match func(signIn) bool) {
	var oldest hash
	var found bool
	for k, s := range c.byHash {
		if match(s) && (!found || s.expires.Before(c.byHash[oldest].expires)) {
			oldest, found = k, true
		}
	}
	delete(c.byHash, oldest)
}
