package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narya"
)

// whole is a workflow that does all that one can do.
const whole = `
workflow: 1
name: whole
data: {rounds: ""}
nodes:
  plan:
    script:
      - tool: {name: plan, respond: {n: 1}}
      - say: {text: "Plan for {{prompt}}", chunk: 4}
    prompt: "{{/input/task}}"
    next: both
  both:
    parallel:
      left: {prompt: "left of {{/plan}}", script: [{tool: {name: left, delay: 1s}}, {say: "L"}]}
      right: {prompt: right, script: [{tool: {name: right, permit: {title: Right}, delay: 2s}}, {say: "R"}], result: text}
    next: sure
  sure:
    approval: {title: "Go on with {{/plan}}?"}
    next: which
  which:
    question: {text: "Colour?", options: [red, blue]}
    next: judge
  judge:
    script: [{say: "{\"verdict\": \"{{prompt}}\"}"}]
    prompt: "{{/rounds}}x"
    result: json
    next: count
  count:
    set: {rounds: "{{/rounds}}x"}
    next:
      - when: {pointer: /judge/verdict, op: equals, value: xx}
        to: flaky
      - to: judge
  flaky:
    script: [{tool: {name: flaky}}, {fail: {code: broken}}]
    prompt: try
    attempts: 2
    backoff: 3s
    next: done
    on_failure: done
  done:
    end: completed
    message: "{{/which/answer}}"
    output: {left: "{{/both/left}}", all: "{{/both}}", sure: "{{/sure/decision}}"}
`

func start(definition string) decide.StartWorkflow {
	return decide.StartWorkflow{Definition: definition, Input: narad.Raw(`{"task":"tea"}`)}
}

func (s *stage) start(definition string) host.Answer {
	s.t.Helper()
	a := s.do(access.StartWorkflow, "s1", start(definition), "")
	if a.Status != decide.Accepted || a.WorkflowID == "" {
		s.t.Fatalf("start a workflow: %+v", a)
	}
	return a
}

// steps tells what a workflow did, a line for each of its own facts.
func (s *stage) steps() string {
	s.t.Helper()
	var lines []string
	for _, f := range s.facts("s1") {
		switch f := f.(type) {
		case *narad.WorkflowStep:
			code, _ := facts.StepFailure(&f.Event)
			lines = append(lines, fmt.Sprint(f.Kind[len("workflow.step."):], " ", f.NodeID, " ", f.StepAttempt, " ", code))
		case *narad.WorkflowEdgeTaken:
			at := "-"
			if f.CaseIndex != nil {
				at = fmt.Sprint(*f.CaseIndex)
			}
			lines = append(lines, fmt.Sprint("edge ", f.From, " ", f.To, " ", at, " ", *f.Pointer, " ", f.Op))
		case *narad.WorkflowStarted, *narad.WorkflowPaused, *narad.WorkflowResumed, *narad.WorkflowStopRequested:
			lines = append(lines, string(f.Type()))
		case *narad.WorkflowEnded:
			lines = append(lines, strings.TrimSpace(fmt.Sprint(f.Kind, " ", f.Code, " ", f.Message, " ", facts.WorkflowOutput(&f.Event))))
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			if e := f.Envelope(); e.RunID == e.RootRunID {
				lines = append(lines, string(f.Type()))
			}
		case *narad.ToolCallStarted:
			lines = append(lines, "tool "+f.ToolName)
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// idle waits until nothing is active in the session, and decides what is asked.
func (s *stage) idle(decision func(host.Asked) string) {
	s.t.Helper()
	for n := range 200 {
		synctest.Wait()
		for _, i := range s.inbox() {
			if d := decision(i); d != "" {
				s.resolve(i.InterruptID, d)
			}
		}
		v, err := s.host.Attach(s.t.Context(), access.Owner(), access.ReadSession, "s1")
		if err != nil {
			s.t.Fatal(err)
		}
		if sum, err := v.Summary(s.t.Context()); err != nil || sum.State == "idle" {
			return
		}
		pass(time.Duration(n+1) * time.Second)
	}
	s.t.Fatalf("the session does not come to rest:\n%s", s.steps())
}

func first(i host.Asked) string { return i.Actions[0] }

const wholeStory = `workflow.started
started plan 1
tool plan
run.finished
finished plan 1
started both 1
tool left
tool right
run.finished
finished both 1
started sure 1
workflow.paused
workflow.resumed
finished sure 1
started which 1
workflow.paused
workflow.resumed
finished which 1
started judge 1
run.finished
finished judge 1
started count 1
finished count 1
edge count judge 1  default
started judge 1
run.finished
finished judge 1
started count 1
finished count 1
edge count flaky 0 /judge/verdict equals
started flaky 1
tool flaky
run.error
failed flaky 1 broken
started flaky 2
tool flaky
run.error
failed flaky 2 broken
edge flaky done -  failed
workflow.finished  red {"all":{"left":"L","right":"R"},"left":"L","sure":"approve"}`

// sorted puts the tools of parallel branches in one order.
func sorted(story string) string {
	return strings.ReplaceAll(story, "tool right\ntool left", "tool left\ntool right")
}

func TestWorkflowWhole(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		s.start(whole)
		s.idle(first)
		if got := sorted(s.steps()); got != wholeStory {
			t.Errorf("got:\n%s\nwant:\n%s", got, wholeStory)
		}
	})
}

// A value that no fact can hold fails its step, or, where none is under way, the workflow:
// it is not tried again for ever.
func TestWorkflowWithAValueTooDeep(t *testing.T) {
	nest := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for name, test := range map[string]struct{ definition, want string }{
		"result": {`
workflow: 1
name: deep
nodes:
  one: {script: [{say: "` + nest + `"}], result: json, prompt: go, on_failure: sorry, next: wrong}
  sorry: {end: completed, message: sorry}
  wrong: {end: failed, code: wrong}
`, "workflow.finished  sorry"},
		"data": {`
workflow: 1
name: deeper
data: {x: [1]}
nodes:
  a: {set: {x: ["{{/x}}"]}, next: a}
`, "workflow.error data_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
				s.start(test.definition)
				s.idle(first)
				if got := s.steps(); !strings.Contains(got, test.want) {
					t.Errorf("got %.2000s\nwant it to end with %s", got, test.want)
				}
			})
		})
	}
}

// counted counts the facts that are read of workflows.
type counted struct {
	journal.Journal
	facts atomic.Int64
}

func (c *counted) Scan(ctx context.Context, order journal.Order, page journal.Page, visit func(*journal.Record)) (bool, error) {
	return c.Journal.Scan(ctx, order, page, func(r *journal.Record) {
		if _, ok := order.(journal.ByWorkflow); ok {
			c.facts.Add(1)
		}
		visit(r)
	})
}

// shown is what a view of a workflow tells of its steps.
func shown(w host.Workflow) (lines []string) {
	for _, s := range w.Steps {
		lines = append(lines, fmt.Sprint(s.Name, " ", s.Status, " ", s.StartedAt, " ", s.FinishedAt))
	}
	return lines
}

// told is the same of the steps that began, from all facts of the session.
func (s *stage) told() (lines []string) {
	var steps []narya.WorkflowStep
	for _, f := range s.facts("s1") {
		for _, e := range narya.Mapping1.Project(f) {
			p, ok := e.Payload.(*narya.WorkflowProgress)
			if !ok || p.Step == nil {
				continue
			}
			step := *p.Step
			at := slices.IndexFunc(steps, func(s narya.WorkflowStep) bool { return s.Name == step.Name })
			if at < 0 {
				steps = append(steps, step)
				continue
			}
			if step.StartedAt == "" {
				step.StartedAt = steps[at].StartedAt
			}
			steps[at] = step
		}
	}
	return shown(host.Workflow{Steps: steps})
}

// The view of a workflow is what its facts tell at each time, and reads few of those of its
// runs, which are most.
func TestWorkflowViewReadsFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &counted{Journal: memory(t, journal.Options{})}
		s := open(t, j, acts{run: speaks}, host.Options{})
		defer s.close()
		s.create("s1")
		long := strings.Replace(whole, "- tool: {name: plan,", "- repeat: {times: 1500, steps: [{tool: {name: small}}]}\n      - tool: {name: plan,", 1)
		id := s.start(long).WorkflowID
		view := func() host.Workflow {
			t.Helper()
			synctest.Wait()
			v, err := s.host.Attach(t.Context(), access.Owner(), access.ReadSession, "s1")
			if err != nil {
				t.Fatal(err)
			}
			before := j.facts.Load()
			w, err := v.Workflow(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if read := j.facts.Load() - before; read > 500 {
				t.Errorf("%d facts were read of %d", read, len(s.facts("s1")))
			}
			want := s.told()
			if got := shown(w); len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
				t.Errorf("got %q, want first %q", got, want)
			}
			return w
		}
		view()
		s.idle(func(i host.Asked) string { view(); return first(i) })
		if n := len(s.facts("s1")); n < 3_000 {
			t.Errorf("the workflow has %d facts", n)
		}
		if w := view(); w.State != session.Finished || w.FinishedAt == "" || len(w.Steps) != 7 {
			t.Errorf("got %+v", w)
		}
	})
}
