package naradhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/watch"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// works thinks, tells in pieces, asks, delegates and calls tools, for a while.
func works(ctx context.Context, h agent.Handle) agent.Ending {
	for n := range 12 {
		_ = h.Thought(ctx, fmt.Sprintf("thought %d ", n))
		for range 3 {
			_ = h.Text(ctx, fmt.Sprintf("word %d ", n))
			<-time.After(60 * time.Millisecond)
		}
		id, err := h.StartTool(ctx, agent.Tool{AgentID: "call", Name: "write", Kind: "edit", Args: narad.Raw(`{}`)})
		if err != nil {
			return agent.Ending{Outcome: agent.Cancelled}
		}
		if n%4 == 1 {
			_, _ = h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "May I?", Options: []agent.Option{{ID: "y", Action: "approve"}}})
			_ = h.EndMessage(ctx)
		}
		if sub, err := h.StartRun(ctx, agent.Nested{Name: "helper", ParentToolCallID: id}); err == nil {
			_ = sub.Text(ctx, "below")
			_ = sub.End(ctx, agent.Ending{})
		}
		_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`null`)})
	}
	return agent.Ending{StopReason: "completed"}
}

// decideAll approves whatever is asked until the context ends.
func (r *rig) decideAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(150 * time.Millisecond):
			for _, id := range r.opened() {
				r.resolve(id, "approve")
			}
		}
	}
}

// frame is one frame as it came, and what it says.
type frame struct {
	id   string
	data string
	rec  narad.Record
}

// frames reads a stream until a frame is the last wanted. Heartbeats are left out.
func (r *rig) frames(path string, edit func(*http.Request), last func(frame) bool) []frame {
	r.t.Helper()
	s := r.open(path, edit)
	if s == nil {
		return nil
	}
	defer s.Close()
	var list []frame
	for {
		f, err := s.Next()
		if err != nil {
			r.t.Errorf("%s, after %d frames: %v", path, len(list), err)
			return list
		}
		rec, err := narad.Decode(f.Data)
		if err != nil {
			r.t.Errorf("%s: %v\n%s", path, err, f.Data)
			return list
		}
		if _, beat := rec.(*narad.ServerHeartbeat); beat {
			continue
		}
		list = append(list, frame{f.ID, string(f.Data), rec})
		if last(list[len(list)-1]) {
			return list
		}
	}
}

// reaches is true of the session's watch event at a sequence: the last thing that the
// facts up to there bring.
func reaches(head uint64) func(frame) bool {
	return func(f frame) bool {
		r, ok := f.rec.(*narad.Revision)
		return ok && r.Kind == narad.TypeSessionRevision && r.Revision >= int64(head)
	}
}

// whole is what a client has that applied everything from the first fact on.
func (r *rig) whole(id string) *session.State {
	r.t.Helper()
	view := graph.NewView(id, graph.ViewOptions{})
	state := session.New(session.Options{SessionID: id, Remember: session.RememberAll, Graphs: view})
	derived := graph.NewGraphs(id)
	for _, fact := range r.facts(id) {
		state.Apply(fact)
		if rec, err := derived.Apply(fact); err != nil {
			r.t.Fatal(err)
		} else if rec != nil {
			state.Apply(rec)
		}
	}
	return state
}

// shown is a state without what only says how it was reached.
func shown(s *session.State) session.Snapshot {
	snap := s.Snapshot()
	snap.Covers, snap.Revisions = 0, nil
	return snap
}

func sameState(t *testing.T, what string, got, want *session.State) {
	t.Helper()
	if a, b := mustJSON(shown(got)), mustJSON(shown(want)); a != b {
		t.Errorf("%s\ngot  %s\nwant %s", what, a, b)
	}
}

// §9.7, R28, R29: what a stream brings, record by record.
func TestHydratedStream(t *testing.T) {
	bubble(t, rigOptions{agent: works}, func(t *testing.T, r *rig) {
		r.create("s1")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.decideAll(ctx)
		root := r.say("s1", "work")
		pass(time.Minute)
		head := r.head("s1")
		list := r.frames("/sessions/s1/stream?hydrate=messages,graph&watch=1", nil, reaches(head))

		transcript := r.want(r.get("/sessions/s1/messages"), 200)
		if list[0].id != "" || list[0].data != transcript.body {
			t.Errorf("the first frame: got %q %s\nwant %s", list[0].id, list[0].data, transcript)
		}
		strict := graph.NewView("s1", graph.ViewOptions{Strict: true})
		facts, next, graphs := r.facts("s1"), 0, 0
		for _, f := range list[1:] {
			switch rec := f.rec.(type) {
			case narad.Authority:
				if f.id != facts[next].Envelope().EventID {
					t.Fatalf("fact %d: got the id %q", next+1, f.id)
				}
				strict.Apply(rec)
				next++
			case *narad.Revision:
				if f.id != rec.EventID || rec.Revision > int64(next) {
					t.Errorf("a watch event beyond fact %d, or of another id %q: %s", next, f.id, f.data)
				}
			case *narad.GraphSnapshot, *narad.GraphDelta:
				graphs++
				if got := strict.Apply(rec); f.id != "" || got.Kind != graph.Applied {
					t.Errorf("behind fact %d, id %q: %v %s\n%s", next, f.id, got.Kind, got.Code, f.data)
				}
			default:
				t.Errorf("a %T after the first frame: %s", rec, f.data)
			}
		}
		if next != len(facts) || graphs < 40 {
			t.Errorf("got %d facts and %d graph records, want %d and many", next, graphs, len(facts))
		}
		// What was sent, what GET says and what the journal gives are the same bytes.
		answer := r.want(r.get("/sessions/s1/graph?rootRunId="+root), 200)
		rebuilt := graph.New("s1", graph.RunTree(root))
		for _, fact := range facts {
			if _, err := rebuilt.Apply(fact); err != nil {
				t.Fatal(err)
			}
		}
		if want := mustEncode(rebuilt.Snapshot()); answer.body != want {
			t.Errorf("GET: got %s\nwant %s", answer, want)
		}
		if got, want := strict.Canonical(graph.RunTree(root)).String(), rebuilt.Canonical().String(); got != want {
			t.Errorf("sent: got %s\nwant %s", got, want)
		}
	})
}

// Whoever joins, and whenever, in mid-message too, ends where a client is that was there
// from the beginning; nothing waits for ever, and no graph is lost.
func TestJoinersAtAnyTime(t *testing.T) {
	const joiners = 60
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	bubble(t, rigOptions{agent: works}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.create("s2")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.decideAll(ctx)
		for _, content := range []string{"one", "two", "three"} {
			r.say("s1", content)
		}
		ended := make(chan uint64)
		var joined sync.WaitGroup
		states := make([]*session.State, joiners)
		for i := range joiners {
			at := time.Duration(random.Int64N(int64(9 * time.Second)))
			resumes := i%2 == 1
			joined.Go(func() {
				<-time.After(at)
				states[i] = r.join("s1", resumes, i%11, ended)
			})
		}
		pass(time.Minute)
		if r.count("s1", narad.TypeRunFinished) < 3*13 {
			t.Fatalf("the runs have not ended: %d of them", r.count("s1", narad.TypeRunFinished))
		}
		head := r.head("s1")
		for range joiners {
			ended <- head
		}
		joined.Wait()
		want := r.whole("s1")
		for i, got := range states {
			if got == nil {
				t.Errorf("joiner %d has no state", i)
				continue
			}
			if i%2 == 0 {
				sameState(t, fmt.Sprintf("joiner %d, from the beginning (seed %d)", i, seed), got, want)
				continue
			}
			// Who resumes has the graphs of the runs from then on.
			graphs := want.Snapshot().Graphs
			for scope, g := range got.Snapshot().Graphs {
				if a, b := mustJSON(g), mustJSON(graphs[scope]); a != b {
					t.Errorf("joiner %d (seed %d), graph %s: got %s\nwant %s", i, seed, scope, a, b)
				}
			}
			last := lastRoot(r.facts("s1"))
			if _, ok := got.Snapshot().Graphs["run:"+last]; !ok {
				t.Errorf("joiner %d (seed %d) has no graph of the last run: %v", i, seed, got.Snapshot().Graphs)
			}
		}
	})
}

// lastRoot is the root run that began last.
func lastRoot(facts []narad.Authority) (root string) {
	for _, fact := range facts {
		if started, ok := fact.(*narad.RunStarted); ok && !started.Nested() {
			root = started.RunID
		}
	}
	return root
}

// join reads a hydrated stream, from the beginning or from so many facts before the head
// of now, up to the head that it is told at the end.
func (r *rig) join(id string, resumes bool, before int, ended <-chan uint64) *session.State {
	view := graph.NewView(id, graph.ViewOptions{})
	state := session.New(session.Options{SessionID: id, Remember: session.RememberAll, Graphs: view})
	path := "/sessions/" + id + "/stream?hydrate=messages,graph&watch=1"
	if resumes {
		facts := r.facts(id)
		for _, fact := range facts[:max(len(facts)-before, 1)] {
			state.Apply(fact)
		}
		path = fmt.Sprintf("/sessions/%s/stream?hydrate=graph&watch=1&afterSessionSequence=%d", id, state.Last())
	}
	s := r.open(path, nil)
	if s == nil {
		return nil
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for {
			f, err := s.Next()
			if err != nil {
				return
			}
			switch got := state.ApplyJSON(f.Data, false); got.Kind {
			case session.Gap, session.Rejected, session.Buffered, session.Duplicate:
				r.t.Errorf("%s: %v %s\n%s", path, got.Kind, got.Code, f.Data)
			}
		}
	}()
	head := <-ended
	<-time.After(time.Second)
	s.Close()
	<-read
	if state.Last() != int64(head) {
		r.t.Errorf("%s: got to %d of %d", path, state.Last(), head)
	}
	return state
}

// R28: an id has one content at every replay, revisions rise, an event covers all that
// was left out before it, and a stream goes on behind each.
func TestWatchIsAFunctionOfTheFacts(t *testing.T) {
	bubble(t, rigOptions{agent: works}, func(t *testing.T, r *rig) {
		r.create("s1")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.decideAll(ctx)
		known := map[string]string{}
		var mu sync.Mutex
		var readers sync.WaitGroup
		r.say("s1", "work")
		for i := range 8 {
			readers.Go(func() {
				<-time.After(time.Duration(i) * 400 * time.Millisecond)
				list := r.frames("/sessions/s1/stream?watch=1&afterSessionSequence="+strconv.Itoa(i), nil, func(f frame) bool {
					rev, ok := f.rec.(*narad.Revision)
					return ok && rev.Kind == narad.TypeSessionRevision && rev.Revision >= 100
				})
				mu.Lock()
				defer mu.Unlock()
				r.checkWatch(list, int64(i), known)
			})
		}
		readers.Wait()
		pass(time.Minute)
		head := r.head("s1")
		one := r.frames("/sessions/s1/stream?watch=1", nil, reaches(head))
		r.checkWatch(one, 0, known)
		if watched := len(one) - int(head); watched > int(head)/4 {
			t.Errorf("a backlog of %d facts brought %d watch events: they are not coalesced", head, watched)
		}
		// Whatever was told comes from its fact alone, and leads on from it.
		byRevision := map[int64][]*narad.Revision{}
		for _, fact := range r.facts("s1") {
			byRevision[fact.Envelope().SessionSequence] = watch.Session(fact)
		}
		n := 0
		for id, data := range known {
			place, _ := watch.Parse(id)
			rest, ok := watch.Rest(id, byRevision[place.Revision])
			if !ok || !strings.Contains(data, `"cursor":`) {
				t.Fatalf("%s is no event of fact %d:\n%s", id, place.Revision, data)
			}
			if n++; n > 40 || place.Revision == int64(head) {
				continue
			}
			want := []string{}
			for _, event := range rest {
				want = append(want, event.EventID)
			}
			list := r.frames("/sessions/s1/stream?watch=1", lastID(id), func(f frame) bool { _, is := f.rec.(narad.Authority); return is })
			got := []string{}
			for _, f := range list[:len(list)-1] {
				got = append(got, f.id)
			}
			first := list[len(list)-1].rec.(narad.Authority).Envelope().SessionSequence
			if fmt.Sprint(got) != fmt.Sprint(want) || first != place.Revision+1 {
				t.Errorf("after %s: got %v and fact %d, want %v and fact %d", id, got, first, want, place.Revision+1)
			}
		}
		for _, id := range []string{"session.revision:s1:1x", "session.revision:s2:1", "session.revision:s1:" + strconv.Itoa(int(head)+1), "workspace.revision:default:1"} {
			request := r.request("GET", "/sessions/s1/stream?watch=1", "")
			lastID(id)(request)
			r.wantProblem(r.send(request), 409, "cursor_unknown")
		}
	})
}

func lastID(id string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set("Last-Event-ID", id) }
}

// checkWatch holds the watch events of one stream to R28, and to what other streams said.
func (r *rig) checkWatch(list []frame, after int64, known map[string]string) {
	r.t.Helper()
	last := map[string]int64{}
	head, events := after, 0
	for _, f := range list {
		rev, ok := f.rec.(*narad.Revision)
		if !ok {
			head = f.rec.(narad.Authority).Envelope().SessionSequence
			continue
		}
		events++
		key := string(rev.Kind) + rev.RunID + rev.WorkflowID + rev.NodeID
		if rev.Revision <= last[key] || rev.Revision > head || rev.Revision <= after {
			r.t.Errorf("after revision %d of %s and fact %d: %s", last[key], key, head, f.data)
		}
		last[key] = rev.Revision
		if old, seen := known[f.id]; seen && old != f.data {
			r.t.Errorf("%s: got %s\nand before %s", f.id, f.data, old)
		}
		known[f.id] = f.data
	}
	if events == 0 {
		r.t.Error("a stream without watch events")
	}
}

// R28: nothing happens because somebody connects, and nobody who did not ask is told.
func TestWatchIsNotSentOnConnect(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "hi")
		synctest.Wait()
		head := strconv.Itoa(int(r.head("s1")))
		facts := r.facts("s1")
		for _, edit := range []func(*http.Request){nil, lastID(facts[len(facts)-1].Envelope().EventID)} {
			s := r.open("/sessions/s1/stream?watch=1&hydrate=graph&afterSessionSequence="+head, edit)
			for {
				f, err := s.Next()
				if err != nil {
					t.Fatal(err)
				}
				rec, _ := narad.Decode(f.Data)
				if _, ok := rec.(*narad.GraphSnapshot); ok {
					continue
				}
				if _, beat := rec.(*narad.ServerHeartbeat); !beat {
					t.Errorf("on connect: got %s", f.Data)
				}
				break
			}
			s.Close()
		}
		for _, f := range r.frames("/sessions/s1/stream", nil, func(f frame) bool { return f.id == facts[len(facts)-1].Envelope().EventID }) {
			if _, ok := f.rec.(narad.Authority); !ok {
				t.Errorf("nobody asked for %s", f.data)
			}
		}
	})
}

func TestHydrateRefusals(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.create("s2")
		run := r.say("s1", "hi")
		synctest.Wait()
		for _, test := range []struct {
			path   string
			status int
			code   string
		}{
			{"/sessions/s1/stream?hydrate=state", 400, "bad_request"},
			{"/sessions/s1/stream?hydrate=messages,", 400, "bad_request"},
			{"/sessions/s1/stream?watch=yes", 400, "bad_request"},
			{"/sessions/s1/stream?hydrate=messages&afterSessionSequence=2", 400, "hydrate_cursor"},
			{"/sessions/s1/graph", 400, "bad_request"},
			{"/sessions/s1/graph?rootRunId=%0a", 400, "invalid_field"},
			{"/sessions/s1/graph?rootRunId=nothing", 404, "not_found"},
			{"/sessions/s2/graph?rootRunId=" + run, 404, "not_found"},
			{"/sessions/nothing/graph?rootRunId=" + run, 404, "not_found"},
			{"/sessions/~host/graph?rootRunId=" + run, 400, "invalid_field"},
			{"/sessions/s1~trace/messages", 404, "not_found"},
			{"/workspaces/~host/stream", 400, "invalid_field"},
		} {
			r.wantProblem(r.get(test.path), test.status, test.code)
		}
		// A browser comes back with the query that it began with.
		facts := r.facts("s1")
		list := r.frames("/sessions/s1/stream?hydrate=messages&afterSessionSequence=0", lastID(facts[1].Envelope().EventID),
			func(f frame) bool { return true })
		if list[0].id != facts[2].Envelope().EventID {
			t.Errorf("got %s, want fact 3", list[0].data)
		}
	})
}

// R29: what is larger than one record is not streamed, and 413 over GET.
func TestHydrateThatIsTooLarge(t *testing.T) {
	long := strings.Repeat("label", 50)
	tells := func(ctx context.Context, h agent.Handle) agent.Ending {
		for range 60 {
			_ = h.Text(ctx, strings.Repeat("x", 10_000))
			_ = h.EndMessage(ctx)
		}
		for range 2_000 {
			id, _ := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: long, Title: long, Kind: "edit", Args: narad.Raw(`{}`)})
			_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`null`)})
		}
		<-time.After(time.Hour)
		id, _ := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: "last", Kind: "edit", Args: narad.Raw(`{}`)})
		_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`null`)})
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: tells}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "tell")
		pass(10 * time.Minute)
		r.wantProblem(r.get("/sessions/s1/messages"), 413, "snapshot_too_large")
		r.wantProblem(r.get("/sessions/s1/graph?rootRunId="+run), 413, "snapshot_too_large")
		first := r.frames("/sessions/s1/stream?hydrate=messages,graph", nil, func(frame) bool { return true })
		if _, ok := first[0].rec.(narad.Authority); !ok {
			t.Errorf("got %.200s, want the first fact", first[0].data)
		}
		head := r.head("s1")
		late := make(chan []frame)
		go func() {
			late <- r.frames("/sessions/s1/stream?hydrate=graph&watch=1&afterSessionSequence="+strconv.Itoa(int(head)), nil,
				func(f frame) bool { _, ended := f.rec.(*narad.RunFinished); return ended })
		}()
		pass(2 * time.Hour)
		for _, f := range <-late {
			if f.rec.Type().Class() == narad.ClassHydrate {
				t.Errorf("a graph that was too large to begin with: %.200s", f.data)
			}
		}
	})
}

func mustEncode(rec narad.Record) string {
	data, err := narad.Encode(rec)
	if err != nil {
		panic(err)
	}
	return string(bytes.TrimSpace(data))
}
