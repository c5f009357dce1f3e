// Package servertest is an in-memory network for tests of what speaks HTTP.
//
// It promises connections that work inside a testing/synctest bubble, deadlines
// included: they are net.Pipe, so a write waits until the other side reads, and
// nothing is buffered between them. A Listener may be used by many goroutines.
// It is not a model of TCP: there is no buffer, no reset, no half close.
package servertest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// A Listener accepts the connections that Dial makes.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener returns an open listener.
func NewListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial; connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a made-up address.
func (l *Listener) Addr() net.Addr { return address{} }

// Dial returns the client's end of a new connection.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns an HTTP client all of whose requests go to the listener,
// whatever their address. Close its idle connections before the bubble ends.
func (l *Listener) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) },
	}}
}

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }
