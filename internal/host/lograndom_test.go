package host_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/harness/harnesstest"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/narad"
)

// A run that is followed fact by fact, one that is read whole, one that is resumed at every
// record with pages of any size, and one that is derived from the session's facts alone
// are the same bytes, whatever the runs do, in both engines (R35). close derives the
// numbers once more.
func TestLogsOfRandomRuns(t *testing.T) {
	for name, open := range map[string]func(*testing.T) journal.Journal{
		"memory": func(t *testing.T) journal.Journal { return memory(t, journal.Options{}) },
		"pebble": onDisk,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { playLogs(t, open(t), seed) })
			}
		})
	}
}

func onDisk(t *testing.T) journal.Journal {
	t.Helper()
	j, err := pebble.Open(t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func playLogs(t *testing.T, j journal.Journal, seed uint64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dice := rand.New(rand.NewPCG(seed, 1))
	options := logging()
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	options.Blobs = blobs
	options.LogPolicy = harness.Policy{Rules: []harness.Rule{{Tool: "tool-1", Class: harness.Secret}}}.Encode()
	s := open(t, j, acts{run: gambler{dice: rand.New(rand.NewPCG(seed, 2)), steps: 30}.run}, options)
	defer s.close()
	s.create("s1")
	runs := []string{s.say("s1", "one").RunID, s.say("s1", "two").RunID, s.say("s1", "three").RunID}
	s.do(access.ChangeQueue, "s1", decide.Withdraw{RunID: runs[2]}, "")
	for i, run := range runs {
		live := s.followLog(ctx, run, dice, i < 2 && seed%2 == 1)
		s.sameLog(run, live, dice)
		s.do(access.ChangeQueue, "s1", decide.Release{}, "")
	}
	s.record(fmt.Sprintf("random-%d", seed))
}

// recordTo is where the facts of these tests are kept as golden ones, under names that are
// new there.
var recordTo = flag.String("record", "", "a directory for the facts of runs with logs")

// record keeps the session's facts as golden ones.
func (s *stage) record(name string) {
	s.t.Helper()
	if *recordTo == "" {
		return
	}
	var lines []byte
	for record, err := range journal.All(s.t.Context(), s.journal, "s1", 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		lines = append(append(lines, record.Bytes...), '\n')
	}
	file, err := os.OpenFile(filepath.Join(*recordTo, name+".facts.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := file.Write(lines); err != nil {
		s.t.Error(err)
	}
	if err := file.Close(); err != nil {
		s.t.Error(err)
	}
}

// The demo's log is the same from everywhere too.
func TestLogOfTheDemo(t *testing.T) {
	kind, err := script.Builtin("demo")
	if err != nil {
		t.Fatal(err)
	}
	alone(t, kind, logging(), func(t *testing.T, s *stage) {
		dice := rand.New(rand.NewPCG(1, 1))
		run := s.say("s1", "Tidy up the project.").RunID
		s.sameLog(run, s.followLog(t.Context(), run, dice, false), dice)
		s.record("demo")
	})
}

// followLog follows a run to its end, decides what it asks, and may stop it.
func (s *stage) followLog(ctx context.Context, run string, dice *rand.Rand, stop bool) []harness.Event {
	s.t.Helper()
	l := s.openLog(run)
	f, err := l.Follow(ctx, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	var live []harness.Event
	stopAt := dice.IntN(30)
	for {
		records, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return live
		}
		if err != nil {
			s.t.Fatalf("follow %s after %d records: %v", run, len(live), err)
		}
		for _, r := range records {
			live = append(live, s.project(l, []host.Record{r})...)
			s.decideAny(r, dice)
		}
		// The end may be ahead of what was followed, never behind.
		if last, ended, err := l.End(ctx); err != nil || ended && last < uint64(len(live)) || !ended && last != 0 {
			s.t.Fatalf("the end of %d records so far: %d %v %v", len(live), last, ended, err)
		}
		if stop && len(live) > stopAt {
			s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
			stop = false
		}
	}
}

func (s *stage) decideAny(r host.Record, dice *rand.Rand) {
	s.t.Helper()
	rec, err := narad.Decode(r.Bytes)
	if err != nil {
		s.t.Fatal(err)
	}
	if asked, ok := rec.(*narad.InterruptRequested); ok {
		s.resolve(asked.InterruptID, asked.Actions[dice.IntN(len(asked.Actions))])
	}
}

// sameLog compares all ways to a run's log with what was followed live.
func (s *stage) sameLog(run string, live []harness.Event, dice *rand.Rand) {
	s.t.Helper()
	ctx := s.t.Context()
	if faults := harnesstest.Faults(run, live, true); len(faults) > 0 {
		s.t.Fatalf("%s\n%s", strings.Join(faults, "\n"), types(live))
	}
	signer := s.signer()
	derived, err := harnesstest.Derive(s.facts("s1"), signer.Cursor)
	if err != nil {
		s.t.Fatal(err)
	}
	unsigned, err := harnesstest.Derive(s.facts("s1"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if got, want := encoded(s.t, s.convert(run)), encoded(s.t, unsigned[run]); !bytes.Equal(got, want) {
		s.t.Fatalf("converted: got\n%s\nwant\n%s", got, want)
	}
	want := encoded(s.t, live)
	for what, log := range map[string][]harness.Event{"whole": s.log(run), "derived": derived[run]} {
		if got := encoded(s.t, log); !bytes.Equal(got, want) {
			s.t.Fatalf("%s: got\n%s\nfollowed\n%s", what, got, want)
		}
	}
	l := s.openLog(run)
	for after := range uint64(len(live)) + 1 {
		var resumed []harness.Event
		for at, more := after, true; more; {
			chunk, err := l.Read(ctx, at, host.Page{Limit: 1 + dice.IntN(5)})
			if err != nil {
				s.t.Fatal(err)
			}
			for _, e := range s.project(l, chunk.Records) {
				if e.Sequence > at {
					resumed, at = append(resumed, e), e.Sequence
				}
			}
			more = chunk.More
		}
		if got, want := encoded(s.t, resumed), encoded(s.t, live[after:]); !bytes.Equal(got, want) {
			s.t.Fatalf("resumed after %d: got\n%s\nwant\n%s", after, got, want)
		}
		if err := signer.Verify(signer.Cursor(run, after), run, uint64(len(live))); err != nil {
			s.t.Errorf("the cursor of %d: %v", after, err)
		}
	}
	for sequence, want := range map[uint64]bool{0: true, uint64(len(live)): true, uint64(len(live)) + 1: false, 1 << 63: false} {
		if has, err := l.Has(ctx, sequence); has != want || err != nil {
			s.t.Errorf("a record %d of %d: %v %v", sequence, len(live), has, err)
		}
	}
	if last, ended, err := l.End(ctx); last != uint64(len(live)) || !ended || err != nil {
		s.t.Errorf("the end: got %d %v %v, want %d", last, ended, err, len(live))
	}
}

// convert makes the run's log of the session's facts, as of an export.
func (s *stage) convert(run string) (log []harness.Event) {
	s.t.Helper()
	converter := harness.NewConverter()
	for _, f := range s.facts("s1") {
		events, err := converter.Add(f)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range events {
			if e.RunID == run {
				log = append(log, e)
			}
		}
	}
	return log
}

func encoded(t *testing.T, log []harness.Event) []byte {
	t.Helper()
	var lines []byte
	for _, e := range log {
		line, err := harness.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	return lines
}

// gambler is an agent that does whatever it may, in any order.
type gambler struct {
	dice  *rand.Rand
	steps int
	depth int
}

func (g gambler) run(ctx context.Context, h agent.Handle) agent.Ending {
	for range g.steps {
		if err := g.step(ctx, h); err != nil {
			break
		}
	}
	tokens := g.dice.Int64N(1000)
	ending := agent.Ending{StopReason: "completed", Usage: &narad.Usage{PromptTokens: &tokens}}
	if g.dice.IntN(3) == 0 {
		ending = agent.Ending{Outcome: agent.Failed, Code: "broken", Message: "It broke."}
	}
	return ending
}

func (g gambler) step(ctx context.Context, h agent.Handle) error {
	moves := []func(context.Context, agent.Handle) error{
		func(ctx context.Context, h agent.Handle) error { return h.Text(ctx, "Ein é,  \n und €.") },
		func(ctx context.Context, h agent.Handle) error { return h.Thought(ctx, "hm") },
		func(ctx context.Context, h agent.Handle) error { return h.EndMessage(ctx) },
		g.tool, g.tool, g.ask, g.nested,
		func(ctx context.Context, h agent.Handle) error {
			return h.Progress(ctx, agent.Progress{
				ID: "p", Category: "work", Label: "l", Status: narad.ProgressActive,
				Privacy: []narad.Privacy{narad.PrivacyPublic, narad.PrivacyInternal, narad.PrivacySensitive}[g.dice.IntN(3)],
			})
		},
		func(ctx context.Context, h agent.Handle) error {
			return h.Progress(ctx, agent.Progress{
				ID: "plan-1", Category: "plan", Label: "one", Status: narad.ProgressActive, Privacy: narad.PrivacyInternal,
				Plan: &agent.Plan{Steps: []facts.Planned{{ID: "plan-1", Text: "one", Status: "pending"}}, Later: g.dice.IntN(2) == 0},
			})
		},
		func(ctx context.Context, h agent.Handle) error {
			_, err := h.AddArtifact(ctx, agent.Artifact{Name: "a.txt", MediaType: "text/plain"}, strings.NewReader("bytes"))
			return err
		},
		func(ctx context.Context, h agent.Handle) error {
			_, err := h.OpenView(ctx, agent.View{AgentID: fmt.Sprint(g.dice.Int64()), Model: narad.Raw(`{"a": [1.10]}`)})
			return err
		},
		func(ctx context.Context, h agent.Handle) error {
			return h.Custom(ctx, "its.own", narad.Raw(`{"x":1}`))
		},
		func(ctx context.Context, h agent.Handle) error {
			return h.Round(ctx, agent.Round{Provider: "p", Model: "m"})
		},
	}
	return moves[g.dice.IntN(len(moves))](ctx, h)
}

func (g gambler) tool(ctx context.Context, h agent.Handle) error {
	id, err := h.StartTool(ctx, agent.Tool{
		AgentID: fmt.Sprint(g.dice.Int64()), Name: fmt.Sprintf("tool-%d", g.dice.IntN(3)), Kind: "edit", Args: narad.Raw("{\"n\":\n1.10}"),
	})
	if err != nil {
		return err
	}
	if g.dice.IntN(2) == 0 {
		if _, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "May I?", Resource: "a.txt", Options: []agent.Option{
			{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"},
		}}); err != nil {
			return err
		}
	}
	if g.dice.IntN(3) == 0 {
		if err := h.ToolOutput(ctx, id, "some output"); err != nil {
			return err
		}
	}
	outcomes := []narad.Outcome{narad.OutcomeSuccess, narad.OutcomeError, narad.OutcomeCancelled}
	return h.FinishTool(ctx, id, agent.ToolResult{Outcome: outcomes[g.dice.IntN(3)], Response: narad.Raw(`{"r":null}`), Message: "m"})
}

func (g gambler) ask(ctx context.Context, h agent.Handle) error {
	a := agent.Ask{AgentID: fmt.Sprint(g.dice.Int64()), Kind: "approval", Title: "Go on?", Actions: []string{"approve", "deny"}}
	switch g.dice.IntN(3) {
	case 0:
		a.Kind, a.Actions = "question", nil
		a.Questions = []agent.Question{{Text: "Which?", Options: []string{"a", "b"}, Recommended: 1}}
	case 1:
		a.Members = []agent.Member{{RequestID: "m1", ToolName: "x"}, {RequestID: "m2"}}
	}
	_, err := h.Ask(ctx, a)
	return err
}

func (g gambler) nested(ctx context.Context, h agent.Handle) error {
	if g.depth == 2 {
		return nil
	}
	id, err := h.StartTool(ctx, agent.Tool{AgentID: fmt.Sprint(g.dice.Int64()), Name: "task", Args: narad.Raw(`{}`)})
	if err != nil {
		return err
	}
	child, err := h.StartRun(ctx, agent.Nested{AgentID: fmt.Sprint(g.dice.Int64()), Name: "helper", ParentToolCallID: id, Prompt: "do"})
	if err != nil {
		return err
	}
	below := gambler{dice: g.dice, steps: 5, depth: g.depth + 1}
	if err := child.End(ctx, below.run(ctx, child)); err != nil {
		return err
	}
	return h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`"done"`)})
}
