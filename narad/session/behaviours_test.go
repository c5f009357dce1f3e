package session_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The public client's own tests pin what a Narad client does. Each line of them
// that speaks of a state is told here again, under its own number and with our own
// records, as a client sees it: leniently. Where a ruling decides otherwise, the
// test holds what was decided, and says so.

// A behaviour is one such line: its number, and the story in the form of testdata.
type behaviour struct{ id, story string }

func tell(t *testing.T, behaviours []behaviour) {
	t.Helper()
	for _, b := range behaviours {
		t.Run(b.id, func(t *testing.T) {
			s := &scenario{path: b.id}
			for _, text := range strings.Split(strings.TrimSpace(b.story), "\n") {
				s.lines = append(s.lines, parseLine(strings.TrimSpace(text)))
			}
			s.play(t, 1, map[session.Code]bool{})
			s.compare(t)
		})
	}
}

func TestBehavioursOfOrder(t *testing.T) {
	tell(t, []behaviour{
		{"R1", `
			run.started run=r1
			run.finished run=r1 seq=3 tree=2
			= gap session_gap
			? sessionGap = true`},
		{"R2", `
			run.started run=r1
			run.finished run=r1 seq=3
			= gap session_gap
			run.finished run=r1 seq=2
			= gap gap_active
			? lastSessionSequence = 1
			cleargap
			run.finished run=r1 seq=2`},
		{"R3", `
			session parent-session
			run.started run=r1
			interrupt.requested session=child-session seq=2 run=r-child int=i1 wait=w1
			= ignored other_session
			? sessionGap = false
			? lastSessionSequence = 1`},
		{"R4", `
			run.started run=r1 id=e1 at="2026-08-05T00:00:00Z"
			run.started run=r1 id=e-stale at="2026-08-05T00:00:01Z" seq=1 tree=1
			= ignored sequence_passed
			? sessionGap = false`},
		{"R5", `
			run.started run=r1
			tool.call.started run=r1 tool=invoke-1
			tool.call.finished run=r1 tool=fetch-1 outcome=cancelled code=denied
			= rejected tool_not_open
			? lastSessionSequence = 2
			? tools.invoke-1.open = true
			tool.call.finished run=r1 tool=invoke-1 seq=4 tree=4
			= gap session_gap
			? sessionGap = true
			? tools.invoke-1.open = true`},
		{"R6", `
			run.started run=root-1
			tool.call.started run=root-1 tool=invoke-1
			run.started run=child-1 root=root-1 parent=root-1 parentTool=invoke-1 source=child-run
			tool.call.finished run=root-1 tool=invoke-1 tree=27
			? sessionGap = false
			? lastSessionSequence = 4`},
	})
}

func TestBehavioursOfRuns(t *testing.T) {
	tell(t, []behaviour{
		{"R7", `
			run.started run=root-1
			run.resumed run=root-1 wait="wait:child-inner"
			= rejected run_not_paused
			? lastSessionSequence = 1
			? runs.root-1.state = "running"`},
		{"R8", `
			run.started run=r1 at="2026-08-05T00:00:00Z"
			run.finished run=r1 at="2026-08-05T00:00:02Z" usage={"promptTokens":120,"completionTokens":45,"totalTokens":165,"elapsedMs":1500}
			? runs.r1.state = "finished"
			? runs.r1.startedAt = "2026-08-05T00:00:00Z"
			? runs.r1.completedAt = "2026-08-05T00:00:02Z"
			? runs.r1.usage = {"promptTokens":120,"completionTokens":45,"totalTokens":165,"elapsedMs":1500}`},
		{"R9", `
			run.started run=r1
			tool.call.started run=r1 tool=invoke-1
			tool.call.started run=r1 tool=fetch-1
			tool.call.finished run=r1 tool=fetch-1 outcome=cancelled code=denied
			tool.call.finished run=r1 tool=invoke-1 response={"result":"84"}
			? tools.invoke-1.open = false
			? tools.fetch-1.open = false
			? sessionGap = false
			? lastSessionSequence = 5`},
	})
}

// A projection is a row that another host copied from a child's session.
func TestBehavioursOfProjections(t *testing.T) {
	const child = `
		run.started run=root-1
		tool.call.started run=root-1 tool=invoke-1
		run.started run=child-1 root=root-1 parent=root-1 parentTool=invoke-1 source=child-run`
	tell(t, []behaviour{
		{"P1", child + `
			? sessionGap = false
			? runs.child-1.state = "running"`},
		{"P2", child + `
			interrupt.requested run=child-1 root=root-1 int=apr-inner wait="wait:apr-inner" source=child-int input={"toolCallId":"t9","toolName":"roll"}
			? sessionGap = false
			? runs.child-1.state = "running"
			? interrupts.apr-inner.open = true`},
		{"P3", child + `
			interrupt.requested run=child-1 root=root-1 int=apr-inner wait="wait:apr-inner" source=child-int
			tool.call.finished run=root-1 tool=invoke-1 seq=5 tree=3
			? sessionGap = false`},
		// R20: applied, so that the cursor moves, but neither a run nor its interrupt is made up.
		{"P4", `
			run.started run=root-1
			interrupt.requested run=child-missing root=root-1 int=apr-orphan wait="wait:apr-orphan" source=a
			= applied run_not_started
			? lastSessionSequence = 2
			? interrupts = absent
			? runs.child-missing = absent
			interrupt.resolved run=child-missing root=root-1 int=apr-orphan wait="wait:apr-orphan" source=b
			= applied interrupt_not_open
			? lastSessionSequence = 3
			? sessionGap = false`},
		{"P5", child + `
			run.finished run=child-1 root=root-1 tree=1 parentRunId=root-1 parentToolCallId=invoke-1
			? sessionGap = false
			? lastSessionSequence = 4
			? runs.child-1.state = "finished"`},
		// R20: the last event is passed over, since its run is paused; the client of the
		// protocol's authors ends the run.
		{"P6", `
			run.started run=root-parent
			interrupt.requested run=root-parent int=apr-outer wait="wait:apr-outer"
			run.paused run=root-parent wait="wait:apr-outer" reason=tool_approval resumeMode=command
			interrupt.resolved run=root-parent int=apr-outer wait="wait:apr-outer"
			run.resumed run=root-parent wait="wait:apr-outer"
			tool.call.started run=root-parent tool=invoke-1 args={"message":"roll a d100"}
			run.started run=child-roller root=root-parent parent=root-parent parentTool=invoke-1 source=c1
			interrupt.requested run=child-roller root=root-parent int=apr-inner wait="wait:apr-inner" source=c2
			run.paused run=child-roller root=root-parent wait="wait:apr-inner" int=apr-inner source=c3
			run.finished run=child-roller root=root-parent tree=1
			= applied run_paused
			? sessionGap = false
			? lastSessionSequence = 10
			? runs.child-roller.state = "paused"`},
	})
}

func TestBehavioursOfWorkflows(t *testing.T) {
	const reviewed = `
		workflow.started wf=wf-1
		workflow.step.started wf=wf-1 node=step-1
		workflow.step.finished wf=wf-1 node=step-1
		interrupt.requested wf=wf-1 scope=workflow int=wrev-1 wait="wait:wrev-1" kind=workflow_review actions=["approve","request_changes"]
		workflow.paused wf=wf-1 wait="wait:wrev-1" int=wrev-1
		workflow.edge.taken wf=wf-1 from=step-1 to=step-3 caseIndex=1 pointer="" op=default
		= rejected workflow_not_running
		? lastSessionSequence = 5`
	const chosen = reviewed + `
		interrupt.resolved wf=wf-1 scope=workflow int=wrev-1 wait="wait:wrev-1" decision=approve seq=6 wseq=6
		workflow.resumed wf=wf-1 wait="wait:wrev-1" seq=7 wseq=7
		workflow.edge.taken wf=wf-1 from=step-1 to=step-3 caseIndex=1 pointer="" op=default seq=8 wseq=8
		? workflows.wf-1.state = "running"
		? workflows.wf-1.currentNodeId = "step-3"
		? workflows.wf-1.transitions = [{"from":"step-1","to":"step-3","caseIndex":1,"pointer":"","op":"default","workflowSequence":8}]`
	tell(t, []behaviour{
		{"W1", `
			workflow.started wf=wf-1
			interrupt.requested wf=wf-1 scope=workflow int=wrev-1 wait="wait:wrev-1" kind=workflow_review actions=["approve","request_changes","stop_run"]
			workflow.paused wf=wf-1 wait="wait:wrev-1" int=wrev-1
			? interrupts.wrev-1.scope = "workflow"
			? interrupts.wrev-1.open = true
			? workflows.wf-1.state = "paused"
			? workflows.wf-1.openWaitId = "wait:wrev-1"`},
		{"W2", reviewed},
		{"W3", chosen},
		{"W4", chosen + `
			workflow.step.started wf=wf-1 node=step-3
			workflow.step.finished wf=wf-1 node=step-3
			workflow.finished wf=wf-1
			? workflows.wf-1.state = "finished"
			? workflows.wf-1.lastWorkflowSequence = 11
			? workflows.wf-1.transitions.1 = absent
			? sessionGap = false`},
		{"W5", `
			workflow.started wf=wf-1
			workflow.edge.taken wf=wf-1 to=step-3
			= rejected invalid_record
			? lastSessionSequence = 1
			? workflows.wf-1.transitions = absent`},
	})
}

func TestBehavioursOfInterrupts(t *testing.T) {
	const paused = `
		run.started run=r1
		interrupt.requested run=r1 int=a wait="wait:a" actions=["approve","deny"]
		run.paused run=r1 wait="wait:a" int=a reason=interrupt`
	tell(t, []behaviour{
		{"H1", paused + `
			interrupt.resolved run=r1 int=a wait="wait:a" decision=approve
			run.resumed run=r1 wait="wait:a"
			? runs.r1.state = "running"
			? lastSessionSequence = 5`},
		{"H2", paused + `
			interrupt.requested run=r1 int=b wait="wait:b"
			= rejected run_not_running
			? sessionGap = false
			? lastSessionSequence = 3
			run.paused run=r1 wait="wait:b" int=b seq=5 tree=5
			= gap session_gap
			? sessionGap = true
			interrupt.resolved run=r1 int=a wait="wait:a" seq=6 tree=6
			= gap gap_active
			? interrupts.a.open = true`},
		{"H3", `
			run.started run=r1
			interrupt.requested run=r1 int=a wait="wait:a"
			interrupt.requested run=r1 int=b wait="wait:b"
			= rejected pause_must_follow`},
		{"H4", `
			run.started run=r1
			interrupt.requested run=r1 int=a wait="wait:a" input={"toolCallId":"call-1","toolName":"invoke_agent_roller"}
			run.paused run=r1 wait="wait:a" int=a
			? runs.r1.state = "paused"
			? runs.r1.openWaitId = "wait:a"
			? runs.r1.openInterruptId = "a"
			? interrupts.a.open = true
			? sessionGap = false`},
		{"H5", paused + `
			interrupt.resolved run=r1 int=a wait="wait:a" decision=approved
			= rejected decision_not_offered
			? interrupts.a.open = true`},
		{"H6", `
			run.started run=r1
			interrupt.requested run=r1 int=apr-pack wait=w input={"members":[{"requestId":"apr-pack","toolCallId":"call-1","toolName":"invoke_agent"},{"requestId":"apr-fetch","toolCallId":"call-2","toolName":"fetch"}]}
			run.paused run=r1 wait=w int=apr-pack
			interrupt.resolved run=r1 int=apr-pack wait=w decision=deny members=[{"requestId":"apr-pack","toolCallId":"call-1","toolName":"invoke_agent","decision":"deny"},{"requestId":"apr-fetch","toolCallId":"call-2","toolName":"fetch","decision":"approve"}]
			? interrupts.apr-pack.open = false
			? interrupts.apr-pack.decision = "deny"
			? interrupts.apr-pack.members = [{"requestId":"apr-pack","toolCallId":"call-1","toolName":"invoke_agent","decision":"deny"},{"requestId":"apr-fetch","toolCallId":"call-2","toolName":"fetch","decision":"approve"}]`},
	})
}

func TestBehavioursOfIdentity(t *testing.T) {
	tell(t, []behaviour{
		{"D1", `
			run.started run=r1 id=e1
			run.started run=r1 id=e1 client=changed seq=1 tree=1
			= gap event_conflict
			? sessionGap = true`},
	})
	t.Run("D2", func(t *testing.T) {
		p := newPlayer(session.Options{Remember: session.RememberAll}, false)
		mustPlay(t, p, "run.started run=r1", "applied")
		before := p.state.SnapshotJSON()
		mustPlay(t, p, "same", "duplicate")
		if after := p.state.SnapshotJSON(); !bytes.Equal(before, after) {
			t.Errorf("after a duplicate\ngot  %s\nwant %s", after, before)
		}
	})
	// The order of names is no content, so a respelled repetition is a duplicate; the
	// client of the protocol's authors takes it for a conflict.
	t.Run("D3", func(t *testing.T) {
		p := newPlayer(session.Options{Remember: session.RememberAll}, false)
		one := `{"type":"session.custom","protocolVersion":"narad/v1","eventId":"a","timestamp":"2026-08-05T00:00:00Z","sessionId":"s1","sessionSequence":1,"name":"test.note","value":{"x":1,"y":2}}`
		two := `{"value":{"y":2,"x":1},"name":"test.note","sessionSequence":1,"sessionId":"s1","timestamp":"2026-08-05T00:00:00Z","eventId":"a","protocolVersion":"narad/v1","type":"session.custom"}`
		mustPlay(t, p, "json "+one, "applied")
		mustPlay(t, p, "json "+two, "duplicate")
	})
	t.Run("D4", func(t *testing.T) {
		p := newPlayer(session.Options{Remember: 128}, false)
		mustPlay(t, p, "run.started run=r1", "applied")
		for range 327 {
			mustPlay(t, p, "run.stop.requested run=r1", "applied")
		}
		mustPlay(t, p, "same e328", "duplicate")
		mustPlay(t, p, "same e201", "duplicate") // the oldest of 128
		// What is forgotten is still known by its sequence, but no conflict is seen.
		mustPlay(t, p, "same e200", "ignored sequence_passed")
		mustPlay(t, p, "run.stop.requested run=r1 id=e1 seq=1", "ignored sequence_passed")
		if p.state.HasGap() {
			t.Error("a forgotten id latched a gap")
		}
	})
}

func mustPlay(t *testing.T, p *player, text, want string) {
	t.Helper()
	got, err := p.play(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if got.String() != want {
		t.Fatalf("%s\ngot  %s\nwant %s", p.previous, got, want)
	}
}

func TestBehavioursOfTranscripts(t *testing.T) {
	const two = `
		message.user.recorded msg=m1 text="roll a 55-sided die"
		message.user.recorded msg=m2 text="roll a d222"`
	tell(t, []behaviour{
		{"M1", `
			reasoning.started reasoning=reasoning-1
			messages.snapshot covers=2 messages=[{"messageId":"m1","role":"user","content":"hello"}]
			? reasoning = absent`},
		{"M2", two + `
			messages.snapshot covers=0
			= ignored snapshot_unchanged
			? messages.0.messageId = "m1"
			? messages.1.messageId = "m2"
			? lastSessionSequence = 2`},
		{"M3", two + `
			messages.snapshot covers=1 messages=[{"messageId":"m1","role":"user","content":"roll a 55-sided die"}]
			= ignored snapshot_unchanged
			? messages.0.content = "roll a 55-sided die"
			? messages.1.content = "roll a d222"`},
		{"M4", two + `
			messages.snapshot covers=1 messages=[{"messageId":"m1","role":"user","content":"roll a 55-sided die (edited)"}]
			? messages.0.content = "roll a 55-sided die (edited)"
			? messages.1.content = "roll a d222"
			? lastSessionSequence = 2`},
		{"M5", `
			session s1
			messages.snapshot covers=2 messages=[{"messageId":"m1","role":"user","content":"hello"}]
			run.started run=run-5
			? sessionGap = false
			? lastSessionSequence = 1`},
		{"M6", `
			run.started run=r1
			message.user.recorded msg=m1 text=hello
			tool.call.started run=r1 tool=t1
			messages.snapshot covers=2 messages=[{"messageId":"m1","role":"user","content":"hello"}]
			= ignored snapshot_unchanged
			? lastSessionSequence = 3
			tool.call.finished run=r1 tool=t1
			interrupt.requested run=r1 int=i1 wait=w1
			run.paused run=r1 wait=w1 int=i1
			? lastSessionSequence = 6
			? interrupts.i1.open = true
			? runs.r1.state = "paused"`},
	})
}

func TestBehavioursOfState(t *testing.T) {
	tell(t, []behaviour{
		{"ST1", `
			session s-state
			state.snapshot rev=1 state={"a":1}
			state.compacted covers=2 snapshotRevision=5
			? state.session.resyncRequired = true
			? resyncRequired = true`},
	})
}

func TestBehavioursOfSafety(t *testing.T) {
	tell(t, []behaviour{
		{"V1", `
			json {"type":"run.started","protocolVersion":"narad/v1"}
			= rejected unknown_record`},
		// The specification wins (§2.1): ignored, and the cursor goes on behind it.
		{"V2", `
			without workflow,conversation,attachments,artifacts,state,ui,graph,progress,workspace,extensions,trace,debug
			run.started run=r1
			progress.recorded run=r1 progress=p1
			= ignored profile_not_negotiated
			? progress = absent
			? lastSessionSequence = 2`},
		{"V3", `
			without workflow,conversation,attachments,artifacts,state,ui,graph,workspace,extensions,trace,debug
			run.started run=r1
			progress.recorded run=r1 progress=p1
			? progress.r1.p1.status = "active"`},
		{"V4", `
			state.snapshot rev=1 state={}
			state.delta base=1 rev=2 patch=[{"op":"add","path":"/__proto__/polluted","value":true}]
			= rejected unsafe_patch_path
			? state.session.state = {}`},
		{"V5", `
			state.snapshot rev=1 state={}
			state.delta base=1 rev=2 patch=[{"op":"invoke","path":"/a"}]
			= rejected invalid_patch`},
	})
	t.Run("V9", func(t *testing.T) {
		for wraps, want := range map[int]string{62: "applied", 63: "rejected json_depth_exceeded", 68: "rejected json_depth_exceeded"} {
			payload := strings.Repeat(`{"child":`, wraps) + `{"leaf":true}` + strings.Repeat("}", wraps)
			p := newPlayer(session.Options{}, false)
			mustPlay(t, p, "run.started run=r1 payload="+payload, want)
		}
		var refusal *narad.Error
		_, err := narad.Decode([]byte(strings.Repeat("[", 70) + strings.Repeat("]", 70)))
		if !errors.As(err, &refusal) {
			t.Errorf("got %v, want a *narad.Error", err)
		}
	})
}
