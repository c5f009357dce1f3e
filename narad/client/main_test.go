package client_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sessionID = "session-backfill"

// bubble runs a test against a host on test time.
func bubble(t *testing.T, o clienttest.Options, test func(t *testing.T, h *clienttest.Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, clienttest.New(t, o)) })
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) { <-time.After(d) }

// dial returns a client of the host. Its waits are not random.
func dial(t *testing.T, h *clienttest.Host, o client.Options) *client.Client {
	t.Helper()
	o.HTTPClient = h.HTTP()
	if o.Backoff == nil {
		o.Backoff = client.Exponential(50*time.Millisecond, 2*time.Second, func() float64 { return 0 })
	}
	c, err := client.New(h.URL(), o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

// started puts the bare facts from..to into a session.
func started(h *clienttest.Host, from, to int64) {
	for n := from; n <= to; n++ {
		h.Put(sessionID, clienttest.Started(sessionID, n))
	}
}

// streams answers every stream with a text and then keeps it open.
func streams(h *clienttest.Host, parts ...string) {
	h.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/stream") {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range parts {
				_, _ = w.Write([]byte(part))
				_ = http.NewResponseController(w).Flush()
			}
			if len(parts) == 0 {
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
	})
}

// seen is what a loop over Updates showed.
type seen struct {
	sequences []int64
	raws      []string
	phases    []client.Phase
	broken    []*client.Error
	err       *client.Error
}

// follow loops over Updates until stop says so after a turn, or an error comes, or,
// as an error, when a day has passed: a test that waits for what never comes fails.
func follow(ctx context.Context, f *client.Follower, stop func(client.Update, *seen) bool) *seen {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour)
	defer cancel()
	s := &seen{}
	for u, err := range f.Updates(ctx) {
		if err != nil {
			s.err = asError(err)
			return s
		}
		if u.Record == nil {
			s.phases = append(s.phases, u.Phase)
		}
		if u.Err != nil {
			s.broken = append(s.broken, u.Err)
		}
		if fact, ok := u.Record.(narad.Authority); ok {
			s.sequences = append(s.sequences, fact.Envelope().SessionSequence)
			s.raws = append(s.raws, string(u.Raw))
		}
		if stop(u, s) {
			return s
		}
	}
	return s
}

func asError(err error) *client.Error {
	var e *client.Error
	if !errors.As(err, &e) {
		return &client.Error{Code: "not a client.Error", Detail: err.Error()}
	}
	return e
}

// at stops when a sequence has been shown, live when that phase has.
func at(sequence int64) func(client.Update, *seen) bool {
	return func(_ client.Update, s *seen) bool {
		return len(s.sequences) > 0 && s.sequences[len(s.sequences)-1] >= sequence
	}
}

func live(u client.Update, _ *seen) bool { return u.Record == nil && u.Phase == client.Live }

func never(client.Update, *seen) bool { return false }

// wantRun fails unless the sequences are exactly from..to.
func wantRun(t *testing.T, got []int64, from, to int64) {
	t.Helper()
	want := from
	for _, n := range got {
		if n != want {
			t.Fatalf("sequences %v: got %d where %d was due", got, n, want)
		}
		want++
	}
	if want != to+1 {
		t.Fatalf("sequences %v: want %d to %d", got, from, to)
	}
}

// wantCode fails unless err is an Error of that code and action.
func wantCode(t *testing.T, err error, code client.Code, action client.Action) *client.Error {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	e := asError(err)
	if e.Code != code || e.Action != action {
		t.Fatalf("got %v (%s, %s), want code %s and %s", err, e.Code, e.Action, code, action)
	}
	return e
}
