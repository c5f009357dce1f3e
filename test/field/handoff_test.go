package field_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// Case 9. Owed: from whatever place a client comes, and however busy the session is, it
// gets each fact once and in order, over the seam between what lies behind and what
// happens now, however long that takes.
func TestCase9BetweenReplayAndLive(t *testing.T) {
	t.Parallel()
	const (
		connects = 200
		readers  = 20 // at the same time
		beyond   = 100
		seam     = 50 * time.Millisecond
	)
	b, store := newBusyBed(t, seam)
	b.post("/sessions", object{"sessionId": "s1"})
	w := newWriter(t, store, "s1")
	w.append(1000)

	ctx, cancel := context.WithCancel(t.Context())
	var writing, reading sync.WaitGroup
	writing.Go(func() { w.appendUntil(ctx, 8, 4*time.Millisecond) }) // 2,000 facts/s
	began, first := time.Now(), w.at()
	for reader := range readers {
		seed := uint64(reader)
		random := rand.New(rand.NewPCG(9, seed))
		reading.Go(func() {
			for connect := range connects / readers {
				behind := int64(100)
				if connect%2 == 1 {
					behind = random.Int64N(600)
				}
				head := w.at()
				how := []string{"by sequence", "by event id", "by a client"}[random.IntN(3)]
				if err := readOver(b, how, head-behind, head+beyond); err != nil {
					t.Errorf("reader %d, connect %d, %s, %d behind the head of %d: %v", reader, connect, how, behind, head, err)
				}
			}
		})
	}
	reading.Wait()
	t.Logf("%d connects under %.0f facts/s", connects, float64(w.at()-first)/time.Since(began).Seconds())
	cancel()
	writing.Wait()
}

// readOver reads from a place to another, and says what is not the next fact.
func readOver(b *bed, how string, after, to int64) error {
	want := after + 1
	check := func(record narad.Record) error {
		event, ok := record.(narad.Authority)
		if !ok {
			return nil // a heartbeat
		}
		if got := event.Envelope(); got.SessionSequence != want || got.EventID != eventID(want) {
			return fmt.Errorf("got fact %d %s, want %d", got.SessionSequence, got.EventID, want)
		}
		want++
		return nil
	}
	if how == "by a client" {
		ctx, cancel := context.WithTimeout(b.t.Context(), patience)
		defer cancel()
		c, err := client.New(b.url, client.Options{Token: client.Token(b.token), HTTPClient: b.http})
		if err != nil {
			return err
		}
		defer c.Close()
		for u, err := range c.Follow("s1", client.FollowOptions{After: after, NoState: true}).Updates(ctx) {
			if err == nil && u.Record != nil {
				err = check(u.Record)
			}
			if err != nil || want > to {
				return err
			}
		}
		return fmt.Errorf("following ended at %d", want)
	}
	query, id := fmt.Sprintf("?afterSessionSequence=%d", after), ""
	if how == "by event id" {
		query, id = "?afterSessionSequence=0", eventID(after)
	}
	s, a := b.openStream(b.url, "s1", query, id)
	if s == nil {
		return fmt.Errorf("the stream is refused: %v", a)
	}
	defer s.close()
	late := time.AfterFunc(patience, s.close)
	defer late.Stop()
	for want <= to {
		f := s.next()
		if s.err != nil {
			return fmt.Errorf("the stream ended at %d: %w", want, s.err)
		}
		if err := check(f.record); err != nil {
			return err
		}
	}
	return nil
}

// newBusyBed serves a store on disk from this process, so that a test can write to it as
// fast as it likes, and so that a seam can be put between reading what is there and
// waiting for what comes.
func newBusyBed(t *testing.T, seam time.Duration) (*bed, journal.Journal) {
	t.Helper()
	b := &bed{t: t, home: t.TempDir(), http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	closes := func(what string, c io.Closer) {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close the %s: %v", what, err)
			}
		})
	}
	tokens, err := access.Open(t.TempDir(), access.StoreOptions{})
	b.must(err)
	_, secret, err := tokens.Create(access.TokenRequest{Name: "t", Grant: access.Grant{Roles: []access.Role{access.Admin}}}, time.Now())
	b.must(err)
	b.token = secret.Reveal()
	store, err := pebble.Open(b.home, pebble.Options{})
	b.must(err)
	closes("store", store)
	f := feed.New(slowStore{store, seam}, feed.Options{})
	t.Cleanup(f.Close)
	h := host.New(store, f, noAgents{}, host.Options{})
	closes("host", h)
	b.must(h.Start(t.Context()))

	streams := server.NewStreams(tokens, server.StreamOptions{})
	mux := http.NewServeMux()
	naradhttp.New(h, streams, naradhttp.Options{}).Register(mux)
	edge, err := server.New(server.Routes(mux), tokens, access.NewCookies(tokens, access.CookieOptions{}), streams, server.Options{})
	b.must(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	b.url = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- edge.Serve(listener) }()
	t.Cleanup(func() {
		if err := edge.Shutdown(context.Background()); err != nil {
			t.Errorf("shut the server down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b, store
}

// slowStore lets time pass between what a reader has read and what it does next.
type slowStore struct {
	journal.Journal
	seam time.Duration
}

func (s slowStore) Read(ctx context.Context, o journal.Order, p journal.Page) (journal.Chunk, error) {
	chunk, err := s.Journal.Read(ctx, o, p)
	time.Sleep(s.seam)
	return chunk, err
}

// noAgents names an agent that is never run.
type noAgents struct{}

func (noAgents) Kind(string) (agent.Kind, bool)                           { return noAgents{}, true }
func (noAgents) Default() string                                          { return "none" }
func (noAgents) Open(context.Context, agent.Session) (agent.Agent, error) { return nil, io.EOF }
func (noAgents) Resumes() bool                                            { return false }
func (noAgents) Steers() bool                                             { return false }

// writer appends facts to a session in the place of its owner.
type writer struct {
	t     *testing.T
	store journal.Journal
	id    string
	term  journal.Term

	mu   sync.Mutex
	head uint64 // what is durable
}

func newWriter(t *testing.T, store journal.Journal, id string) *writer {
	t.Helper()
	term, err := store.AcquireTerm(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	head, err := store.Head(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return &writer{t: t, store: store, id: id, term: term, head: head.Sequence}
}

// at is the head of the session.
func (w *writer) at() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.head)
}

// eventID is that of a fact of the writer.
func eventID(sequence int64) string { return fmt.Sprintf("%d.testtest", sequence) }

// append appends one batch, and reports whether it did.
func (w *writer) append(facts int) bool {
	now := time.Now()
	batch := journal.Batch{Session: w.id, ExpectHead: uint64(w.at()), ExpectTerm: w.term, Time: now}
	for i := range facts {
		c := &narad.Custom{Kind: narad.TypeSessionCustom, Name: "test.tick", Value: narad.Raw(fmt.Sprintf(`{"fill":"%0100d"}`, i))}
		c.SessionID, c.SessionSequence = w.id, w.at()+int64(i)+1
		c.EventID, c.Timestamp = eventID(c.SessionSequence), narad.Timestamp(now)
		data, err := narad.Encode(c)
		if err != nil {
			w.t.Errorf("encode: %v", err)
			return false
		}
		batch.Facts = append(batch.Facts, journal.Fact{EventID: c.EventID, Bytes: data})
	}
	if _, err := w.store.Append(context.Background(), batch); err != nil {
		w.t.Errorf("append: %v", err)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head += uint64(facts)
	return true
}

// appendUntil appends batches at a pace.
func (w *writer) appendUntil(ctx context.Context, facts int, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if !w.append(facts) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
