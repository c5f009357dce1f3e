package acp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

const askRun = `{"toolCallId":"t","title":"Run ls","kind":"execute","rawInput":{"command":"ls -l"},"locations":[{"path":"/w/x"}]}`

func TestPermission(t *testing.T) {
	const all = "allow_once,allow_always,reject_once,reject_always"
	for _, c := range []struct{ name, kinds, decision, want string }{
		{"once", all, "approve", `
			start t execute execute {"command":"ls -l"}
			ask approve,approve_always,deny,deny_always
			decide approve
			finish t success null
			say "[p: selectedo0-allow_once]"`},
		{"always", all, "approve_always", `
			start t execute execute {"command":"ls -l"}
			ask approve,approve_always,deny,deny_always
			decide approve_always
			finish t success null
			say "[p: selectedo1-allow_always]"`},
		{"denied", all, "deny", `
			start t execute execute {"command":"ls -l"}
			ask approve,approve_always,deny,deny_always
			decide deny
			finish t cancelled null denied
			say "[p: selectedo2-reject_once]"`},
		{"denied for ever", all, "deny_always", `
			start t execute execute {"command":"ls -l"}
			ask approve,approve_always,deny,deny_always
			decide deny_always
			finish t cancelled null denied
			say "[p: selectedo3-reject_always]"`},
		{"the agent knows no denial", "allow_always", "deny", `
			start t execute execute {"command":"ls -l"}
			ask approve_always,deny
			decide deny
			finish t cancelled null denied
			say "[p: cancelled]"`},
		{"another order", "reject_once,allow_always,allow_once", "approve", `
			start t execute execute {"command":"ls -l"}
			ask approve,approve_always,deny
			decide approve
			finish t success null
			say "[p: selectedo2-allow_once]"`},
		{"two of a kind", "allow_once,allow_once,wave,reject_once", "approve", `
			start t execute execute {"command":"ls -l"}
			ask approve,deny
			decide approve
			finish t success null
			say "[p: selectedo0-allow_once]"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{Answer: always(c.decision)})
			// The agent says "completed" even of what was denied.
			s.tells(lines("ask p "+c.kinds+" "+askRun, "wait p",
				`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`), c.want)
		})
	}
}

func TestPermissionTellsWhatItIsAbout(t *testing.T) {
	var asked session.Interrupt
	command := set(t, agenttest.Options{Answer: func(i session.Interrupt) (agenttest.Decision, bool) {
		asked = i
		return agenttest.Decision{Decision: "approve"}, true
	}})
	command.Do(command.agent, lines("ask p allow_once,reject_once "+askRun, "wait p"))
	if got, _ := asked.Input.Field("resource").IsString(); got != "ls -l" {
		t.Errorf("got resource %q, want the command", got)
	}
	s := set(t, agenttest.Options{Answer: func(i session.Interrupt) (agenttest.Decision, bool) {
		asked = i
		return agenttest.Decision{Decision: "approve"}, true
	}})
	s.Do(s.agent, lines(`ask p allow_once,reject_once {"toolCallId":"t","title":"Edit x","kind":"edit","locations":[{"path":"/w/x"}],`+
		`"content":[{"type":"diff","path":"/w/x","oldText":"old","newText":"new"}]}`, "wait p"))
	if asked.Title != "Edit x" || asked.Kind != "approval" {
		t.Errorf("got %+v, want the title of the call", asked)
	}
	for name, want := range map[string]string{"resource": "/w/x", "detail": "--- /w/x\nold\n+++ /w/x\nnew"} {
		if got, _ := asked.Input.Field(name).IsString(); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
}

// TestSeveralPermissions is case 24: each is decided by itself, in any order.
func TestSeveralPermissions(t *testing.T) {
	s := set(t, agenttest.Options{})
	r := s.Start(s.agent, lines(
		`ask p1 allow_once,reject_once {"toolCallId":"t1","title":"one"}`,
		`ask p2 allow_once,reject_once {"toolCallId":"t2","title":"two"}`,
		`ask p3 allow_once,reject_once {"toolCallId":"t3","title":"three"}`,
		`say meanwhile`, `wait p2`, `wait p3`, `wait p1`))
	s.until(r, func() bool { return len(s.Waiting()) == 3 && s.says() == "meanwhile" })
	byTitle := map[string]string{}
	for _, i := range s.Waiting() {
		byTitle[i.Title] = i.InterruptID
	}
	s.resolve(byTitle["two"], "deny")
	s.until(r, func() bool { return s.says() == "meanwhile[p2: selectedo1-reject_once]" })
	if got := sorted(s.finishes()); !cmp.Equal(got, []string{"t2=cancelled denied"}) || len(s.Waiting()) != 2 {
		t.Errorf("got %q and %d open, want only the second decided", got, len(s.Waiting()))
	}
	s.resolve(byTitle["three"], "approve")
	s.resolve(byTitle["one"], "approve")
	s.bounded(r)
	if got, want := s.says(), "meanwhile[p2: selectedo1-reject_once][p3: selectedo0-allow_once][p1: selectedo0-allow_once]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func (s *stage) resolve(id, decision string) {
	s.t.Helper()
	if err := s.Resolve(id, agenttest.Decision{Decision: decision}); err != nil {
		s.t.Errorf("decide %q: %v", id, err)
	}
}

func TestUpdatesFlowDuringPermission(t *testing.T) {
	s := set(t, agenttest.Options{})
	r := s.Start(s.agent, lines("ask p allow_once,reject_once "+askRun, "many 1000",
		`send {"sessionUpdate":"tool_call","toolCallId":"u","title":"other","status":"completed"}`, "wait p"))
	s.until(r, func() bool { return len(s.Waiting()) == 1 && s.finishes()["u"] != "" })
	s.resolve(s.Waiting()[0].InterruptID, "approve")
	if e := s.bounded(r); e.StopReason != "completed" {
		t.Errorf("got %+v, want a run that is completed", e)
	}
}

// TestStopDuringPermission is case 36: nothing new is asked or begun, and a late answer
// is refused.
func TestStopDuringPermission(t *testing.T) {
	s := set(t, agenttest.Options{})
	r := s.Start(s.agent, lines(
		`ask p1 allow_once,reject_once {"toolCallId":"t1","title":"one"}`, `cancelled`, `wait p1`,
		`ask p2 allow_once,reject_once {"toolCallId":"t2","title":"two"}`, `wait p2`,
		`ask p3 allow_once,reject_once {"toolCallId":"t1","title":"one"}`, `wait p3`,
		`say so be it`))
	s.until(r, func() bool { return len(s.Waiting()) == 1 })
	first := s.Waiting()[0].InterruptID
	r.Stop()
	if e := s.bounded(r); e.Outcome != agent.Cancelled {
		t.Errorf("got %+v, want a run that is cancelled", e)
	}
	if got, want := s.says(), "[p1: cancelled][p2: cancelled][p3: cancelled]so be it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.Resolve(first, agenttest.Decision{Decision: "approve"}); err == nil {
		t.Error("a late answer was taken")
	}
	starts, asks := 0, 0
	for _, rec := range s.Facts() {
		switch rec.(type) {
		case *narad.ToolCallStarted:
			starts++
		case *narad.InterruptRequested:
			asks++
		}
	}
	if starts != 1 || asks != 1 {
		t.Errorf("got %d calls and %d questions, want one of each", starts, asks)
	}
}

// patient lets permissions wait for nothing but their context, as a host may.
type patient struct{ agent.Agent }

func (p patient) Run(ctx context.Context, h agent.Handle) agent.Ending {
	return p.Agent.Run(ctx, patientHandle{h})
}

type patientHandle struct{ agent.Handle }

func (patientHandle) Await(ctx context.Context, _ string) (agent.Answer, error) {
	<-ctx.Done()
	return agent.Answer{}, ctx.Err()
}

// judged keeps what a policy can know of calls.
type judged struct {
	agent.Agent
	told *[]string
}

func (j judged) Run(ctx context.Context, h agent.Handle) agent.Ending {
	return j.Agent.Run(ctx, judgedHandle{h, j.told})
}

type judgedHandle struct {
	agent.Handle
	told *[]string
}

func (j judgedHandle) StartTool(ctx context.Context, t agent.Tool) (string, error) {
	*j.told = append(*j.told, fmt.Sprint("start ", t.Kind, t.Paths))
	return j.Handle.StartTool(ctx, t)
}

func (j judgedHandle) OpenGate(ctx context.Context, p agent.Permission) (string, error) {
	*j.told = append(*j.told, fmt.Sprint("ask ", p.Kind, p.Paths))
	return j.Handle.OpenGate(ctx, p)
}

// A policy is asked about the call as the agent tells of it with the request, and about
// files by absolute paths.
func TestPermissionForACallThatIsToldLater(t *testing.T) {
	s := set(t, agenttest.Options{Answer: always("approve")})
	var told []string
	s.Do(judged{s.agent, &told}, lines(
		`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit","status":"in_progress"}`,
		`ask p allow_once,reject_once {"toolCallId":"t","kind":"edit","locations":[{"path":"src/../keys"},{"path":"/etc/x"}],`+
			`"content":[{"type":"diff","path":"/etc/x","newText":""},{"type":"diff","path":"/etc/y","newText":""}]}`, "wait p"))
	files := []string{"/etc/x", "/etc/y", s.cwd + "/keys"}
	slices.Sort(files)
	want := []string{"start other[]", fmt.Sprint("ask edit", files)}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the policy is told of other calls (-want +got):\n%s", diff)
	}
}

// TestQuestionsStandWhereTheyWereAsked: what the agent tells after a request stands
// after its question, however fast it goes on (R10).
func TestQuestionsStandWhereTheyWereAsked(t *testing.T) {
	s := set(t, agenttest.Options{})
	var steps, want []string
	for n := range 30 {
		id := fmt.Sprint("t", n)
		steps = append(steps,
			fmt.Sprintf(`ask p%d allow_once,reject_once {"toolCallId":%q,"title":"one","kind":"edit"}`, n, id), "say "+id)
		want = append(want, "start "+id+" one edit {}", "ask approve,deny", fmt.Sprintf("say %q", id))
	}
	s.Do(patient{s.agent}, lines(steps...))
	var got []string
	for line := range strings.Lines(story(s.Facts())) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "decide") && !strings.HasPrefix(line, "finish") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("other facts (-want +got):\n%s", diff)
	}
}

// gates tells how the questions ended, and what the last fact of each gate is.
func (s *stage) gates() string {
	var got []string
	gates := map[string]bool{}
	for _, rec := range s.Facts() {
		e := rec.Envelope()
		if r, ok := rec.(*narad.InterruptResolved); ok {
			got = append(got, r.Decision+" "+r.Reason)
		}
		gates[e.RunID] = gates[e.RunID] || facts.Gate(e)
		switch rec.(type) {
		case *narad.RunFinished, *narad.RunCancelled, *narad.RunError:
			if gates[e.RunID] {
				got = append(got, string(rec.Type()))
			}
		case *narad.ToolCallFinished:
			got = append(got, string(rec.Type()))
		}
	}
	return strings.Join(got, ", ")
}

// TestOpenPermissionsEnd: a question that nobody waits for is closed, in legal order, and
// says why.
func TestOpenPermissionsEnd(t *testing.T) {
	const ask = `ask p allow_once,reject_once {"toolCallId":"t","title":"one"}`
	for _, c := range []struct {
		name, script string
		stop         bool
		says, gates  string
	}{
		{"stopped", lines(ask, "say asked", "cancelled", "wait p"), true, "asked[p: cancelled]", "expired stopped, run.cancelled, tool.call.finished"},
		{"the agent does not wait", lines(ask, "say asked"), false, "asked", "expired turn_ended, run.finished, tool.call.finished"},
		{"the agent fails", lines(ask, "say asked", "error -32603 oh"), false, "asked", "expired turn_ended, run.finished, tool.call.finished"},
		{"the agent exits", lines(ask, "say asked", "exit 1"), false, "asked", "expired agent_gone, run.finished, tool.call.finished"},
		{
			"taken back", lines(ask, "cancel p", "wait p", "say on", "cancel p", "cancel other",
				`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}`),
			false, "[p: taken back]on", "expired withdrawn, run.finished, tool.call.finished",
		},
		{
			"one of two", lines(ask, `ask q allow_once,reject_once {"toolCallId":"u","title":"two"}`, "cancel q", "wait q", "say asked", "cancelled", "wait p"),
			true, "[q: taken back]asked[p: cancelled]", "expired withdrawn, run.finished, expired stopped, run.cancelled, tool.call.finished, tool.call.finished",
		},
		{
			"cancels that are none", lines(`raw {"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`,
				`raw {"jsonrpc":"2.0","method":"$/cancel_request","params":[]}`, `raw {"jsonrpc":"2.0","method":"$/cancel_request"}`, "say on"),
			false, "on", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{})
			r := s.Start(patient{s.agent}, c.script)
			if c.stop {
				s.until(r, func() bool { return strings.HasSuffix(s.says(), "asked") })
				r.Stop()
			}
			s.bounded(r)
			if got := s.says(); got != c.says {
				t.Errorf("got %q, want %q", got, c.says)
			}
			if got := s.gates(); got != c.gates {
				t.Errorf("got  %s\nwant %s", got, c.gates)
			}
			if refused := s.Refused(); len(refused) > 0 {
				t.Errorf("got refused records %q", refused)
			}
		})
	}
}

// An agent that finishes a call without waiting for the answer has asked for nothing: its
// question is closed, and it is not told that anybody denied.
func TestCallEndsBeforeItsPermission(t *testing.T) {
	s := set(t, agenttest.Options{})
	e := s.Do(s.agent, lines(`ask p allow_once,reject_once {"toolCallId":"t","title":"one"}`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`, "wait p", "end cancelled"))
	if got, want := s.gates(), "expired call_ended, run.finished, tool.call.finished"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.says(); got != "[p: cancelled]" || e.Code != "agent_cancelled" {
		t.Errorf("got %q and the end %+v, want a request that nobody decided", got, e)
	}
}

// TestDenialEndsTurn is what some agents do: they give up when something is denied.
func TestDenialEndsTurn(t *testing.T) {
	s := set(t, agenttest.Options{Answer: always("deny")})
	e := s.Do(s.agent, lines("ask p allow_once,reject_once "+askRun, "wait p", "end cancelled"))
	if e.Outcome != agent.Cancelled || e.Code != "denied" {
		t.Errorf("got %+v, want a run that is cancelled because of the denial", e)
	}
}

func TestPermissionOfDelegate(t *testing.T) {
	s := set(t, agenttest.Options{Answer: always("approve")})
	s.Do(s.agent, lines(
		`send {"sessionUpdate":"tool_call","toolCallId":"task","title":"task","status":"in_progress"}`,
		`send {"sessionUpdate":"tool_call","toolCallId":"in","title":"ls","status":"pending","_meta":{"parentToolCallId":"task"}}`,
		`ask p allow_once,reject_once {"toolCallId":"in","title":"ls"}`, `wait p`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"in","status":"completed"}`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"task","status":"completed"}`))
	var delegate, gate *narad.RunStarted
	for _, rec := range s.Facts() {
		if r, ok := rec.(*narad.RunStarted); ok && r.ParentRunID != "" {
			if facts.Gate(&r.Event) {
				gate = r
			} else {
				delegate = r
			}
		}
	}
	if delegate == nil || gate == nil || gate.ParentRunID != delegate.RunID {
		t.Errorf("got delegate %+v and gate %+v, want the gate below the delegate", delegate, gate)
	}
	if refused := s.Refused(); len(refused) > 0 {
		t.Errorf("got refused records %q", refused)
	}
}

func TestDenialOfDelegateAtWork(t *testing.T) {
	s := set(t, agenttest.Options{Answer: always("deny")})
	s.Do(s.agent, lines(
		`send {"sessionUpdate":"tool_call","toolCallId":"task","title":"task","status":"in_progress"}`,
		`send {"sessionUpdate":"tool_call","toolCallId":"in","title":"ls","status":"in_progress","_meta":{"parentToolCallId":"task"}}`,
		`ask p allow_once,reject_once {"toolCallId":"task","title":"task"}`, `wait p`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"in","status":"completed"}`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"task","status":"completed"}`))
	if got, want := sorted(s.finishes()), []string{"in=success", "task=cancelled denied"}; !cmp.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if refused := s.Refused(); len(refused) > 0 {
		t.Errorf("got refused records %q", refused)
	}
}

func TestUnreadablePermission(t *testing.T) {
	s := set(t, agenttest.Options{})
	s.Do(s.agent, lines(
		`raw {"jsonrpc":"2.0","id":"x","method":"session/request_permission","params":{"sessionId":"SESSION","options":7}}`, `wait x`,
		`raw {"jsonrpc":"2.0","id":"y","method":"session/request_permission","params":{"sessionId":"SESSION","options":[],"toolCall":{}}}`, `wait y`,
		`raw {"jsonrpc":"2.0","id":"z","method":"terminal/create","params":{}}`, `wait z`))
	if got, want := s.says(), "[x: error][y: error][z: error]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSteerIsUnsupported(t *testing.T) {
	s := set(t, agenttest.Options{})
	if err := s.agent.Steer(context.Background(), agent.Message{Content: "left"}); err == nil || s.kind.Steers() || s.kind.Resumes() {
		t.Errorf("got %v, want an agent that neither steers nor resumes", err)
	}
}
