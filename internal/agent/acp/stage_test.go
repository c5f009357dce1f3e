package acp_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// stage is a session with the test agent in it.
type stage struct {
	*agenttest.Session
	t     *testing.T
	cwd   string
	kind  agent.Kind
	agent agent.Agent
	log   *lockedBuffer
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// set returns a stage. Words are those of acptest.Command.
func set(t *testing.T, opt agenttest.Options, words ...string) *stage {
	t.Helper()
	return setWith(t, opt, acp.Options{Command: acptest.Command(words...)})
}

func setWith(t *testing.T, opt agenttest.Options, how acp.Options) *stage {
	t.Helper()
	if opt.Cwd == "" {
		opt.Cwd = t.TempDir()
	}
	s := &stage{t: t, cwd: opt.Cwd, log: &lockedBuffer{}}
	how.Name = "test"
	how.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if s.kind, err = acp.New(how); err != nil {
		t.Fatal(err)
	}
	s.Session = agenttest.New(t, opt)
	s.agent = s.Open(s.kind)
	t.Cleanup(s.strike)
	return s
}

// strike closes the agent and looks at what every test owes.
func (s *stage) strike() {
	for range 2 {
		if err := s.agent.Close(); err != nil {
			s.t.Errorf("close the agent: %v", err)
		}
	}
	if left := s.Owned(); len(left) > 0 {
		s.t.Errorf("got %v, want no process to be recorded any more", left)
	}
	if s.t.Failed() {
		s.t.Logf("facts:\n%s\nlog:\n%s", s.Story(), short(s.log.String()))
	}
}

func short(text string) string {
	if len(text) > 4000 {
		return text[:4000] + "..."
	}
	return text
}

// lines makes a script.
func lines(steps ...string) string { return strings.Join(steps, "\n") }

// tells runs a script and compares what it leaves behind, the start and the end of the
// run and the prompt left out.
func (s *stage) tells(script, want string) agent.Ending {
	s.t.Helper()
	before := len(s.Facts())
	e := s.Do(s.agent, script)
	s.compare(before, want)
	return e
}

func (s *stage) compare(before int, want string) {
	s.t.Helper()
	got := story(s.Facts()[before:])
	want = strings.Join(strings.Fields(strings.ReplaceAll(strings.TrimSpace(want), "\n", " ; ")), " ")
	got = strings.Join(strings.Fields(strings.ReplaceAll(got, "\n", " ; ")), " ")
	if got != want {
		s.t.Errorf("other facts (-want +got):\n%s", cmp.Diff(strings.Split(want, " ; "), strings.Split(got, " ; ")))
	}
	if refused := s.Refused(); len(refused) > 0 {
		s.t.Errorf("got refused records %q, want none", refused)
	}
}

// story tells facts, one a line. Text is joined, since how it was cut depends on time.
// Ids are the agent's; runs below the root are marked.
func story(list []narad.Authority) string {
	var out []string
	tools := map[string]string{}
	text := map[string]string{}
	for _, rec := range list {
		e := rec.Envelope()
		line := ""
		switch r := rec.(type) {
		case *narad.MessageTextDelta:
			text[r.MessageID] += r.Delta
		case *narad.MessageTextCompleted:
			line = fmt.Sprintf("say %q", text[r.MessageID])
		case *narad.ReasoningDelta:
			text[r.ReasoningID] += r.Delta
		case *narad.ReasoningCompleted:
			line = fmt.Sprintf("think %q", text[r.ReasoningID])
		case *narad.ToolCallStarted:
			tools[r.ToolCallID] = facts.AgentID(e)
			line = fmt.Sprintf("start %s %s %s %s", facts.AgentID(e), r.ToolName, facts.ToolKind(e), r.Args)
		case *narad.ToolCallFinished:
			line = strings.TrimSpace(fmt.Sprintf("finish %s %s %s %s", tools[r.ToolCallID], r.Outcome, r.Response, r.Code))
		case *narad.ProgressRecorded:
			line = fmt.Sprintf("step %s %s %q %q", r.ProgressID, r.Status, r.Label, r.Detail)
			if plan, told := facts.Plan(&r.Event).Elements(); told {
				for _, s := range plan {
					line += fmt.Sprintf(" %s:%s", s.Field("text"), s.Field("status"))
				}
			}
		case *narad.InterruptRequested:
			line = fmt.Sprintf("ask %s", strings.Join(r.Actions, ","))
		case *narad.InterruptResolved:
			line = "decide " + r.Decision
		case *narad.RunStarted:
			if r.ParentRunID != "" && !facts.Gate(e) {
				line = "run below " + tools[r.ParentToolCallID]
			}
		case *narad.RunFinished:
			if r.RunID != r.RootRunID {
				line = "run finished"
			}
		case *narad.Custom:
			switch r.Name {
			case facts.ToolOutput:
				o, _ := facts.Read[facts.Output](rec, facts.ToolOutput)
				line = fmt.Sprintf("output %s %q", tools[o.ToolCallID], o.Text)
			case facts.AgentRemembered, facts.Round:
			default:
				line = r.Name + " " + string(r.Value)
			}
		}
		if line = strings.TrimSpace(line); line != "" && line != "run finished" || line == "run finished" && below(out) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// below reports whether a run below the root has begun and not ended: gates are not
// told.
func below(out []string) bool {
	open := 0
	for _, line := range out {
		switch {
		case strings.HasPrefix(line, "run below"):
			open++
		case line == "run finished":
			open--
		}
	}
	return open > 0
}

// says returns all that the agent said in the top-level runs.
func (s *stage) says() string {
	var text strings.Builder
	for _, rec := range s.Facts() {
		if d, ok := rec.(*narad.MessageTextDelta); ok && d.RunID == d.RootRunID {
			text.WriteString(d.Delta)
		}
	}
	return text.String()
}

// until waits until something holds of the session, or the run is over.
func (s *stage) until(r *agenttest.Run, holds func() bool) {
	s.t.Helper()
	for {
		n := s.Batches()
		if holds() {
			return
		}
		if !s.Reach(n+1, r.Done()) {
			if holds() {
				return
			}
			s.t.Fatalf("the run is over (%+v) and nothing was seen", r.Wait())
		}
	}
}

// finishes of tool calls with their outcomes, by the agent's ids.
func (s *stage) finishes() map[string]string {
	ids, got := map[string]string{}, map[string]string{}
	for _, rec := range s.Facts() {
		switch r := rec.(type) {
		case *narad.ToolCallStarted:
			ids[r.ToolCallID] = facts.AgentID(rec.Envelope())
		case *narad.ToolCallFinished:
			got[ids[r.ToolCallID]] += strings.TrimSpace(string(r.Outcome) + " " + r.Code)
		}
	}
	return got
}

// bounded fails a test that hangs with what has happened, before the whole binary is
// ended.
func (s *stage) bounded(r *agenttest.Run) agent.Ending {
	s.t.Helper()
	select {
	case <-r.Done():
		return r.Wait()
	case <-time.After(30 * time.Second):
		s.t.Fatal("the run does not end")
		return agent.Ending{}
	}
}

func always(decision string) func(session.Interrupt) (agenttest.Decision, bool) {
	return func(session.Interrupt) (agenttest.Decision, bool) {
		return agenttest.Decision{Decision: decision}, true
	}
}

func sorted(m map[string]string) []string {
	var list []string
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
