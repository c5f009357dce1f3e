package naradhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// Hydrate records and watch events never move a follower's place, whatever breaks, and
// with its graphs it ends where a client is that was never away.
func TestAFollowerWithEverything(t *testing.T) {
	bubble(t, rigOptions{agent: works}, func(t *testing.T, r *rig) {
		r.create("s1")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.decideAll(ctx)
		r.say("s1", "one")
		second, end := r.say("s1", "two"), int64(1<<40)
		f := r.client().Follow("s1", client.FollowOptions{Messages: true, Watch: true, Graph: true})
		hydrate, revisions, loops := 0, 0, 0
		for ended := false; !ended; loops++ {
			begun := time.Now()
			for u, err := range f.Updates(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				before := f.Last()
				switch rec := u.Record.(type) {
				case *narad.MessagesSnapshot, *narad.GraphSnapshot, *narad.GraphDelta:
					hydrate++
					if u.Result.Kind != session.Applied {
						t.Errorf("%v %s: %s", u.Result.Kind, u.Result.Code, u.Raw)
					}
				case *narad.Revision:
					revisions++
					if u.Result.Kind != session.Applied || rec.Revision > before {
						t.Errorf("at %d: %v %s: %s", before, u.Result.Kind, u.Result.Code, u.Raw)
					}
				case narad.Authority:
					if _, is := rec.(*narad.RunFinished); is && rec.Envelope().RunID == second {
						end = before
					}
					if rec.Envelope().SessionSequence != before {
						t.Errorf("at %d: got fact %d", before, rec.Envelope().SessionSequence)
					}
				}
				told, is := u.Record.(*narad.Revision)
				ended = is && told.Kind == narad.TypeSessionRevision && told.Revision >= end
				if ended || time.Since(begun) > 700*time.Millisecond {
					break // and come back
				}
			}
		}
		if loops < 4 || hydrate < 60 || revisions < 60 {
			t.Errorf("%d connections brought %d hydrate records and %d watch events", loops, hydrate, revisions)
		}
		state, _ := f.Detach()
		sameState(t, "the follower", state, r.whole("s1"))
	})
}

// §9.7: a follower that lost a delta asks for a snapshot, and goes on.
func TestAFollowerThatLostADelta(t *testing.T) {
	bubble(t, rigOptions{agent: works}, func(t *testing.T, r *rig) {
		r.create("s1")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.decideAll(ctx)
		drop := &dropper{RoundTripper: r.http.Transport, every: 9}
		c, err := client.New("http://localhost:7717", client.Options{Token: client.Token(r.token), HTTPClient: &http.Client{Transport: drop}})
		if err != nil {
			t.Fatal(err)
		}
		root := r.say("s1", "one")
		f := c.Follow("s1", client.FollowOptions{Graph: true})
		gaps := 0
		for u, err := range f.Updates(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if u.Result.Code == "graph_revision_gap" {
				gaps++
			}
			g := f.Graphs()["run:"+root]
			if len(g.Nodes) > 0 && string(g.Nodes[0].Field("status")) == `"finished"` {
				break // the node of the root
			}
		}
		got := f.Graphs()["run:"+root]
		want := r.whole("s1").Graphs()["run:"+root]
		if gaps < 2 || mustJSON(got) != mustJSON(want) {
			t.Errorf("after %d gaps: got %s\nwant %s", gaps, mustJSON(got), mustJSON(want))
		}
	})
}

// dropper loses some frames of graph deltas on their way.
type dropper struct {
	http.RoundTripper
	every int
	seen  int
}

func (d *dropper) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := d.RoundTripper.RoundTrip(q)
	if err != nil || !strings.HasSuffix(q.URL.Path, "/stream") {
		return a, err
	}
	out, in := io.Pipe()
	body := a.Body
	go func() {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if bytes.HasPrefix(line, []byte(`data: {"type":"graph.delta"`)) {
				if d.seen++; d.seen%d.every == 0 {
					line = nil
				}
			}
			if _, failed := in.Write(line); failed != nil || err != nil {
				in.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
				body.Close()
				return
			}
		}
	}()
	a.Body = out
	return a, nil
}

// A workspace is followed over breaks, each event once, and none is missed but for what a
// later one makes needless. Another store is another place.
func TestAWorkspaceIsFollowed(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		w := r.client().FollowWorkspace("default", client.WorkspaceOptions{})
		if _, known := w.Position(); known {
			t.Error("a position before the host was reached")
		}
		var created []string
		last := int64(0)
		for n := 0; n < 12; {
			for u, err := range w.Updates(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if u.Phase == client.Live && u.Event == nil {
					for range 2 { // one comes at once, one after the loop was left
						r.create("s" + string(rune('a'+n)))
						n++
						pass(time.Second)
					}
				}
				if u.Event == nil {
					continue
				}
				if u.Event.Revision <= last {
					t.Errorf("after revision %d: %+v", last, u.Event)
				}
				last = u.Event.Revision
				if u.Event.Kind == narad.TypeSessionCreated {
					created = append(created, u.Event.SessionID)
					break
				}
			}
		}
		at, known := w.Position()
		if !known || at.Revision != last || at.Epoch != r.host.Epoch() || at.WorkspaceID != "default" {
			t.Errorf("got %+v, %v, want revision %d", at, known, last)
		}
		resumed := r.client().FollowWorkspace("default", client.WorkspaceOptions{After: &at})
		for u, err := range resumed.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if u.Event != nil {
				created = append(created, u.Event.SessionID)
			}
			if len(created) == 12 {
				break
			}
		}
		if !slices.IsSorted(created) || len(slices.Compact(created)) != 12 {
			t.Errorf("got %v, want each of twelve once", created)
		}
		at.Epoch = "another"
		for _, err := range r.client().FollowWorkspace("default", client.WorkspaceOptions{After: &at}).Updates(t.Context()) {
			var e *client.Error
			if err != nil && (!errors.As(err, &e) || e.Code != client.CodeEpochChanged || e.Action != client.Resync) {
				t.Errorf("another store: got %v", err)
			}
		}
	})
}
