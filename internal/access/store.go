package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

var (
	// ErrDamaged says that the tokens file cannot be trusted: unreadable form,
	// unknown fields, or open to others.
	ErrDamaged = errors.New("tokens file is damaged")
	// ErrNotFound says that there is no such token.
	ErrNotFound = errors.New("no such token")
	// ErrExists says that an unrevoked token has that name already.
	ErrExists = errors.New("a token of this name exists")
)

const (
	tokenPrefix    = "mht_"
	tokensFileName = "tokens.json"
	firstFileName  = "token"
	lockFileName   = "tokens.lock"
)

// StoreOptions are the optional parts of a Store.
type StoreOptions struct {
	// Random is where secrets and ids come from. Nil: crypto/rand.
	Random io.Reader
}

// A Store is the access tokens of one home.
type Store struct {
	home   string
	random io.Reader
	latest atomic.Pointer[snapshot]
}

// A snapshot is the tokens file as it was read, and what it looked like from
// outside then.
type snapshot struct {
	info    os.FileInfo // nil: there was no file
	records []record
}

// Open reads the tokens of a home, which must exist.
func Open(home string, o StoreOptions) (*Store, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	s := &Store{home: home, random: o.Random}
	if _, err := s.current(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) path() string { return filepath.Join(s.home, tokensFileName) }

// EnsureFirst makes an administrator's token if the home has no tokens at all,
// and leaves its text in the file that ReadFirst reads.
func (s *Store) EnsureFirst(now time.Time) (made bool, err error) {
	err = s.change(func(records []record) ([]record, error) {
		if len(records) > 0 {
			return records, nil
		}
		r, secret, err := s.newRecord(TokenRequest{Name: "first-admin", Grant: everything()}, now)
		if err != nil {
			return nil, err
		}
		// The text goes to disk before the hash: a crash between the two leaves no
		// tokens, and the next start begins again. The other way round it would
		// leave a token that nobody knows.
		if err := replaceFile(s.home, firstFileName, []byte(secret.Reveal()+"\n")); err != nil {
			return nil, err
		}
		made = true
		return append(records, r), nil
	})
	if err != nil {
		return false, fmt.Errorf("make the first token: %w", err)
	}
	return made, nil
}

// ReadFirst returns the text of the token that EnsureFirst left in a home.
func ReadFirst(home string) (Secret, error) {
	data, _, err := readOwnerOnly(filepath.Join(home, firstFileName))
	if err != nil {
		return Secret{}, fmt.Errorf("read the first token: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if !wellFormed(text, tokenPrefix) {
		return Secret{}, fmt.Errorf("%s holds no token: %w", filepath.Join(home, firstFileName), ErrDamaged)
	}
	return Secret{text: text}, nil
}

// Authenticate returns who the token stands for. The error is ErrUnauthenticated
// unless the tokens file could not be read.
func (s *Store) Authenticate(token string, now time.Time) (Principal, error) {
	if !wellFormed(token, tokenPrefix) {
		return Principal{}, fmt.Errorf("not a token: %w", ErrUnauthenticated)
	}
	snap, err := s.current()
	if err != nil {
		return Principal{}, err
	}
	found, ok := find(snap.records, hashOf(token))
	if !ok {
		return Principal{}, fmt.Errorf("unknown token: %w", ErrUnauthenticated)
	}
	if err := found.Usable(now); err != nil {
		return Principal{}, err
	}
	return found.principal(), nil
}

// Check returns nil while the token behind a principal is valid, so that what
// lasts longer than a request can end with it. The owner needs no token.
func (s *Store) Check(p Principal, now time.Time) error {
	if p.ID() == ownerID {
		return nil
	}
	_, err := s.usable(p.ID(), now)
	return err
}

// usable returns the token with that id if it is valid. The error is
// ErrUnauthenticated unless the tokens file could not be read.
func (s *Store) usable(id string, now time.Time) (Token, error) {
	token, err := s.Lookup(id)
	if errors.Is(err, ErrNotFound) {
		return Token{}, fmt.Errorf("token %s is gone: %w", id, ErrUnauthenticated)
	}
	if err != nil {
		return Token{}, err
	}
	return token, token.Usable(now)
}

// Lookup returns the token with that id, revoked ones too: an audit resolves the
// actor of an old fact by it.
func (s *Store) Lookup(id string) (Token, error) {
	snap, err := s.current()
	if err != nil {
		return Token{}, err
	}
	for _, r := range snap.records {
		if r.ID == id {
			return r.Token, nil
		}
	}
	return Token{}, fmt.Errorf("token %.128q: %w", id, ErrNotFound)
}

// List returns every token, oldest first, revoked ones too.
func (s *Store) List() ([]Token, error) {
	snap, err := s.current()
	if err != nil {
		return nil, err
	}
	return tokensOf(snap.records), nil
}

// A TokenRequest describes a token to be made.
type TokenRequest struct {
	Name    string
	Grant   Grant
	Expires time.Time // zero: never
}

// Create makes a token. The secret is not kept and cannot be had again.
func (s *Store) Create(request TokenRequest, now time.Time) (Token, Secret, error) {
	r, secret, err := s.newRecord(request, now)
	if err != nil {
		return Token{}, Secret{}, err
	}
	err = s.change(func(records []record) ([]record, error) {
		if named(records, request.Name) >= 0 {
			return nil, fmt.Errorf("%q: %w", request.Name, ErrExists)
		}
		if len(records) >= maxTokens {
			return nil, fmt.Errorf("the home has %d tokens, no more are allowed: %w", len(records), ErrInvalid)
		}
		return append(records, r), nil
	})
	if err != nil {
		return Token{}, Secret{}, fmt.Errorf("create a token: %w", err)
	}
	return r.Token, secret, nil
}

// Revoke ends a token, given its id or the name of an unrevoked one. Revoking a
// revoked token by its id changes nothing.
func (s *Store) Revoke(idOrName string, now time.Time) (Token, error) {
	var revoked Token
	err := s.change(func(records []record) ([]record, error) {
		i := named(records, idOrName)
		if i < 0 {
			return nil, ErrNotFound
		}
		if records[i].Revoked.IsZero() {
			records[i].Revoked = now.UTC()
		}
		revoked = records[i].Token
		return records, nil
	})
	if err != nil {
		return Token{}, fmt.Errorf("revoke a token: %w", err)
	}
	return revoked, nil
}

func (s *Store) newRecord(request TokenRequest, now time.Time) (record, Secret, error) {
	if !request.Expires.IsZero() && !request.Expires.After(now) {
		return record{}, Secret{}, fmt.Errorf("token would expire before it is made: %w", ErrInvalid)
	}
	id, err := newTokenID(now, s.random)
	if err != nil {
		return record{}, Secret{}, err
	}
	if _, err := NewPrincipal(id, request.Name, request.Grant); err != nil {
		return record{}, Secret{}, err
	}
	secret, err := newSecret(s.random, tokenPrefix)
	if err != nil {
		return record{}, Secret{}, err
	}
	token := Token{ID: id, Name: request.Name, Grant: request.Grant.clone(), Created: now.UTC()}
	if !request.Expires.IsZero() {
		token.Expires = request.Expires.UTC()
	}
	return record{Token: token, hash: hashOf(secret.Reveal())}, secret, nil
}

// current returns the tokens as they are on disk, reading them only when the
// file is another one than before. Each change makes a new file, and a longer
// one (a token more, or a time of revocation), so none can go unseen even where
// the clock of the file system is coarse and file numbers are used again.
//
// Two readers at once may leave the older snapshot behind; its info then differs
// from the file's, and the next call reads again.
func (s *Store) current() (*snapshot, error) {
	info, err := os.Stat(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return &snapshot{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the tokens file: %w", err)
	}
	if latest := s.latest.Load(); latest != nil && sameFile(latest.info, info) {
		return latest, nil
	}
	fresh, err := s.read()
	if err != nil {
		return nil, err
	}
	s.latest.Store(fresh)
	return fresh, nil
}

func sameFile(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
}

func (s *Store) read() (*snapshot, error) {
	data, info, err := readOwnerOnly(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return &snapshot{}, nil
	}
	if err != nil {
		return nil, err
	}
	records, err := decodeRecords(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, s.path(), err)
	}
	return &snapshot{info: info, records: records}, nil
}

// change replaces the tokens file by what edit makes of its records. Only one
// process and goroutine does so at a time.
func (s *Store) change(edit func([]record) ([]record, error)) error {
	unlock, err := lockFile(filepath.Join(s.home, lockFileName))
	if err != nil {
		return err
	}
	defer unlock()
	snap, err := s.read()
	if err != nil {
		return err
	}
	records, err := edit(slices.Clone(snap.records))
	if err != nil {
		return err
	}
	data, err := encodeRecords(records)
	if err != nil {
		return err
	}
	return replaceFile(s.home, tokensFileName, data)
}
