package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/sse"
)

// Options are the optional parts of a Client.
type Options struct {
	// Token is sent with every request. Empty: none is sent.
	Token Token
	// HTTPClient sends the requests; it is copied, its Timeout (which would end
	// streams) and its redirect policy are not used. Nil: one of the Client's own.
	// With a unix: base URL it must be nil.
	HTTPClient *http.Client
	// UserAgent names the program. Empty: "mahati-client".
	UserAgent string
	// Timeout bounds each attempt of a call, and the wait for a stream to open.
	// Zero: 30 seconds.
	Timeout time.Duration
	// Attempts is how often a call is sent at most, when the error says retry. Zero:
	// 4. Following a session has a bound of its own.
	Attempts int
	// Backoff is the wait after the attempt of this number, from 1. A longer wait
	// that a host asks for wins. Nil: Exponential from 50 ms to 15 s.
	Backoff func(attempt int) time.Duration
	// NewID makes the ids of commands and sessions that the caller did not name. Nil:
	// 128 random bits. A command whose id it leaves empty is sent without one, and
	// not again when its answer is lost.
	NewID func() string
	// MaxFrame bounds the data of one stream frame in bytes. Zero: 1 MiB.
	MaxFrame int
}

const (
	defaultTimeout  = 30 * time.Second
	defaultAttempts = 4
	firstBackoff    = 50 * time.Millisecond
	lastBackoff     = 15 * time.Second
)

// A Client speaks to one Narad host. It must be made by [New].
type Client struct {
	base      string
	http      *http.Client
	own       *http.Transport // nil if the caller brought one
	userAgent string
	timeout   time.Duration
	attempts  int
	backoff   func(int) time.Duration
	newID     func() string
	maxFrame  int
	// authorize and scrub keep the token out of reach of everything that prints a
	// value.
	authorize func(http.Header)
	scrub     func(string) string
}

// New returns a client of the host at a base URL: http://HOST:PORT, https://HOST or
// unix:///PATH/OF/SOCKET. A URL with a path names the binding itself, otherwise it
// is found under [Prefix]. New does not connect.
func New(baseURL string, o Options) (*Client, error) {
	at, err := parseEndpoint(baseURL)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if at.socket != "" && o.HTTPClient != nil {
		return nil, errors.New("make a client: a unix: base URL brings its own HTTP client")
	}
	if strings.ContainsFunc(string(o.Token), control) {
		return nil, errors.New("make a client: the token has control characters")
	}
	c := &Client{
		base: at.base, userAgent: o.UserAgent, timeout: o.Timeout, attempts: o.Attempts,
		backoff: o.Backoff, newID: o.NewID, maxFrame: o.MaxFrame,
		authorize: authorizer(o.Token), scrub: scrubber(o.Token),
	}
	c.fillIn()
	c.connectBy(at, o.HTTPClient)
	return c, nil
}

// fillIn puts the default in the place of each option that was left out.
func (c *Client) fillIn() {
	if c.userAgent == "" {
		c.userAgent = "mahati-client"
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.attempts <= 0 {
		c.attempts = defaultAttempts
	}
	if c.backoff == nil {
		c.backoff = Exponential(firstBackoff, lastBackoff, mathrand.Float64)
	}
	if c.newID == nil {
		c.newID = rand.Text
	}
	if c.maxFrame <= 0 {
		c.maxFrame = sse.MaxFrame
	}
}

func (c *Client) connectBy(at endpoint, given *http.Client) {
	c.http = &http.Client{}
	switch {
	case given != nil:
		*c.http = *given
		c.http.Timeout = 0
	case at.socket != "":
		c.own = dialer(at.socket)
	default:
		c.own = newTransport()
	}
	if c.own != nil {
		c.http.Transport = c.own
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// Close lets go of idle connections. It does not end what is under way, and the
// client may still be used.
func (c *Client) Close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// String names the host.
func (c *Client) String() string { return "narad client of " + c.base }

func authorizer(t Token) func(http.Header) {
	value := "Bearer " + string(t)
	return func(h http.Header) {
		if t != "" {
			h.Set("Authorization", value)
		}
	}
}

// hiding returns the client, which takes further secrets out of what the host says.
func (c *Client) hiding(secrets ...string) *Client {
	hides := *c
	hides.scrub = func(text string) string {
		for _, secret := range secrets {
			text = scrubber(Token(secret))(text)
		}
		return c.scrub(text)
	}
	return &hides
}

// scrubber takes the token out of a text, should a host ever repeat it.
func scrubber(t Token) func(string) string {
	secret := string(t)
	return func(text string) string {
		if secret == "" {
			return text
		}
		return strings.ReplaceAll(text, secret, hiddenToken)
	}
}
