package host_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/numbers"
)

// learner is an agent that notes what each run and each of its starts is told.
type learner struct {
	models *[]agent.Model // nil: it cannot tell

	mu     sync.Mutex // a run may go on beside the test
	runs   []agent.Info
	opened []agent.Session
}

func (l *learner) Open(_ context.Context, s agent.Session) (agent.Agent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = append(l.opened, s)
	return l, nil
}
func (*learner) Resumes() bool                              { return false }
func (*learner) Steers() bool                               { return false }
func (*learner) Steer(context.Context, agent.Message) error { return nil }
func (*learner) Close() error                               { return nil }

func (l *learner) Run(ctx context.Context, h agent.Handle) agent.Ending {
	l.mu.Lock()
	l.runs = append(l.runs, h.Info())
	l.mu.Unlock()
	return speaks(ctx, h)
}

// told is what each run until now was told, and opens what each start was.
func (l *learner) told() []agent.Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs)
}

func (l *learner) opens() []agent.Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.opened)
}

func (l *learner) DefaultModel() (agent.Model, bool) {
	if list, _ := l.Models(); len(list) > 0 {
		return list[0], true
	}
	return agent.Model{}, false
}

func (l *learner) Models() ([]agent.Model, bool) {
	if l.models == nil {
		return nil, false
	}
	return *l.models, true
}

// through says something to s1 and waits for the end of its run.
func (s *stage) through(content string) {
	s.t.Helper()
	s.say("s1", content)
	pass(time.Second)
	if story := s.story("s1"); !strings.HasSuffix(story, "run.finished") && !strings.HasSuffix(story, "run.error") {
		s.t.Fatalf("the run does not end: %s", story)
	}
}

// The next run works in the directory, on the model and in the style that were chosen; an
// agent in another directory is another one, that finds its session again.
func TestRunsWorkWithWhatWasChosen(t *testing.T) {
	home := t.TempDir()
	first, second := filepath.Join(home, "a"), filepath.Join(home, "b")
	for _, dir := range []string{first, second} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	models := []agent.Model{{Provider: "p", ID: "one"}, {Provider: "p", ID: "two", Variants: []string{"high"}}}
	l := &learner{models: &models}
	alone(t, l, host.Options{Roots: []string{home}, Styles: map[string]string{"brief": "Be brief."}}, func(t *testing.T, s *stage) {
		up := func(c decide.Command) {
			t.Helper()
			if a := s.do(access.UpdateSession, "s1", c, ""); a.Status != decide.Accepted {
				t.Fatalf("%T: %+v", c, a)
			}
		}
		refused := func(c decide.Command, why decide.Refusal) {
			t.Helper()
			if a := s.do(access.UpdateSession, "s1", c, ""); a.Status != decide.Rejected || a.Err != why {
				t.Errorf("%+v: got %+v, want a refusal for %s", c, a, why)
			}
		}
		up(decide.Move{Cwd: first})
		s.through("one")
		up(decide.Move{Cwd: second + "/."})
		up(decide.ChooseModel{Model: "two", Variant: "high"})
		up(decide.ChooseStyle{Style: "brief"})
		s.through("two")
		s.through("three")
		if len(l.opens()) != 2 || l.opens()[1].Cwd != second {
			t.Errorf("the agent was opened with %+v, want once in each directory", l.opens())
		}
		want := agent.Chosen{Provider: "p", Model: "two", Variant: "high", Style: "Be brief."}
		if got := l.told()[2].Chosen; got != want || l.told()[2].Cwd != second {
			t.Errorf("the run was told %+v in %s, want %+v in %s", got, l.told()[2].Cwd, want, second)
		}
		refused(decide.Move{Cwd: filepath.Join(home, "missing")}, decide.RefusedDirectory)
		refused(decide.Move{Cwd: "relative"}, decide.RefusedDirectory)
		refused(decide.Move{Cwd: "/"}, decide.RefusedDirectory)
		refused(decide.ChooseModel{Model: "three"}, decide.RefusedModel)
		refused(decide.ChooseModel{Provider: "q", Model: "two"}, decide.RefusedModel)
		refused(decide.ChooseModel{Model: "two", Variant: "low"}, decide.RefusedVariant)
		refused(decide.ChooseVariant{Variant: "low"}, decide.RefusedVariant)
		refused(decide.ChooseStyle{Style: "loud"}, decide.RefusedStyle)

		models = models[:1]
		s.through("four") // the host takes another one
		if got := l.told()[3].Chosen; got.Model != "one" || got.Variant != "" || got.Style != "Be brief." {
			t.Errorf("the run was told %+v, want the model that is left", got)
		}
		models = nil
		s.through("five")
		if story := s.story("s1"); !strings.HasSuffix(story, "run.error") || len(l.told()) != 4 {
			t.Errorf("a run without any model: %s", story)
		}
		refused(decide.ChooseModel{Model: "one"}, decide.RefusedNoModel)
	})
}

// A branch is given what was said in its ancestors up to where it left them, without what
// was redacted since.
func TestBranchesGoOn(t *testing.T) {
	l := &learner{}
	alone(t, l, host.Options{}, func(t *testing.T, s *stage) {
		s.through("first")
		s.through("a secret")
		last := int64(len(s.facts("s1")))
		s.through("too late")
		var message string
		for _, m := range l.told() {
			if m.Prompt.Content == "a secret" {
				message = m.Prompt.MessageID
			}
		}
		if a := s.do(access.RedactMessage, "s1", decide.Redact{MessageID: message, Reason: "r"}, ""); !a.Status.Accepted() {
			t.Fatal(a)
		}
		branch := decide.Branch{ParentSessionID: "s1", Through: last, Title: "other"}
		if a := s.do(access.CreateSession, "s2", branch, "c"); a.Status != decide.Accepted {
			t.Fatal(a)
		}
		if a := s.do(access.CreateSession, "s2", branch, ""); a.Status != decide.AlreadyApplied {
			t.Errorf("the branch again: %+v", a)
		}
		made, _ := facts.Read[facts.Created](s.facts("s2")[0], facts.SessionCreated)
		if made.ParentSessionID != "s1" || made.Branch == nil || made.Branch.Through != last || made.Title != "other" || made.Agent != "test" {
			t.Errorf("the branch was made with %+v", made)
		}
		s.say("s2", "second")
		pass(1e9)
		if a := s.do(access.CreateSession, "s3", decide.Branch{ParentSessionID: "s2"}, ""); a.Status != decide.Accepted {
			t.Fatal(a)
		}
		s.say("s3", "third")
		pass(1e9)
		want := []agent.Said{
			{Role: "user", Content: "first"}, {Role: "assistant", Content: "Hello, world."}, {Role: "assistant", Content: "Hello, world."},
			{Role: "user", Content: "second"}, {Role: "assistant", Content: "Hello, world."},
		}
		for run, want := range map[string][]agent.Said{"first": nil, "second": want[:3], "third": want} {
			for _, r := range l.told() {
				if r.Prompt.Content == run && !equalSaid(r.Before, want) {
					t.Errorf("%s: got %+v, want %+v", run, r.Before, want)
				}
			}
		}
	})
}

// worker is a learner whose runs of that prompt go on until they are stopped.
type worker struct {
	*learner
	busy string
}

func (w worker) Open(context.Context, agent.Session) (agent.Agent, error) { return w, nil }

func (w worker) Run(ctx context.Context, h agent.Handle) agent.Ending {
	ending := w.learner.Run(ctx, h)
	if h.Info().Prompt.Content == w.busy {
		<-ctx.Done()
	}
	return ending
}

// A branch goes on from messages that wait too: each of the transcript is told, from whomever
// it is and whatever became of it since, but for one that was taken back.
func TestBranchesAreToldWhatWaits(t *testing.T) {
	l := worker{&learner{}, "busy"}
	alone(t, l, host.Options{Numbers: numbers.Of, Mappings: facts.Mappings{Narya: 1}}, func(t *testing.T, s *stage) {
		told := func(id string) (list []string) {
			t.Helper()
			s.say(id, "go of "+id)
			pass(1e9)
			for _, r := range l.told() {
				if r.Prompt.Content == "go of "+id {
					for _, m := range r.Before {
						list = append(list, m.Role+": "+m.Content)
					}
				}
			}
			return list
		}
		branch := func(id string, through int64) {
			t.Helper()
			if a := s.do(access.CreateSession, id, decide.Branch{ParentSessionID: "s1", Through: through}, ""); a.Status != decide.Accepted {
				t.Fatal(a)
			}
		}
		s.create("other")
		s.say("s1", "busy")
		pass(1e9)
		waits := s.say("s1", "waits")
		through := int64(len(s.facts("s1")))
		branch("b1", through)
		back := s.say("s1", "taken back")
		s.say("s1", "waits too")
		if a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.SendMessage, Session: "other", Command: decide.Tell{To: s.callable("s1"), Content: "from another"},
		}); err != nil || a.Status != decide.Accepted {
			t.Fatal(a, err)
		}
		pass(1e9)
		branch("b2", 0)
		if a := s.do(access.ChangeQueue, "s1", decide.Withdraw{RunID: back.RunID}, ""); a.Status != decide.Accepted {
			t.Fatal(a)
		}
		said := []string{"user: busy", "user: waits"} // what the busy one says is no message yet
		if got := told("b1"); !slices.Equal(got, said) {
			t.Errorf("a branch at a message that waits: got %q, want %q", got, said)
		}
		all := append(said, "user: waits too", "user: from another")
		if got := told("b2"); !slices.Equal(got, all) {
			t.Errorf("a branch of a session with messages that wait: got %q, want %q", got, all)
		}

		s.do(access.StopRun, "s1", decide.Stop{}, "")
		pass(1e9)
		s.do(access.ChangeQueue, "s1", decide.Release{}, "")
		pass(time.Minute)
		if prompts := s.prompts("s1"); !slices.Contains(prompts, "waits") {
			t.Fatalf("it still waits: %q", prompts)
		}
		if a := s.do(access.RedactMessage, "s1", decide.Redact{MessageID: waits.MessageID, Reason: "r"}, ""); !a.Status.Accepted() {
			t.Fatal(a)
		}
		branch("b3", through)
		if got, want := told("b3"), said[:1]; !slices.Equal(got, want) {
			t.Errorf("a branch at a message that has begun and was redacted since: got %q, want %q", got, want)
		}
	})
}

func equalSaid(a, b []agent.Said) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// What an agent is told of a long conversation is bounded, and its newest part.
func TestBranchesAreToldTheNewest(t *testing.T) {
	l := &learner{}
	alone(t, l, host.Options{}, func(t *testing.T, s *stage) {
		for range 10 {
			s.through(strings.Repeat("ü", 10_000))
		}
		s.through("the last")
		s.do(access.CreateSession, "s2", decide.Branch{ParentSessionID: "s1"}, "")
		s.say("s2", "go")
		pass(1e9)
		size := 0
		runs := l.told()
		told := runs[len(runs)-1].Before
		for _, m := range told {
			size += len(m.Content)
		}
		if size > 64<<10 || size < 32<<10 || told[len(told)-2].Content != "the last" {
			t.Errorf("%d bytes in %d messages were told", size, len(told))
		}
	})
}
