package field_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// proxy stands between clients and a host, and does to their connections what networks
// do. It keeps its address over restarts of the host.
type proxy struct {
	url      string
	listener net.Listener

	mu      sync.Mutex
	changed *sync.Cond
	host    string // HOST:PORT
	mode    proxyMode
	open    map[*net.TCPConn]bool
	closed  bool
	dropped int // answers
	done    sync.WaitGroup
}

type proxyMode uint8

const (
	passing  proxyMode = iota // bytes go both ways
	dropping                  // requests arrive; at an answer's first byte the client is cut off
	stalling                  // requests arrive; nothing is read from the host
)

// newProxy starts a proxy in front of a bed's host.
func newProxy(b *bed) *proxy {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	p := &proxy{url: "http://" + listener.Addr().String(), listener: listener, open: make(map[*net.TCPConn]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.aim(b.url)
	b.proxies = append(b.proxies, p)
	p.done.Go(p.accept)
	b.t.Cleanup(p.close)
	return p
}

// aim has new connections go to the host at an address.
func (p *proxy) aim(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.host = strings.TrimPrefix(url, "http://")
}

func (p *proxy) aimedAt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.host
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.relay(conn.(*net.TCPConn)) })
	}
}

// relay serves one connection.
func (p *proxy) relay(down *net.TCPConn) {
	defer p.forget(down)
	if !p.remember(down) {
		return
	}
	dialled, err := net.Dial("tcp", p.aimedAt())
	if err != nil {
		return
	}
	up := dialled.(*net.TCPConn)
	defer p.forget(up)
	if !p.remember(up) {
		return
	}
	var requests sync.WaitGroup
	requests.Go(func() {
		_, _ = io.Copy(up, down)
		_ = up.CloseWrite()
	})
	if !p.answers(down, up) {
		reset(down)
		reset(up)
	}
	_ = down.Close()
	requests.Wait()
}

// answers copies what the host says, as the mode has it at each piece, and reports
// whether it came to the host's end.
func (p *proxy) answers(down, up *net.TCPConn) bool {
	buffer := make([]byte, 32<<10)
	for p.mayRead() {
		n, err := up.Read(buffer)
		if n > 0 && p.drop() {
			return false
		}
		if _, failed := down.Write(buffer[:n]); err != nil || failed != nil {
			return errors.Is(err, io.EOF) && failed == nil
		}
	}
	return false
}

// mayRead waits while the proxy stalls; false means that it is closed.
func (p *proxy) mayRead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == stalling && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}

func (p *proxy) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode != dropping {
		return false
	}
	p.dropped++
	return true
}

// set changes what happens to each piece of an answer from now on.
func (p *proxy) set(mode proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = mode
	p.changed.Broadcast()
}

// drops is how many answers were dropped so far.
func (p *proxy) drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// cut ends all connections with a reset, and returns how many there were on both sides.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		reset(conn)
	}
	return len(p.open)
}

func (p *proxy) remember(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.closed
}

func (p *proxy) forget(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	for conn := range p.open {
		reset(conn)
	}
	p.mu.Unlock()
	p.done.Wait()
}

// reset ends a connection with RST in place of FIN.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// TestBed shows that the bed itself does what its users rely on.
func TestBed(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps:\n  - say: \"You said: {{prompt}}\"\n")
	b.session("s1")
	run := b.say("s1", "hello")
	b.awaitEnd("s1", run)
	before := b.facts("s1")
	p := newProxy(b)

	p.set(dropping)
	if a, err := b.do(p.url, "GET", "/sessions/s1", nil); err == nil || p.drops() != 1 {
		t.Errorf("through a proxy that drops: got %v, %d dropped; want an error and 1", a, p.drops())
	}
	p.set(passing)
	s, a := b.openStream(p.url, "s1", "?afterSessionSequence=0", "")
	if s == nil {
		t.Fatalf("stream through the proxy: got %v", a)
	}
	if got := s.factsTo(int64(len(before))); len(got) != len(before) {
		t.Errorf("the stream has %d facts, history %d", len(got), len(before))
	}
	if p.cut() == 0 {
		t.Error("nothing was cut")
	}
	if f := s.next(); s.err == nil || errors.Is(s.err, io.EOF) {
		t.Errorf("after the cut: got %q, %v; want a reset", f.raw, s.err)
	}

	b.restart()
	after := b.facts("s1")
	if len(after) != len(before) || reduce(t, after).Messages()[1].Content != "You said: hello" {
		t.Errorf("over a restart: got\n%s\nwant\n%s", after, before)
	}
	if a, err := b.do(p.url, "GET", "/sessions/s1", nil); err != nil || a.status != 200 {
		t.Errorf("through the proxy after a restart: got %v, %v", a, err)
	}
}
