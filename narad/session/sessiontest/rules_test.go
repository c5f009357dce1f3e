package sessiontest

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// A rule is a story whose last line is put to a strict and to a lenient reader. An
// answer is a result and a code; "" is "applied".
type rule struct{ story, strict, lenient string }

func (v Verdict) String() string { return strings.TrimSpace(v.Result + " " + v.Code) }

func checkRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, r := range rules {
		for strict, want := range map[bool]string{true: r.strict, false: r.lenient} {
			if want == "" {
				want = "applied"
			}
			if want == "-" {
				continue
			}
			if got := newStory(NewModel(strict, 0, "")).run(t, r.story); got.String() != want {
				t.Errorf("strict %v: got %v, want %v\n%s", strict, got, want, r.story)
			}
		}
	}
}

const (
	root    = "run.started run=r1;"
	paused  = root + "run.paused run=r1;"
	asked   = root + "interrupt.requested run=r1;"
	waiting = asked + "run.paused run=r1 interruptId=i1;"
	tool    = root + "tool.call.started run=r1;"
	child   = root + "run.started run=r1/c1 parentRunId=r1;"
	flow    = "workflow.started wf=w1;"
	asking  = flow + "interrupt.requested wf=w1 scope=workflow;"
	resting = asking + "workflow.paused wf=w1;"
	pack    = root + `interrupt.requested run=r1 input={"members":[{"requestId":"a"},{"requestId":"b"}]}; run.paused run=r1 interruptId=i1;`
)

func TestOrderOfJudgement(t *testing.T) {
	checkRules(t, []rule{
		{"server.heartbeat", "control", "control"},
		{"server.heartbeat sequence=1", "rejected invalid_control", "rejected invalid_control"},
		{"run.started run=r1 protocolVersion=narad/v2", "rejected unsupported_protocol", "rejected unsupported_protocol"},
		{"foo.bar", "rejected unknown_event", "rejected unknown_event"},
		{"run.started run=r1 -runId", "rejected invalid_record", "rejected invalid_record"},
		{root + "session.custom sessionId=other", "ignored other_session", "ignored other_session"},
		{root + "session.custom eventId=e1", "gap event_conflict", "gap event_conflict"},
		{root + "?session.custom eventId=e1; session.custom", "gap gap_active", "gap gap_active"},
		{root + "session.custom sessionSequence=1", "ignored sequence_passed", "ignored sequence_passed"},
		{root + "session.custom sessionSequence=3", "gap session_gap", "gap session_gap"},
		{root + "?session.custom sessionSequence=3; session.custom sessionId=other", "gap gap_active", "gap gap_active"},
		{root + "?session.custom sessionSequence=3; session.revision", "", ""},
		{"session.custom sessionSequence=2", "gap session_gap", "gap session_gap"},
		{"messages.snapshot coversThroughSessionSequence=4; session.custom sessionSequence=5", "", ""},
		{"messages.snapshot coversThroughSessionSequence=4; session.custom", "", ""},
		{"messages.snapshot coversThroughSessionSequence=4; session.custom sessionSequence=6", "gap session_gap", "gap session_gap"},
		{"messages.snapshot coversThroughSessionSequence=4; session.custom; session.custom sessionSequence=5", "gap session_gap", "gap session_gap"},
		{"workflow.started wf=w1 workflowSequence=2", "gap workflow_gap", "gap workflow_gap"},
		{flow + "?workflow.stop.requested wf=w1 workflowSequence=4; workflow.stop.requested wf=w1", "", ""},
		{"messages.snapshot coversThroughSessionSequence=4; workflow.started wf=w1 sessionSequence=5 workflowSequence=7", "", ""},
		{root + "?run.finished run=r2; session.custom sessionSequence=3", "gap session_gap", "gap session_gap"},
		{root + "?run.finished run=r2; session.custom", "", ""},
	})
}

func TestSameContentIsDuplicate(t *testing.T) {
	m := NewModel(true, 0, "s")
	a := `{"type":"session.custom","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","eventId":"e","sessionId":"s","sessionSequence":1,"name":"a.b","value":`
	b := `{"sessionSequence":1e0, "value":%,"name":"\u0061.b","eventId":"e","sessionId":"s","timestamp":"2026-08-05T00:00:00Z","protocolVersion":"narad/v1","type":"session.custom"}`
	for _, step := range []struct {
		line string
		want Verdict
	}{
		{a + `[100,9007199254740993,0]}`, applied},
		{strings.Replace(b, "%", "[1e2,9007199254740993,-0]", 1), duplicate},
		{strings.Replace(b, "%", "[100.0,9007199254740993.0,0]", 1), duplicate},
		{strings.Replace(b, "%", "[100,9007199254740992,0]", 1), gap("event_conflict")},
	} {
		if got := m.Apply([]byte(step.line)); got != step.want {
			t.Fatalf("got %v, want %v\n%s", got, step.want, step.line)
		}
	}
}

func TestProfilesThatWereNotNegotiated(t *testing.T) {
	for _, strict := range []bool{true, false} {
		s := newStory(NewModel(strict, narad.Workflow|narad.Conversation|narad.Graph, ""))
		for _, step := range []struct{ line, want string }{
			{"workflow.foo wf=w1", "ignored profile_not_negotiated"},
			{"workflow.edge.taken wf=w1 workflowSequence=3", "gap workflow_gap"},
			{"workflow.edge.taken wf=w1 -from", "ignored profile_not_negotiated"},
			{"message.redacted -messageId", "ignored profile_not_negotiated"},
			{"message.redacted sessionSequence=9", "gap session_gap"},
			{"workflow.revision", "ignored profile_not_negotiated"},
			{"graph.snapshot", "ignored profile_not_negotiated"},
			{"messages.snapshot", "ignored profile_not_negotiated"},
		} {
			if got := s.tell(t, step.line); got.String() != step.want {
				t.Errorf("strict %v, %s: got %v, want %s", strict, step.line, got, step.want)
			}
		}
		if got := s.m.Snapshot()["lastSessionSequence"]; got != Number("3") {
			t.Errorf("strict %v: cursor %v, want 3", strict, got)
		}
	}
}

func TestRunRules(t *testing.T) {
	checkRules(t, []rule{
		{root + "run.finished run=r1", "", ""},
		{root + "run.started run=r1", "rejected run_already_started", "rejected run_already_started"},
		{"run.started run=r1/c1 parentRunId=r1", "rejected parent_not_started", "applied parent_not_started"},
		{"run.started run=r1 parentRunId=r0", "rejected parent_not_started", "rejected parent_not_started"},
		{root + "run.finished run=r1; run.started run=r2 parentRunId=r1", "rejected parent_mismatch", ""},
		{"run.started run=r1 sequence=2", "rejected run_sequence", ""},
		{root + "run.started run=r2", "rejected execution_active", ""},
		{flow + "run.started run=r1", "rejected execution_active", ""},
		{flow + "run.started run=r1 wf=w1", "", ""},
		{flow + "run.started run=r1 wf=w2", "rejected workflow_not_started", ""},
		{flow + "run.started run=r1 wf=w1; run.finished run=r1", "rejected workflow_mismatch", ""},
		{flow + "run.started run=r1 wf=w1; run.started run=r1/c1 parentRunId=r1", "rejected workflow_mismatch", ""},
		{root + "run.started run=r1/c1", "rejected parent_not_started", ""},
		{root + "run.finished run=r1; run.started run=r2; run.started run=r2/c1 parentRunId=r1", "rejected parent_mismatch", ""},
		{child + "run.finished run=r1/c1; run.started run=r1/c2 parentRunId=c1", "rejected run_ended", ""},
		{paused + "run.started run=r1/c1 parentRunId=r1", "rejected run_not_running", ""},
		{root + "run.stop.requested run=r1 targetRunId=r1; run.started run=r1/c1 parentRunId=r1", "rejected run_stopped", ""},
		{child + "run.stop.requested run=r1 targetRunId=r1; run.started run=r1/c2 parentRunId=c1", "rejected run_stopped", ""},
		{root + "run.started run=r1/c1 parentRunId=r1 sequence=5", "rejected run_sequence", ""},
		{root + "run.started run=r1/c1 parentRunId=r1 parentToolCallId=t1", "rejected tool_not_open", ""},
		{tool + "run.started run=r1/c1 parentRunId=r1 parentToolCallId=t1", "", ""},
		{tool + "run.started run=r1/c1 parentRunId=r1; run.started run=r1/c2 parentRunId=c1 parentToolCallId=t1", "rejected tool_run_mismatch", ""},

		{"run.paused run=r1", "rejected run_not_started", "rejected run_not_started"},
		{paused + "run.paused run=r1", "rejected run_not_running", "rejected run_not_running"},
		{paused + "run.resumed run=r1", "", ""},
		{root + "run.resumed run=r1", "rejected run_not_paused", "rejected run_not_paused"},
		{paused + "run.resumed run=r1 waitId=w9", "rejected wait_mismatch", "rejected wait_mismatch"},
		{waiting + "run.resumed run=r1", "rejected open_interrupt", ""},
		{waiting + "interrupt.resolved run=r1; run.resumed run=r1", "", ""},
		{paused + "run.finished run=r1", "rejected run_paused", "rejected run_paused"},
		{root + "run.finished run=r1; run.cancelled run=r1", "rejected run_ended", "rejected run_ended"},
		{child + "run.finished run=r1", "rejected open_child", ""},
		{child + "run.finished run=r1/c1; run.finished run=r1", "", ""},
		{tool + "run.error run=r1", "rejected open_tool", ""},
		{tool + "tool.call.finished run=r1; run.error run=r1", "", ""},
		{root + "run.stop.requested run=r1 targetRunId=r9", "rejected run_not_started", "rejected run_not_started"},
		{child + "run.finished run=r1/c1; run.stop.requested run=r1 targetRunId=c1", "rejected run_ended", ""},
		{root + "run.finished run=r1; run.started run=r2; run.stop.requested run=r2 targetRunId=r1", "rejected root_mismatch", ""},
		{root + "session.custom run=r1 sequence=5", "rejected run_sequence", ""},
		{root + "session.custom run=r9", "rejected run_not_started", ""},
		{child + "session.custom run=r9/c1", "rejected root_mismatch", ""},
		{root + "run.finished run=r1; session.custom run=r1", "rejected run_ended", ""},
	})
}

func TestToolRules(t *testing.T) {
	checkRules(t, []rule{
		{"tool.call.started run=r1", "rejected run_not_started", "rejected run_not_started"},
		{paused + "tool.call.started run=r1", "rejected run_not_running", "rejected run_not_running"},
		{tool + "tool.call.started run=r1", "rejected tool_already_started", "rejected tool_already_started"},
		{tool + "tool.call.finished run=r1; tool.call.started run=r1", "rejected tool_already_started", "rejected tool_already_started"},
		{root + "run.stop.requested run=r1 targetRunId=r1; tool.call.started run=r1", "rejected run_stopped", ""},
		{child + "run.stop.requested run=r1 targetRunId=r1; tool.call.started run=r1/c1", "rejected run_stopped", ""},
		{root + "tool.call.started run=r1 executor=client", "rejected client_executor_missing", ""},
		{"run.started run=r1 clientExecutorId=d; tool.call.started run=r1 executor=client", "", ""},
		{root + "tool.call.finished run=r1", "rejected tool_not_open", "rejected tool_not_open"},
		{tool + "tool.call.finished run=r1; tool.call.finished run=r1", "rejected tool_not_open", "rejected tool_not_open"},
		{child + "tool.call.started run=r1/c1; tool.call.finished run=r1", "rejected tool_run_mismatch", "rejected tool_run_mismatch"},
		{tool + "tool.call.started run=r1 toolCallId=t2; tool.call.finished run=r1 toolCallId=t2; tool.call.finished run=r1", "", ""},
		{"progress.recorded run=r1", "rejected run_not_started", "rejected run_not_started"},
		{paused + "progress.recorded run=r1", "", ""},
		{root + "run.finished run=r1; progress.recorded run=r1", "rejected run_ended", "rejected run_ended"},
	})
}

func TestInterruptRules(t *testing.T) {
	checkRules(t, []rule{
		{"interrupt.requested run=r1", "rejected run_not_started", "rejected run_not_started"},
		{paused + "interrupt.requested run=r1", "rejected run_not_running", "rejected run_not_running"},
		{asked + "interrupt.requested run=r1 interruptId=i2", "rejected pause_must_follow", "rejected pause_must_follow"},
		{asked + "progress.recorded run=r1", "rejected pause_must_follow", "rejected pause_must_follow"},
		{asked + "session.custom", "", ""},
		{child + "interrupt.requested run=r1; progress.recorded run=r1/c1", "rejected pause_must_follow", ""},
		{asked + "run.paused run=r1", "rejected pause_mismatch", ""},
		{asked + "run.paused run=r1 interruptId=i1 waitId=w9", "rejected pause_mismatch", ""},
		{root + "run.paused run=r1 interruptId=i1", "rejected pause_mismatch", ""},
		{waiting + "interrupt.resolved run=r1; run.resumed run=r1; interrupt.requested run=r1", "rejected interrupt_already_requested", ""},
		{waiting + "?run.resumed run=r1; interrupt.requested run=r1 interruptId=i2", "rejected run_not_running", "rejected interrupt_open"},
		{waiting + "?run.resumed run=r1; interrupt.requested run=r1", "rejected run_not_running", "rejected interrupt_already_requested"},
		{waiting + "interrupt.resolved run=r1 interruptId=i2", "rejected interrupt_not_open", "rejected interrupt_not_open"},
		{waiting + "interrupt.resolved run=r1; interrupt.resolved run=r1", "rejected interrupt_not_open", "rejected interrupt_not_open"},
		{waiting + "interrupt.resolved run=r1 waitId=w9", "rejected wait_mismatch", "rejected wait_mismatch"},
		{child + "interrupt.requested run=r1/c1; run.paused run=r1/c1 interruptId=i1; interrupt.resolved run=r1", "rejected interrupt_mismatch", ""},
		{waiting + "interrupt.resolved run=r1 decision=approved", "rejected decision_not_offered", "rejected decision_not_offered"},
		{waiting + "interrupt.resolved run=r1 decision=expired", "", ""},
		{waiting + `interrupt.resolved run=r1 members=[{"requestId":"a","decision":"maybe"}]`, "rejected decision_not_offered", "rejected decision_not_offered"},
		{pack + `interrupt.resolved run=r1 members=[{"requestId":"a","decision":"approve"}]`, "rejected member_mismatch", ""},
		{pack + `interrupt.resolved run=r1 members=[{"requestId":"a","decision":"approve"},{"requestId":"a","decision":"approve"}]`, "rejected member_mismatch", ""},
		{pack + `interrupt.resolved run=r1 members=[{"requestId":"a","decision":"approve"},{"requestId":"c","decision":"approve"}]`, "rejected member_mismatch", ""},
		{pack + `interrupt.resolved run=r1 members=[{"requestId":"b","decision":"approve"},{"requestId":"a","decision":"approve"}]`, "", ""},
		{pack + `interrupt.resolved run=r1 members=[{"requestId":"b","decision":"deny"},{"requestId":"a","decision":"approve"}]`, "rejected fold_mismatch", ""},
		{pack + `interrupt.resolved run=r1 decision=deny members=[{"requestId":"b","decision":"deny"},{"requestId":"a","decision":"approve"}]`, "", ""},
		{pack + `interrupt.resolved run=r1 decision=deny members=[{"requestId":"b","decision":"deny"},{"requestId":"a","decision":"stop"}]`, "rejected fold_mismatch", ""},
		{pack + `interrupt.resolved run=r1 decision=expired members=[{"requestId":"b","decision":"expired"},{"requestId":"a","decision":"expired"}]`, "", ""},
		{root + "run.finished run=r1; interrupt.resolved run=r1", "rejected run_ended", "rejected interrupt_not_open"},
	})
}

func TestNestedRunsAndProjections(t *testing.T) {
	const copied = " sourceEventId=x sourceSessionId=y -sequence"
	checkRules(t, []rule{
		{root + "run.started run=r1/c1 parentRunId=r1" + copied, "rejected invalid_record", ""},
		{root + "interrupt.requested run=r1/c1" + copied, "rejected invalid_record", "applied run_not_started"},
		{root + "run.finished run=r1/c1", "rejected run_not_started", "applied run_not_started"},
		{root + "run.finished run=r1; run.cancelled run=r1" + copied, "rejected invalid_record", "applied run_ended"},
		{root + "message.text.delta run=r1/c1", "rejected run_not_started", "applied message_not_found"},
	})
	s := newStory(NewModel(false, 0, ""))
	s.run(t, child+"interrupt.requested run=r1/c1"+copied+"; progress.recorded run=r1/c1")
	if got := s.m.Snapshot()["runs"].(object)["c1"].(object)["state"]; got != "running" {
		t.Errorf("after a projected interrupt its run is %v, want running", got)
	}
}
