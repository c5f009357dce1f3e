package script_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenario files should hold")

// A scenario is a script, what people do, and the facts that come of it. testdata/README.md
// describes the files.
type scenario struct {
	name    string
	archive *archive
	kind    agent.Kind
	agent   string // what the agent is called by
	prompts []string
	answers map[string]agenttest.Decision // by the title of the interrupt
	acts    []act
	uncut   bool // it cannot be cut: nobody would end it
	varies  bool // its story depends on where it is cut
}

// act is something that happens a while after a prompt.
type act struct {
	prompt int // counted from 1
	after  time.Duration
	steer  string // or stop, if empty
}

func scenarios(t *testing.T) []*scenario {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("find scenario files: %d, %v", len(files), err)
	}
	var list []*scenario
	for _, file := range files {
		list = append(list, readScenario(t, file))
	}
	return list
}

func readScenario(t *testing.T, file string) *scenario {
	t.Helper()
	s := &scenario{
		name:    strings.TrimSuffix(filepath.Base(file), ".txtar"),
		archive: readArchive(t, file), answers: map[string]agenttest.Decision{},
	}
	for line := range strings.Lines(s.archive.section(t, "do").text) {
		if err := s.do(strings.Fields(line), line); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
	}
	var err error
	if s.kind, err = script.New([]byte(s.archive.section(t, "script.yaml").text), script.Options{Name: file, Agent: s.agent}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scenario) do(words []string, line string) error {
	if len(words) == 0 {
		return nil
	}
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0]))
	switch words[0] {
	case "prompt":
		s.prompts = append(s.prompts, rest)
	case "agent":
		s.agent = rest
	case "uncut":
		s.uncut = true
	case "varies":
		s.varies = true
	case "answer":
		title, words, ok := strings.Cut(rest, " => ")
		if !ok {
			return fmt.Errorf("answer TITLE => DECISION is required")
		}
		s.answers[title] = decision(strings.Fields(words))
	case "stop", "steer":
		d, text, _ := strings.Cut(rest, " ")
		after, err := time.ParseDuration(d)
		if err != nil {
			return err
		}
		s.acts = append(s.acts, act{len(s.prompts), after, text})
	default:
		return fmt.Errorf("unknown word %s", words[0])
	}
	return nil
}

func decision(words []string) agenttest.Decision {
	d := agenttest.Decision{Decision: words[0], Members: map[string]string{}}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case !ok:
			d.Reason = w
		case name == "answers":
			d.Answers = narad.Raw(value)
		default:
			d.Members[name] = value
		}
	}
	return d
}

func (s *scenario) answer(i session.Interrupt) (agenttest.Decision, bool) {
	d, ok := s.answers[i.Title]
	return d, ok
}

// play performs the whole scenario. After a cut the next life is cut where next says,
// given the number of batches so far.
func (s *scenario) play(t *testing.T, opt agenttest.Options, next func(int) agenttest.Cut) *agenttest.Session {
	opt.Answer = s.answer
	host := agenttest.New(t, opt)
	for i := range s.prompts {
		for !s.perform(t, host, i, next) {
			// The prompt was never taken: whoever sent it sends it again.
		}
	}
	if refused := host.Refused(); len(refused) > 0 {
		t.Errorf("the host refused: %q; facts:\n%s", refused, host.Story())
	}
	return host
}

// perform performs one run to its end, over as many lives of the host as it takes. It
// returns false if the host died before it took the prompt.
func (s *scenario) perform(t *testing.T, host *agenttest.Session, i int, next func(int) agenttest.Cut) bool {
	a := host.Open(s.kind)
	run := host.Start(a, s.prompts[i])
	s.act(t, host, run, a, i+1)
	run.Wait()
	closeTwice(t, a)
	for lives := 0; host.Dead(); lives++ {
		if lives > 300 {
			t.Fatalf("the run does not end; facts:\n%s", host.Story())
		}
		a := host.Open(s.kind)
		if run := host.Resume(a, next(host.Batches())); run != nil {
			run.Wait()
		}
		closeTwice(t, a)
	}
	_, taken := host.Snapshot().Runs[run.RunID]
	return taken
}

func closeTwice(t *testing.T, a agent.Agent) {
	t.Helper()
	for range 2 {
		if err := a.Close(); err != nil {
			t.Errorf("close the agent: %v", err)
		}
	}
}

// act does what is to be done during a run.
func (s *scenario) act(t *testing.T, host *agenttest.Session, run *agenttest.Run, a agent.Agent, prompt int) {
	for _, act := range s.acts {
		if act.prompt != prompt {
			continue
		}
		go func() {
			select {
			case <-time.After(act.after):
			case <-run.Done():
				return
			}
			if act.steer == "" {
				run.Stop()
			} else if err := run.Steer(a, act.steer); err != nil && !errors.Is(err, agent.ErrEnded) {
				t.Errorf("steer: %v", err)
			}
		}()
	}
}

func never(int) agenttest.Cut { return agenttest.Cut{} }

// TestScenarios holds each scenario to its facts.
func TestScenarios(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := s.play(t, agenttest.Options{}, never)
				closed(t, host)
				got := host.Story()
				want := s.archive.section(t, "want")
				if *rewrite {
					want.text = got
					s.archive.write(t)
					return
				}
				if diff := cmp.Diff(want.text, got); diff != "" {
					t.Errorf("facts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// closed fails if anything is open.
func closed(t *testing.T, host *agenttest.Session) {
	t.Helper()
	snap := host.Snapshot()
	for id, r := range snap.Runs {
		if !r.State.Ended() {
			t.Errorf("run %s is %s at the end", id, r.State)
		}
	}
	for id, c := range snap.Tools {
		if c.Open {
			t.Errorf("tool call %s is open at the end", id)
		}
	}
	for id, i := range snap.Interrupts {
		if i.Open {
			t.Errorf("interrupt %s is open at the end", id)
		}
	}
	for _, m := range snap.Messages {
		if m.Streaming {
			t.Errorf("message %s is not complete at the end", m.MessageID)
		}
	}
	for _, r := range snap.Reasoning {
		if !r.Completed {
			t.Errorf("reasoning %s is not complete at the end", r.ReasoningID)
		}
	}
}
