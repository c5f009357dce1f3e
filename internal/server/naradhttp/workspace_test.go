package naradhttp_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// notices reads a stream of a workspace in the background.
type notices struct {
	mu     sync.Mutex
	frames []frame
	beats  int
	close  func()
}

func (r *rig) notices(path string, id string) *notices {
	r.t.Helper()
	s := r.open(path, lastID(id))
	if s == nil {
		r.t.Fatal("no stream")
	}
	n, done := &notices{}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			f, err := s.Next()
			if err != nil {
				return
			}
			rec, err := narad.Decode(f.Data)
			if err != nil {
				r.t.Errorf("%v\n%s", err, f.Data)
				return
			}
			n.mu.Lock()
			if _, beat := rec.(*narad.ServerHeartbeat); beat {
				n.beats++
			} else {
				n.frames = append(n.frames, frame{f.ID, string(f.Data), rec})
			}
			n.mu.Unlock()
		}
	}()
	n.close = func() { s.Close(); <-done }
	r.t.Cleanup(n.close)
	return n
}

// told is what came, as TYPE SESSION; a workspace.revision tells the session of its cursor.
func (n *notices) told() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for _, f := range n.frames {
		rev := f.rec.(*narad.Revision)
		id := rev.SessionID
		if id == "" {
			id, _ = rev.Cursor.Extra[0].Value.IsString()
		}
		list = append(list, string(rev.Kind)+" "+id)
	}
	return list
}

func (n *notices) texts() (list []string) {
	for _, f := range n.all() {
		list = append(list, f.data)
	}
	return list
}

func (n *notices) all() []frame {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.frames)
}

// R8, R28: a workspace tells of its sessions as such, and that others have changed.
func TestWorkspaceStream(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		add := func(id, workspace string) {
			r.want(r.post("/sessions", `{"sessionId":"`+id+`","workspaceId":"`+workspace+`"}`), 201)
			pass(time.Second)
		}
		add("before", "w")
		n := r.notices("/workspaces/w/stream", "")
		pass(time.Minute)
		if got := n.told(); len(got) > 0 || n.beats < 3 {
			t.Fatalf("on connect: got %v and %d heartbeats", got, n.beats)
		}
		add("a", "w")
		add("b", "other")
		add("c", "w")
		r.say("a", "hi")
		pass(time.Second)
		r.say("b", "hi")
		pass(time.Second)
		r.want(r.post("/sessions/c/archive", ""), 200)
		pass(time.Second)
		r.want(r.post("/sessions/c/restore", ""), 200)
		pass(time.Second)
		got := n.told()
		if !slices.Contains(got, "session.updated a") || !slices.Contains(got, "workspace.revision a") {
			t.Errorf("a run changes how a session stands, and tells: got %v", got)
		}
		lifecycle := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return strings.HasSuffix(s, " a") })
		want := []string{"session.created c", "session.archived c", "session.updated c"}
		if got[0] != "session.created a" || !slices.Equal(lifecycle, want) {
			t.Errorf("got %v\nwant session.created a, and of others %v", got, want)
		}
		r.checkNotices(n.all())

		// From each event on, and from each revision, the rest comes again, byte by byte
		// where it was not coalesced otherwise.
		whole := n.all()
		for i, f := range whole {
			revision := strconv.FormatInt(f.rec.(*narad.Revision).Revision, 10)
			for _, from := range [][2]string{{"", f.id}, {"?afterRevision=" + revision, ""}, {"?afterRevision=999999", f.id}} {
				again := r.notices("/workspaces/w/stream"+from[0], from[1])
				pass(time.Second)
				rest := again.all()
				known := map[string]string{}
				for _, f := range whole[i+1:] {
					known[f.id] = f.data
				}
				for _, f := range rest {
					if known[f.id] != f.data {
						t.Errorf("after %s: got %s, which was not told before", f.id, f.data)
					}
				}
				if i+1 < len(whole) && (len(rest) == 0 || rest[len(rest)-1].id != whole[len(whole)-1].id) {
					t.Errorf("after %v: got %v, want it to end with %s", from, again.told(), whole[len(whole)-1].id)
				}
				again.close()
			}
		}
		// The public client's state says what is there.
		state := session.New(session.Options{Remember: session.RememberAll})
		for _, f := range whole {
			if got := state.Admit(f.rec); got.Kind != session.Applied {
				t.Errorf("%v %s: %s", got.Kind, got.Code, f.data)
			}
		}
		if got := mustJSON(state.Snapshot().Workspace.Sessions); got != `[{"sessionId":"a","archived":false},{"sessionId":"c","archived":false}]` {
			t.Errorf("got %s", got)
		}
	})
}

// checkNotices holds a stream of a workspace to R28.
func (r *rig) checkNotices(list []frame) {
	r.t.Helper()
	last := int64(0)
	for _, f := range list {
		rev := f.rec.(*narad.Revision)
		if rev.Revision <= last || f.id != rev.EventID || rev.Cursor == nil || rev.WorkspaceID != "w" || strings.ContainsAny(rev.SessionID, "~") {
			r.t.Errorf("after revision %d: %q %s", last, f.id, f.data)
		}
		last = rev.Revision
	}
}

// R27, R28: where a stream of a workspace begins. What a deleted session has told leads on.
func TestWhereAWorkspaceStreamBegins(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		n := r.notices("/workspaces/default/stream", "")
		r.create("gone")
		pass(time.Second)
		id := n.all()[0].id
		r.create("stays")
		r.want(r.post("/sessions", `{"sessionId":"b","workspaceId":"other"}`), 201)
		pass(time.Second)
		if got := r.send(r.request("DELETE", "/sessions/gone", "")); got.status != 204 {
			t.Fatal(got)
		}
		again := r.notices("/workspaces/default/stream", id)
		pass(time.Second)
		if got := again.told(); !slices.Equal(got, []string{"session.created stays"}) {
			t.Errorf("after an event of a deleted session: got %v", got)
		}
		head := r.heads().Offset
		for _, bad := range []string{
			"session.created:gone:" + strconv.FormatUint(head+1, 10), "workspace.revision:other:2",
			"workspace.revision:default:2", "session.created:b:3", "session.revision:stays:1", "1.abcdefgh", "nonsense",
		} {
			request := r.request("GET", "/workspaces/default/stream", "")
			lastID(bad)(request)
			r.wantProblem(r.send(request), 409, "cursor_unknown")
		}
		r.wantProblem(r.get("/workspaces/default/stream?afterRevision="+strconv.FormatUint(head+1, 10)), 409, "cursor_ahead")
		r.wantProblem(r.get("/workspaces/default/stream?afterRevision=-1"), 400, "cursor_invalid")
		got := r.send(r.request("HEAD", "/workspaces/default/stream", ""))
		if got.header.Get("Narad-Workspace-Revision") != strconv.FormatUint(head, 10) || got.header.Get("Narad-Epoch") != r.host.Epoch() ||
			got.header.Get("Narad-Profiles") != "narad.workspace/v1" {
			t.Errorf("HEAD: got %v", got.header)
		}
	})
}

// Under load a workspace is told of a tenth of a second at once, and of the last of it. The
// streams of others, of the host and of side sessions are not its business, and a stream
// that has nothing to tell beats.
func TestWorkspaceUnderLoad(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"busy","workspaceId":"w"}`), 201)
		r.want(r.post("/sessions", `{"sessionId":"quiet","workspaceId":"calm"}`), 201)
		n, calm := r.notices("/workspaces/w/stream", ""), r.notices("/workspaces/calm/stream", "")
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
		defer stop()
		var writers sync.WaitGroup
		writers.Go(func() { r.newWriter("busy", 10).writeUntil(ctx, 20, 10*time.Millisecond) })
		for _, id := range []string{journal.HostStream, "busy~trace"} {
			w := &writer{r: r, id: id, now: time.Now}
			w.term, _ = r.journal.AcquireTerm(t.Context(), id)
			writers.Go(func() { w.writeUntil(ctx, 1, 10*time.Millisecond) })
		}
		writers.Wait()
		pass(time.Second)
		if got := calm.told(); len(got) > 0 || calm.beats < 1 {
			t.Errorf("the calm workspace: got %v and %d heartbeats", got, calm.beats)
		}
		list := n.all()
		if len(list) < 75 || len(list) > 200 {
			t.Errorf("15 seconds of 2,000 facts a second brought %d frames, want about ten a second", len(list))
		}
		r.checkNotices(list)
		last := list[len(list)-1].rec.(*narad.Revision)
		if last.Cursor.Sequence != int64(r.head("busy")) {
			t.Errorf("the last event covers %d, want the head %d", last.Cursor.Sequence, r.head("busy"))
		}
	})
}

// A client that comes back after long is told the least, however much has happened.
func TestAWorkspaceAfterLong(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		for i := range 20 {
			r.want(r.post("/sessions", fmt.Sprintf(`{"sessionId":"s%d","workspaceId":"w"}`, i)), 201)
			w := r.newWriter(fmt.Sprintf("s%d", i), 100)
			for range 5 {
				w.write(200)
			}
		}
		n := r.notices("/workspaces/w/stream?afterRevision=0", "")
		pass(time.Minute)
		got := n.told()
		if created := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, "session.created") }); len(created) != 20 {
			t.Errorf("got %v", created)
		}
		if len(got) > 40 {
			t.Errorf("20,000 facts brought %d events: %v", len(got), got)
		}
		r.checkNotices(n.all())
	})
}

// A stream that reads for long, and finds nothing for its workspace, beats all the while
// and comes to the end.
func TestAWorkspaceFarBehind(t *testing.T) {
	o := rigOptions{slow: 50 * time.Millisecond, binding: naradhttp.Options{Heartbeat: time.Second}}
	bubble(t, o, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"busy","workspaceId":"other"}`), 201)
		w := r.newWriter("busy", 600)
		for range 100 {
			w.write(100)
		}
		r.want(r.post("/sessions", `{"sessionId":"last","workspaceId":"w"}`), 201)
		n := r.notices("/workspaces/w/stream?afterRevision=1", "")
		pass(time.Minute)
		if got := n.told(); !slices.Equal(got, []string{"session.created last"}) {
			t.Errorf("got %v", got)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.beats < 55 {
			t.Errorf("got %d heartbeats in a minute, of which the reading took a part", n.beats)
		}
	})
}
