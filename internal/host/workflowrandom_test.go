package host_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// randomWorkflow is a file of any nodes that lead anywhere.
func randomWorkflow(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("workflow: 1\nmax_steps: 12\ndata: {x: 0}\nnodes:\n")
	n := 2 + r.IntN(5)
	to := func() string {
		return []string{"good", "bad", fmt.Sprint("n", r.IntN(n)), fmt.Sprint("n", r.IntN(n))}[r.IntN(4)]
	}
	kinds := []string{
		"agent: x, prompt: 'n {{/x}}', attempts: 2, backoff: 20s",
		"script: [{tool: {name: t, permit: {title: T}}}, {question: {text: Q, options: [a, b]}}, {say: hi}], prompt: p",
		"parallel: {l: {agent: x, prompt: l}, r: {script: [{delay: 3s}, {say: r}], prompt: r}}, attempts: 2",
		"approval: {title: A, expires: 40s}", "question: {text: Q, options: [a, b], free: true}", "set: {x: '{{/x}}1'}",
		"agent: x, prompt: '{{/never}}'", "agent: x, prompt: p, result: json",
	}
	for i := range n {
		kind := kinds[r.IntN(len(kinds))]
		next := to()
		if r.IntN(2) == 0 {
			next = fmt.Sprintf("[{when: {pointer: /x, op: contains, value: '1'}, to: %s}, {to: %s}]", to(), to())
		}
		failure := ""
		if r.IntN(3) == 0 && !strings.HasPrefix(kind, "set") {
			failure = ", on_failure: " + to()
		}
		fmt.Fprintf(&b, "  n%d: {%s, next: %s%s}\n", i, kind, next, failure)
	}
	b.WriteString("  good: {end: completed, output: '{{/x}}'}\n  bad: {end: failed}\n")
	return b.String()
}

// Whatever a workflow does, and whatever people do to it, with deaths of the host in
// between: each of its facts may stand where it stands, the rows are those of the facts,
// and it comes to one end.
func TestRandomWorkflows(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 19))
			kind := acts{resumes: seed%3 == 0, run: func(ctx context.Context, h agent.Handle) agent.Ending {
				_ = h.Text(ctx, "1")
				select {
				case <-time.After(time.Duration(len(h.Info().RunID)) * time.Second / 10):
				case <-ctx.Done():
					return agent.Ending{Outcome: agent.Cancelled}
				}
				return agent.Ending{Outcome: agent.Outcome(h.Info().RunID[35]) % 2}
			}}
			j := memory(t, journal.Options{})
			s := open(t, j, kind, host.Options{})
			s.create("s1")
			definition := randomWorkflow(r)
			s.start(definition)
			for range 40 {
				switch r.IntN(8) {
				case 0:
					s.close()
					s = open(t, j, kind, host.Options{})
				case 1:
					if r.IntN(6) == 0 {
						s.stop(decide.Stop{})
					}
				case 2:
					s.say("s1", "hello")
				case 3, 4, 5:
					synctest.Wait()
					for _, i := range s.inbox() {
						s.resolve(i.InterruptID, i.Actions[r.IntN(len(i.Actions))])
					}
				default:
					pass(time.Duration(r.IntN(30)) * time.Second)
				}
			}
			s.end()
			s = open(t, j, kind, host.Options{})
			s.rest()
			s.close()
			ends := 0
			for _, f := range s.facts("s1") {
				if _, ok := f.(*narad.WorkflowEnded); ok {
					ends++
				}
			}
			for row, err := range journal.Each[journal.TimerRow](context.Background(), j, journal.TimersDue{Until: time.Now().Add(time.Hour)}, noDamage(t)) {
				if row.Session == "" { // the host's own
					continue
				}
				t.Errorf("seed %d: a timer is left: %+v %v", seed, row, err)
			}
			if ends != 1 {
				t.Errorf("seed %d: %d ends of\n%s\n%s", seed, ends, definition, s.steps())
			}
		})
		if t.Failed() {
			return
		}
	}
}

// rest decides what is asked, as far as it can be, until no workflow goes on.
func (s *stage) rest() {
	s.t.Helper()
	for range 300 {
		synctest.Wait()
		for _, i := range s.inbox() {
			if i.Actions[0] == "answer" {
				s.resolve(i.InterruptID, "dismiss")
			} else {
				s.resolve(i.InterruptID, i.Actions[0])
			}
		}
		if s.summary("s1").Workflow == "" {
			return
		}
		pass(5 * time.Second)
	}
	s.t.Errorf("the workflow goes on:\n%s", s.steps())
}
