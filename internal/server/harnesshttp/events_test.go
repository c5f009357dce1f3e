package harnesshttp_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
)

// talks says n things, each in a fact of its own.
func talks(n int) acts {
	return func(ctx context.Context, h agent.Handle) agent.Ending {
		for i := range n {
			_ = h.Text(ctx, fmt.Sprintf("part %d. ", i))
			if id, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "look", Kind: "read"}); err == nil {
				_ = h.FinishTool(ctx, id, agent.ToolResult{})
			}
		}
		return done
	}
}

// A run that was started can be read as its log, whole, and the log says that it is.
func TestARunFromItsStartToItsEnd(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		run := r.run("in-1", "hi")
		synctest.Wait()
		p := r.all(run)
		want := []harness.Type{
			harness.RunStarted, harness.MessageCompleted, harness.MessageStarted, harness.MessageDelta, harness.MessageCompleted,
			harness.RunCompleted, harness.Checkpointed,
		}
		if got := slices.Compact(p.kinds()); !slices.Equal(got, want) || !p.ended {
			t.Errorf("got %v, ended %v, want %v", got, p.ended, want)
		}
		for i, e := range p.events {
			if e.Sequence != uint64(i+1) || e.Version != harness.Version || e.RunID != run {
				t.Errorf("record %d: %+v", i+1, e)
			}
		}
		if start := p.events[0]; start.CausationID != "in-1" {
			t.Errorf("the start was caused by %q, want the input", start.CausationID)
		}
		if last := r.read(run, p.next, ""); len(last.events) > 0 || !last.ended || last.next != p.next {
			t.Errorf("behind the end: %s", last.body)
		}
	})
}

// From every cursor, with whatever credit, the same records follow, and the same cursor
// gives the same bytes.
func TestBatchesFromEveryCursor(t *testing.T) {
	bubble(t, rigOptions{agent: talks(20)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		whole := r.all(run)
		random := rand.New(rand.NewPCG(1, 2))
		cursors := []string{""}
		for len(cursors) < len(whole.lines) {
			cursors = append(cursors, r.read(run, cursors[len(cursors)-1], "credit=1").next)
		}
		for from, cursor := range cursors {
			got := whole.lines[:from:from]
			for next := cursor; ; {
				credit := 1 + random.IntN(40)
				query := fmt.Sprintf("credit=%d", credit)
				p := r.read(run, next, query)
				if again := r.read(run, next, query); again.body != p.body {
					t.Fatalf("the same cursor gave\n%s\nand\n%s", p.body, again.body)
				}
				if len(p.lines) > credit || len(p.lines) == 0 {
					t.Fatalf("credit %d gave %d records", credit, len(p.lines))
				}
				got, next = append(got, p.lines...), p.next
				if p.ended {
					break
				}
			}
			if !slices.Equal(got, whole.lines) {
				t.Fatalf("from %d:\n%s\nwant\n%s", from, strings.Join(got, "\n"), strings.Join(whole.lines, "\n"))
			}
		}
	})
}

// An empty batch keeps the position, also that of the start.
func TestAnEmptyBatchKeepsThePosition(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits), host: hostOptions(1)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		here := r.all(run)
		if p := r.read(run, here.next, ""); p.next != here.next || p.ended {
			t.Errorf("at the end: %s", p.body)
		}
		queued := r.run("in-2", "wait") // there is but one place
		first := r.read(queued, "", "")
		if len(first.events) > 0 || first.ended || first.next == "" {
			t.Fatalf("a run that waits: %s", first.body)
		}
		if again := r.read(queued, first.next, ""); again.body != first.body {
			t.Errorf("at the start: %s, then %s", first.body, again.body)
		}
	})
}

func TestCreditOfABatch(t *testing.T) {
	bubble(t, rigOptions{agent: talks(400)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		for query, want := range map[string]int{"": 256, "credit=1000": 1000, "credit=1": 1} {
			if p := r.read(run, "", query); len(p.events) != want || p.ended {
				t.Errorf("%q: %d records, ended %v; want %d", query, len(p.events), p.ended, want)
			}
		}
		for _, query := range []string{"credit=0", "credit=1001", "credit=-1", "credit=x", "credit=", "credit=1.0", "wait=61", "wait=-1", "wait=x"} {
			r.wantProblem(r.get("/runs/"+run+"/events?"+query), 400, "invalid_field")
		}
		for _, query := range []string{"credit=1&credit=2", "cursor=&cursor=", "credit=%zz"} {
			r.wantProblem(r.get("/runs/"+run+"/events?"+query), 400, "bad_request")
		}
	})
}

// A batch is bounded by bytes as well, and holds one record at least.
func TestBytesOfABatch(t *testing.T) {
	big := strings.Repeat("x", 400_000)
	agent := func(ctx context.Context, h agent.Handle) agent.Ending {
		for range 24 {
			id, err := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: "big", Kind: "read", Args: []byte(`{"a":"` + big + `"}`)})
			if err != nil {
				return done
			}
			_ = h.FinishTool(ctx, id, agent.ToolResult{})
		}
		return done
	}
	bubble(t, rigOptions{agent: acts(agent)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		whole := r.all(run)
		batches := 0
		for p := (page{}); !p.ended; batches++ {
			p = r.read(run, p.next, "credit=1000")
			if len(p.events) == 0 || len(p.body) > 6<<20 {
				t.Fatalf("a batch of %d records and %d bytes", len(p.events), len(p.body))
			}
		}
		if total := len(strings.Join(whole.lines, "")); total > 8<<20 && batches < 2 {
			t.Errorf("%d bytes came in %d batches", total, batches)
		}
	})
}

// A cursor that was altered, that is of another run or store, or that lies ahead is refused
// in every place, and nothing is delivered for it.
func TestForeignCursors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, other := begin(t, rigOptions{}), begin(t, rigOptions{})
		run, second := r.run("in", "hi"), r.run("in-2", "hi")
		foreign := other.run("in", "hi")
		synctest.Wait()
		good := r.read(run, "", "credit=3").next
		cursor, err := harness.ParseToken(good)
		if err != nil {
			t.Fatal(err)
		}
		altered := func(edit func(*harness.Cursor)) string { c := cursor; edit(&c); return c.Token() }
		elsewhere := other.read(foreign, "", "credit=3").next
		ofOther, err := harness.ParseToken(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		identity := r.journal.Identity()
		ahead := harness.NewSigner(identity.Key, identity.Epoch).Cursor(run, 1000).Token()
		for name, tt := range map[string]struct {
			token, code string
			status      int
		}{
			"garbage":          {"garbage!", "cursor_malformed", 400},
			"not canonical":    {good + "=", "cursor_malformed", 400},
			"other JSON":       {base64.RawURLEncoding.EncodeToString([]byte(`{}`)), "cursor_malformed", 400},
			"another sequence": {altered(func(c *harness.Cursor) { c.Sequence++ }), "cursor_checkpoint", 409},
			"sequence zero":    {altered(func(c *harness.Cursor) { c.Sequence = 0 }), "cursor_checkpoint", 409},
			"another token":    {altered(func(c *harness.Cursor) { c.Checkpoint = strings.Repeat("0", 64) }), "cursor_checkpoint", 409},
			"no token":         {altered(func(c *harness.Cursor) { c.Checkpoint = "" }), "cursor_checkpoint", 409},
			"upper case":       {altered(func(c *harness.Cursor) { c.Checkpoint = strings.ToUpper(c.Checkpoint) }), "cursor_checkpoint", 409},
			"another version":  {altered(func(c *harness.Cursor) { c.Version = "fak.harness.run/v2" }), "cursor_version", 409},
			"renamed run":      {altered(func(c *harness.Cursor) { c.RunID = second }), "cursor_run", 409},
			"another run":      {r.read(second, "", "credit=3").next, "cursor_run", 409},
			"another store":    {elsewhere, "cursor_run", 409},
			"its token":        {altered(func(c *harness.Cursor) { c.Checkpoint = ofOther.Checkpoint }), "cursor_checkpoint", 409},
			"ahead":            {ahead, "cursor_ahead", 409},
			"huge":             {strings.Repeat("A", 5000), "cursor_malformed", 400},
		} {
			address := "/runs/" + run
			if name == "renamed run" {
				address = "/runs/" + run
			}
			r.wantProblem(r.get(address+"/events?wait=5&cursor="+url.QueryEscape(tt.token)), tt.status, tt.code)
			r.wantProblem(r.get(address+"/stream?credit=100&cursor="+url.QueryEscape(tt.token)), tt.status, tt.code)
			request := r.request("GET", address+"/stream?credit=100", "")
			request.Header.Set("Last-Event-ID", tt.token)
			got := r.wantProblem(r.send(request), tt.status, tt.code)
			if strings.Contains(got.body, run+`","sequence`) {
				t.Errorf("%s: something was delivered: %s", name, got)
			}
		}
		for i := range good { // whatever character is another one
			letter := byte('A')
			if good[i] == letter {
				letter = 'B'
			}
			token := good[:i] + string(letter) + good[i+1:]
			if got := r.get("/runs/" + run + "/events?cursor=" + token); got.status/100 != 4 {
				t.Fatalf("with another character at %d: %s", i, got)
			}
		}
	})
}

// Cursors hold over a restart of the host.
func TestCursorsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, rigOptions{agent: talks(5)})
		run := r.run("in", "go")
		synctest.Wait()
		whole, first := r.all(run), r.read(run, "", "credit=4")
		r.close()
		r = begin(t, rigOptions{before: r})
		rest := r.read(run, first.next, "credit=1000")
		if got := append(first.lines, rest.lines...); !slices.Equal(got, whole.lines) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(whole.lines, "\n"))
		}
	})
}

// A request that waits ends with the first record, with its time, with the end of the run
// and with the drain of the host.
func TestLongPoll(t *testing.T) {
	release := make(chan struct{})
	agent := func(ctx context.Context, h agent.Handle) agent.Ending {
		select {
		case <-release:
			_ = h.Text(ctx, "now")
		case <-ctx.Done():
		}
		return done
	}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		r := begin(t, rigOptions{agent: acts(agent)})
		run := r.run("in", "go")
		synctest.Wait()
		here := r.all(run).next

		began := time.Now()
		if p := r.read(run, here, "wait=7"); len(p.events) > 0 || p.next != here || time.Since(began) != 7*time.Second {
			t.Errorf("after %v: %s", time.Since(began), p.body)
		}
		waiting := make(chan page, 1)
		go func() { waiting <- r.read(run, here, "wait=60&credit=1") }()
		pass(20 * time.Second)
		if open := r.streams.Counters().Open; open != 1 {
			t.Errorf("%d places are taken by one that waits", open)
		}
		close(release)
		if p := <-waiting; len(p.events) != 1 || p.ended {
			t.Errorf("at the first record: %s", p.body)
		}
		synctest.Wait()
		if p := r.all(run); !p.ended {
			t.Errorf("the log has not ended: %s", p.body)
		}
		began = time.Now()
		if p := r.read(run, r.all(run).next, "wait=60"); !p.ended || time.Since(began) > time.Second {
			t.Errorf("behind the end, after %v: %s", time.Since(began), p.body)
		}
	})
}

// The end of a run ends the wait, also that for one which never starts.
func TestLongPollOfARunThatEnds(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits), host: hostOptions(1)}, func(t *testing.T, r *rig) {
		run, queued := r.run("in", "go"), r.run("in-2", "go")
		synctest.Wait()
		for _, id := range []string{queued, run} {
			here := r.all(id).next
			waiting := make(chan page, 1)
			go func() { waiting <- r.read(id, here, "wait=60") }()
			pass(time.Second)
			r.want(r.tell(id, "stop", cancel), 202)
			if p := <-waiting; len(p.events) == 0 {
				t.Errorf("got %s", p.body)
			}
			pass(time.Second)
			if p := r.all(id); !p.ended || !slices.Equal(p.kinds()[len(p.kinds())-2:], []harness.Type{harness.RunCanceled, harness.Checkpointed}) {
				t.Errorf("got %v, ended %v", p.kinds(), p.ended)
			}
		}
	})
}

// A client that leaves, a drain and a token that is revoked leave nobody waiting.
func TestLongPollThatIsCutShort(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits), heartbeat: 5 * time.Second}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		here := r.all(run).next
		request := r.request("GET", "/runs/"+run+"/events?wait=60&cursor="+here, "")
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := r.http.Do(request.WithContext(ctx)); left <- err }()
		pass(time.Second)
		leave()
		if err := <-left; err == nil {
			t.Error("who left got an answer")
		}
		synctest.Wait()
		if open := r.streams.Counters().Open; open != 0 {
			t.Errorf("%d wait for somebody who left", open)
		}

		guest := r.as("guest", access.Observe)
		answered := make(chan reply, 1)
		go func() { answered <- guest.get("/runs/" + run + "/events?wait=30&cursor=" + here) }()
		pass(time.Second)
		if _, err := r.tokens.Revoke(guest.tokenID, time.Now()); err != nil {
			t.Fatal(err)
		}
		revoked := time.Now()
		r.wantProblem(<-answered, 401, "unauthenticated")
		if held := time.Since(revoked); held > 10*time.Second {
			t.Errorf("a token that had ended was held for %v, which is more than two heartbeats", held)
		}

		waiting := make(chan page, 1)
		go func() { waiting <- r.read(run, here, "wait=60") }()
		pass(time.Second)
		began := time.Now()
		r.close()
		if p := <-waiting; p.next != here || len(p.events) > 0 || time.Since(began) > 2*time.Second {
			t.Errorf("at the drain, after %v: %s", time.Since(began), p.body)
		}
	})
}
