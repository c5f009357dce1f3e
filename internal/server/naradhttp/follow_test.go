package naradhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// The whole way with the real client: create, message, follow, approve, finish.
func TestAClientGoesTheWholeWay(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		c := r.client()
		if caps, err := c.Capabilities(t.Context()); err != nil || caps.Epoch == "" {
			t.Fatalf("capabilities: %+v, %v", caps, err)
		}
		s, created, err := c.CreateSession(t.Context(), client.NewSession{Title: "A title"})
		if err != nil || !created || s.Title != "A title" || s.Agent != "test" || s.State != "idle" {
			t.Fatalf("create: %+v, %v, %v", s, created, err)
		}
		sent, err := c.Message(t.Context(), client.Message{SessionID: s.SessionID, Content: "write it"})
		if err != nil || sent.Status != client.Accepted || sent.RunID == "" {
			t.Fatalf("message: %+v, %v", sent, err)
		}
		f := c.Follow(s.SessionID, client.FollowOptions{})
		for u, err := range f.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if asked, ok := u.Record.(*narad.InterruptRequested); ok {
				decided, err := c.ResolveInterrupt(t.Context(), client.ResolveInterrupt{InterruptID: asked.InterruptID, Decision: "approve"})
				if err != nil || decided.Status != client.Accepted || decided.Decision != "approve" {
					t.Fatalf("resolve: %+v, %v", decided, err)
				}
			}
			if end, ok := u.Record.(*narad.RunFinished); ok && end.RunID == sent.RunID {
				break
			}
		}
		messages := f.Messages()
		if len(messages) != 2 || messages[0].Content != "write it" || messages[1].Content != "It was: approve" {
			t.Errorf("transcript: %+v", messages)
		}
		snapshot, err := c.Messages(t.Context(), s.SessionID)
		if err != nil || len(snapshot.Messages) != 2 || snapshot.CoversThroughSessionSequence != f.Last() {
			t.Errorf("messages: %+v, %v", snapshot, err)
		}
	})
}

// Whatever cursor a client comes with, it ends in the same state.
func TestTwoClientsReduceToTheSameState(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "first")
		synctest.Wait()
		early := r.follow("s1", nil, func(f *client.Follower) bool { return f.Last() == int64(r.head("s1")) })
		r.resolve(r.opened()[0], "approve")
		synctest.Wait()
		r.say("s1", "second")
		synctest.Wait()
		r.resolve(r.opened()[0], "deny")
		synctest.Wait()
		end := func(f *client.Follower) bool { return f.Last() == int64(r.head("s1")) }
		late := r.follow("s1", nil, end)
		resumed := r.follow("s1", early, end)
		if a, b := late.SnapshotJSON(), resumed.SnapshotJSON(); !bytes.Equal(a, b) {
			t.Errorf("from the beginning:\n%s\nresumed:\n%s", a, b)
		}
		whole := session.New(session.Options{})
		for _, fact := range r.facts("s1") {
			whole.Apply(fact)
		}
		if a, b := late.SnapshotJSON(), whole.SnapshotJSON(); !bytes.Equal(a, b) {
			t.Errorf("a client:\n%s\nthe journal:\n%s", a, b)
		}
	})
}

// follow lets the real client follow until a condition holds, and returns its state.
func (r *rig) follow(id string, from *session.State, until func(*client.Follower) bool) *session.State {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	f := r.client().Follow(id, client.FollowOptions{State: from})
	for _, err := range f.Updates(ctx) {
		if err != nil {
			r.t.Fatalf("follow %s: %v", id, err)
		}
		if until(f) {
			break
		}
	}
	state, ok := f.Detach()
	if !ok {
		r.t.Fatalf("follow %s: no state", id)
	}
	return state
}

func (r *rig) head(id string) uint64 {
	r.t.Helper()
	head, err := r.journal.Head(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return head.Sequence
}

// Field case 9: 200 connects at random cursors under a writer without pause, with a
// delay forced between reading the past and following. No hole, no repeat.
func TestNoHoleBetweenBackfillAndLive(t *testing.T) {
	const connects, beyond = 200, 100
	bubble(t, rigOptions{slow: 50 * time.Millisecond}, func(t *testing.T, r *rig) {
		r.create("s1")
		w := r.newWriter("s1", 100)
		w.write(1000)
		ctx, cancel := context.WithCancel(t.Context())
		var writing, reading sync.WaitGroup
		writing.Go(func() { w.writeUntil(ctx, 8, 4*time.Millisecond) }) // 2,000 facts/s
		const seed = 9
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, seed))
		for range connects {
			behind, pause := uint64(random.IntN(600)), time.Duration(random.IntN(200))*time.Millisecond
			reading.Go(func() {
				<-time.After(pause)
				after := r.head("s1") - behind
				r.readConsecutive("s1", after, after+behind+beyond)
			})
		}
		reading.Wait()
		cancel()
		writing.Wait()
	})
}

// readConsecutive reads a stream from a cursor to a sequence, and reports whatever is
// not the next fact.
func (r *rig) readConsecutive(id string, after, to uint64) {
	s := r.open("/sessions/"+id+"/stream?afterSessionSequence="+strconv.FormatUint(after, 10), nil)
	if s == nil {
		return
	}
	defer s.Close()
	for want := after + 1; want <= to; want++ {
		frame, err := s.Next()
		if err != nil {
			r.t.Errorf("after %d: at %d: %v", after, want, err)
			return
		}
		at, ok := journal.SequenceOfEventID(frame.ID)
		if !ok || at != want {
			r.t.Errorf("after %d: got the frame %q, want that of %d", after, frame.ID, want)
			return
		}
	}
}

// stream is an event stream in the hands of a test.
type stream struct {
	*sse.Reader
	io.Closer
	header http.Header
}

// open opens a stream; nil, and an error of the test, if it is refused.
func (r *rig) open(path string, edit func(*http.Request)) *stream {
	request := r.request("GET", path, "")
	if edit != nil {
		edit(request)
	}
	response, err := r.http.Do(request)
	if err != nil {
		r.t.Errorf("%s: %v", path, err)
		return nil
	}
	if media := response.Header.Get("Content-Type"); response.StatusCode != 200 || media != "text/event-stream" {
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		r.t.Errorf("%s: got %d %s %s, want a stream", path, response.StatusCode, media, body)
		return nil
	}
	return &stream{sse.NewReader(response.Body, sse.Options{}), response.Body, response.Header}
}

// writer appends facts to a session as its owner would, at a test's pace.
type writer struct {
	r    *rig
	id   string
	term journal.Term
	head uint64
	fill string
	now  func() time.Time
	// place is where the facts stand in a run tree or workflow.
	place journal.Fact
}

// newWriter becomes the owner of a session; each fact is at least that large.
func (r *rig) newWriter(id string, size int) *writer {
	r.t.Helper()
	term, err := r.journal.AcquireTerm(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return &writer{r: r, id: id, term: term, head: r.head(id), fill: string(bytes.Repeat([]byte{'x'}, size)), now: time.Now}
}

// write appends one batch.
func (w *writer) write(facts int) {
	batch := journal.Batch{Session: w.id, ExpectHead: w.head, ExpectTerm: w.term, Time: w.now()}
	for range facts {
		w.head++
		c := &narad.Custom{Kind: narad.TypeSessionCustom, Name: "test.tick", Value: narad.Raw(`{"fill":"` + w.fill + `"}`)}
		c.SessionID, c.SessionSequence = w.id, int64(w.head)
		c.EventID, c.Timestamp = fmt.Sprintf("%d.testtest", w.head), narad.Timestamp(w.now())
		data, err := narad.Encode(c)
		if err != nil {
			w.r.t.Errorf("encode: %v", err)
			return
		}
		fact := w.place
		fact.EventID, fact.Bytes = c.EventID, data
		batch.Facts = append(batch.Facts, fact)
	}
	if _, err := w.r.journal.Append(context.Background(), batch); err != nil {
		w.r.t.Errorf("append: %v", err)
	}
}

// writeUntil appends batches at a pace.
func (w *writer) writeUntil(ctx context.Context, facts int, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.write(facts)
		case <-ctx.Done():
			return
		}
	}
}
