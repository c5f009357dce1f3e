package harnesshttp_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// random is an agent that does anything, the same for each seed.
func random(seed uint64) acts {
	return func(ctx context.Context, h agent.Handle) agent.Ending {
		choose := rand.New(rand.NewPCG(seed, 7))
		return act(ctx, h, choose, 3)
	}
}

func act(ctx context.Context, h agent.Handle, choose *rand.Rand, depth int) agent.Ending {
	for range 3 + choose.IntN(8) {
		select {
		case <-time.After(time.Duration(choose.IntN(300)) * time.Millisecond):
		case <-ctx.Done():
			return agent.Ending{Outcome: agent.Cancelled}
		}
		switch n := choose.IntN(10); {
		case n < 3:
			_ = h.Text(ctx, fmt.Sprintf("words %d é😀\n", choose.IntN(1000)))
		case n < 4:
			_ = h.Thought(ctx, "because")
		case n < 5 && depth > 0:
			if id, err := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: "agent", Kind: "other"}); err == nil {
				if child, err := h.StartRun(ctx, agent.Nested{AgentID: "n", ParentToolCallID: id, Name: "helper", Prompt: "help"}); err == nil {
					_ = child.End(ctx, act(ctx, child, choose, depth-1))
				}
				_ = h.FinishTool(ctx, id, agent.ToolResult{})
			}
		case n < 7:
			if id, err := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: "look", Kind: "read", Args: narad.Raw(`{"n":1.50}`)}); err == nil {
				_, _ = h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "Look?", Options: []agent.Option{{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"}}})
				_ = h.FinishTool(ctx, id, agent.ToolResult{Response: narad.Raw(`"seen"`)})
			}
		default:
			_ = h.Text(ctx, strings.Repeat("x", choose.IntN(3000)))
		}
	}
	if choose.IntN(4) == 0 {
		return agent.Ending{Outcome: agent.Failed, Code: "broken", Message: "it broke"}
	}
	return done
}

// decides answers every approval until the run has ended, and cancels it now and then.
func (r *rig) decides(run string, choose *rand.Rand) {
	for n := 0; ; n++ {
		pass(200 * time.Millisecond)
		p := r.all(run)
		if p.ended {
			return
		}
		open := map[string]bool{}
		for _, e := range p.events {
			switch e.Type {
			case harness.ApprovalRequested:
				open[e.CorrelationID] = true
			case harness.ApprovalResolved:
				delete(open, e.CorrelationID)
			}
		}
		for id := range open {
			r.tell(run, "d:"+id, decision(id, []string{"approve", "deny"}[choose.IntN(2)]))
		}
		if choose.IntN(60) == 0 {
			r.tell(run, "stop", cancel)
		}
	}
}

func sameBytes(t *testing.T, r *rig, seed uint64) {
	choose := rand.New(rand.NewPCG(seed, 9))
	run := r.run("in", "go")
	live := r.stream(run, "subscriber=live&credit=100000")
	hungry := make(chan []string, 1)
	go func() { hungry <- r.resumes(t, run, rand.New(rand.NewPCG(seed, 11))) }()
	r.decides(run, choose)
	followed, resumed := live.rest(t), <-hungry
	read := r.all(run).lines
	derived := r.derive(t, run)
	for name, got := range map[string][]string{"followed": followed, "resumed": resumed, "read": read} {
		if !slices.Equal(got, derived) {
			t.Errorf("%s:\n%s\nderived from the facts:\n%s", name, strings.Join(got, "\n"), strings.Join(derived, "\n"))
		}
	}
	identity := r.journal.Identity()
	signer := harness.NewSigner(identity.Key, identity.Epoch)
	for from := range derived {
		credit := 1 + choose.IntN(12)
		p := r.read(run, signer.Cursor(run, uint64(from)).Token(), fmt.Sprintf("credit=%d", credit))
		want := derived[from:min(from+credit, len(derived))]
		if !slices.Equal(p.lines, want) || p.next != signer.Cursor(run, uint64(from+len(want))).Token() || p.ended != (from+len(want) == len(derived)) {
			t.Fatalf("behind %d, with credit %d: %s", from, credit, p.body)
		}
	}
}

// resumes follows a run with streams that are cut again and again, each of which takes what
// it was granted.
func (r *rig) resumes(t *testing.T, run string, choose *rand.Rand) (lines []string) {
	cursor := ""
	for {
		credit := 1 + choose.IntN(7)
		path := fmt.Sprintf("/runs/%s/stream?subscriber=hungry&credit=%d&cursor=%s", run, credit, cursor)
		response, err := r.http.Do(r.request("GET", path, ""))
		if err != nil {
			t.Error(err)
			return lines
		}
		if response.StatusCode == 204 {
			response.Body.Close()
			return lines
		}
		s := r.pump(response)
		for range credit {
			frame, ok := <-s.frames
			if !ok {
				break
			}
			lines, cursor = append(lines, string(frame.Data)), frame.ID
		}
		<-time.After(time.Duration(choose.IntN(2)) * time.Millisecond) // for what should not come
		s.close()
		for range s.frames {
			t.Errorf("more than the %d frames that were granted", credit)
		}
	}
}

// derive projects the log from the facts of the session, as package harness does it.
func (r *rig) derive(t *testing.T, run string) (lines []string) {
	t.Helper()
	row, err := journal.Get[journal.RunRow](t.Context(), r.journal, journal.RunKey(run))
	if err != nil {
		t.Fatal(err)
	}
	identity := r.journal.Identity()
	signer := harness.NewSigner(identity.Key, identity.Epoch)
	var of harness.Run
	for record, err := range journal.All(t.Context(), r.journal, row.Session, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if record.LogRun != run {
			continue
		}
		decoded, err := narad.Decode(record.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		fact := decoded.(narad.Authority)
		if of.ID == "" {
			if of, err = harness.RunOf(fact); err != nil {
				t.Fatal(err)
			}
		}
		events, err := of.Project(fact, record.FirstLog, int(record.LogCount), func(n uint64) harness.Cursor { return signer.Cursor(run, n) })
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			line, err := harness.Encode(harness.RedactClassed(e, true))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
	}
	return lines
}
