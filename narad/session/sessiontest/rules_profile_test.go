package sessiontest

import "testing"

func TestWorkflowRules(t *testing.T) {
	checkRules(t, []rule{
		{flow + "workflow.finished wf=w1", "", ""},
		{flow + "workflow.started wf=w1", "rejected workflow_already_started", ""},
		{flow + "workflow.started wf=w2", "rejected execution_active", ""},
		{root + "workflow.started wf=w1", "rejected execution_active", ""},
		{"workflow.paused wf=w1", "rejected workflow_not_started", "rejected workflow_not_started"},
		{"workflow.resumed wf=w1", "rejected workflow_not_started", "rejected workflow_not_started"},
		{"workflow.edge.taken wf=w1", "rejected workflow_not_started", "rejected workflow_not_started"},
		{"workflow.step.started wf=w1", "rejected workflow_not_started", ""},
		{"session.custom wf=w1", "rejected workflow_not_started", ""},
		{flow + "workflow.finished wf=w1; session.custom wf=w1", "rejected workflow_ended", ""},
		{flow + "workflow.finished wf=w1; workflow.edge.taken wf=w1", "rejected workflow_ended", "rejected workflow_not_running"},
		{resting + "workflow.paused wf=w1", "rejected workflow_not_running", "rejected workflow_not_running"},
		{flow + "workflow.paused wf=w1", "rejected pause_mismatch", ""},
		{asking + "workflow.paused wf=w1 waitId=w9", "rejected pause_mismatch", ""},
		{asking + "workflow.step.started wf=w1", "rejected pause_must_follow", "rejected pause_must_follow"},
		{asking + "session.custom", "", ""},
		{"interrupt.requested wf=w1 scope=workflow", "rejected workflow_not_started", "rejected workflow_not_started"},
		{resting + "interrupt.requested wf=w1 scope=workflow interruptId=i2", "rejected workflow_not_running", "rejected workflow_not_running"},
		{resting + "interrupt.resolved wf=w1 scope=workflow", "", ""},
		{resting + "interrupt.resolved wf=w1 scope=workflow; workflow.resumed wf=w1", "", ""},
		{resting + "workflow.resumed wf=w1", "rejected open_interrupt", ""},
		{flow + "workflow.resumed wf=w1", "rejected workflow_not_paused", "rejected workflow_not_paused"},
		{resting + "workflow.resumed wf=w1 waitId=w9", "rejected wait_mismatch", "rejected wait_mismatch"},
		{resting + "workflow.finished wf=w1", "rejected open_interrupt", ""},
		{resting + "interrupt.resolved wf=w1 scope=workflow; workflow.finished wf=w1", "", ""},
		{resting + "workflow.edge.taken wf=w1", "rejected workflow_not_running", "rejected workflow_not_running"},
		{flow + "run.started run=r1 wf=w1; workflow.finished wf=w1", "rejected open_run", ""},
		{flow + "run.started run=r1 wf=w1; run.finished run=r1 wf=w1; workflow.finished wf=w1", "", ""},
		{flow + "workflow.step.started wf=w1; workflow.step.started wf=w1", "rejected step_already_started", ""},
		{flow + "workflow.step.finished wf=w1", "rejected step_not_started", ""},
		{flow + "workflow.step.started wf=w1; workflow.step.failed wf=w1; workflow.step.finished wf=w1", "rejected step_not_started", ""},
		{flow + "workflow.step.started wf=w1; workflow.step.failed wf=w1; workflow.step.started wf=w1", "", ""},
		{flow + "workflow.edge.taken wf=w1", "", ""},
		{flow + "workflow.edge.taken wf=w1; workflow.edge.taken wf=w1", "rejected workflow_edge_source", "rejected workflow_edge_source"},
		{"workflow.started wf=w1 nodeId=b; workflow.edge.taken wf=w1", "rejected workflow_edge_source", "rejected workflow_edge_source"},
		{flow + "workflow.step.started wf=w1; workflow.edge.taken wf=w1", "", ""},
	})
}

func TestMessageRules(t *testing.T) {
	const begun = "message.text.started;"
	checkRules(t, []rule{
		{"message.user.recorded; message.user.recorded", "rejected message_exists", ""},
		{"message.user.recorded; message.text.started", "rejected message_exists", ""},
		{"message.text.delta", "rejected message_not_found", "rejected message_not_found"},
		{"message.redacted", "rejected message_not_found", "rejected message_not_found"},
		{"message.user.recorded; message.text.delta", "rejected message_completed", ""},
		{begun + "message.text.completed; message.text.delta", "rejected message_completed", ""},
		{begun + "message.text.completed; message.text.completed", "rejected message_completed", ""},
		{begun + "message.text.delta; message.redacted; message.text.delta", "", ""},
		{child + "message.text.started run=r1; message.text.delta run=r1/c1", "rejected message_run_mismatch", ""},
		{child + "message.text.started run=r1; message.text.delta", "", ""},
		{"reasoning.delta", "rejected reasoning_not_found", "rejected reasoning_not_found"},
		{"reasoning.completed", "rejected reasoning_not_found", "rejected reasoning_not_found"},
		{"reasoning.started; reasoning.started", "rejected reasoning_exists", ""},
		{"reasoning.started; reasoning.completed; reasoning.delta", "rejected reasoning_completed", ""},
		{"reasoning.started; reasoning.delta; reasoning.completed", "", ""},
	})
}

func TestMaterialRules(t *testing.T) {
	checkRules(t, []rule{
		{"attachment.added; attachment.ready; attachment.removed", "", ""},
		{"attachment.added; attachment.removed", "", ""},
		{"attachment.added; attachment.added", "rejected attachment_order", ""},
		{"attachment.ready", "rejected attachment_order", ""},
		{"attachment.added; attachment.ready; attachment.failed", "rejected attachment_order", ""},
		{"attachment.removed", "rejected attachment_order", ""},
		{"attachment.added; attachment.removed; attachment.removed", "rejected attachment_order", ""},
		{"artifact.added; artifact.failed", "", ""},
		{"artifact.ready", "rejected artifact_order", ""},
		{"artifact.added; artifact.added", "rejected artifact_order", ""},
		{"artifact.added; artifact.ready; artifact.ready", "rejected artifact_order", ""},
	})
}

func TestStateRules(t *testing.T) {
	const held = "state.snapshot;"
	checkRules(t, []rule{
		{held + "state.snapshot", "rejected state_revision", ""},
		{held + "state.snapshot revision=2", "", ""},
		{held + "ui.state.snapshot", "", ""},
		{"state.delta", "rejected state_not_found", ""},
		{held + "state.delta", "", ""},
		{held + "state.delta baseRevision=2 revision=3", "rejected state_revision", ""},
		{held + `state.delta patch=[{"op":"remove","path":"/x"}]`, "rejected invalid_patch", "rejected invalid_patch"},
		{held + `state.delta patch=[{"op":"add","path":"/__proto__","value":1}]`, "rejected unsafe_patch_path", "rejected unsafe_patch_path"},
		{held + `state.delta patch=[]`, "rejected invalid_patch", "rejected invalid_patch"},
		{"state.compacted", "rejected state_not_found", "rejected state_not_found"},
		{held + "state.compacted", "", ""},
		{held + "state.compacted coversThroughSessionSequence=3", "rejected state_revision", ""},
		{"state.snapshot revision=4; state.compacted", "rejected state_revision", ""},
		{"view.updated", "rejected view_not_open", "rejected view_not_open"},
		{"view.closed", "rejected view_not_open", "rejected view_not_open"},
		{"view.opened; view.opened", "rejected view_open", ""},
		{"view.opened; view.closed; view.opened", "", ""},
		{"view.opened; view.closed; view.updated", "rejected view_not_open", ""},
		{"view.opened; view.updated", "", ""},
		{`view.opened; view.updated patch=[{"op":"remove","path":"/x"}]`, "rejected invalid_patch", "rejected invalid_patch"},
	})
}

func TestWatchRules(t *testing.T) {
	checkRules(t, []rule{
		{"session.revision; session.revision revision=3", "", ""},
		{"session.revision; session.revision", "rejected watch_regressed", "ignored watch_regressed"},
		{"session.revision; run.revision", "", ""},
		{"run.revision; run.revision runId=r2", "", ""},
		{"node.revision; node.revision nodeId=b", "", ""},
		{"workspace.revision; session.created", "rejected watch_regressed", "ignored watch_regressed"},
		{"session.revision; session.revision sessionId=other revision=2", "ignored other_session", "ignored other_session"},
		{"session.custom; session.created sessionId=other", "", ""},
		{"session.revision eventId=e9; session.custom eventId=e9", "gap event_conflict", "gap event_conflict"},
		{"workspace.revision eventId=e9; session.custom eventId=e9", "", ""},
		{"session.custom eventId=e9; session.revision eventId=e9", "gap event_conflict", "gap event_conflict"},
		{"session.revision eventId=e9; session.revision eventId=e9", "duplicate", "duplicate"},
	})
}

func TestHydrateRules(t *testing.T) {
	const two = "message.user.recorded; message.user.recorded messageId=m2;"
	checkRules(t, []rule{
		{"graph.snapshot", "ignored profile_not_negotiated", "ignored profile_not_negotiated"},
		{two + "messages.snapshot sessionId=other", "rejected other_session", "rejected other_session"},
		{two + "messages.snapshot", "ignored snapshot_unchanged", "ignored snapshot_unchanged"},
		{two + `messages.snapshot coversThroughSessionSequence=1 messages=[{"messageId":"m1","role":"user","content":"hi"}]`, "ignored snapshot_unchanged", "ignored snapshot_unchanged"},
		{two + `messages.snapshot coversThroughSessionSequence=1 messages=[{"messageId":"m1","role":"user","content":"edited"}]`, "", ""},
		{two + `messages.snapshot coversThroughSessionSequence=2`, "", ""},
		{two + "?messages.snapshot sequence=1; session.custom", "", ""},
		{"messages.snapshot sequence=1", "rejected invalid_hydrate", "rejected invalid_hydrate"},
	})
}

// What the lenient reader makes of a transcript (facts of the public client).
func TestTranscript(t *testing.T) {
	for _, c := range []struct{ story, field, want string }{
		{root + "message.user.recorded; message.text.delta", "messages",
			`[{"messageId":"m1","role":"user","content":"hia","messageScope":"session","streaming":true,"sessionSequence":2,"timestamp":"2026-08-05T00:00:00Z","rootRunId":"r1"}]`},
		{"message.user.recorded; message.text.started messageId=m2; message.text.started; message.redacted", "messages",
			`[{"messageId":"m1","role":"assistant","messageScope":"session","streaming":true,"redacted":true,"displayReplacement":"gone","sessionSequence":3,"timestamp":"2026-08-05T00:00:00Z"},
			  {"messageId":"m2","role":"assistant","messageScope":"session","streaming":true,"sessionSequence":2,"timestamp":"2026-08-05T00:00:00Z"}]`},
		{`message.user.recorded; message.user.recorded messageId=m2; messages.snapshot coversThroughSessionSequence=1 messages=[{"messageId":"m1","content":"edited"},7,{}]`, "messages",
			`[{"messageId":"m1","role":"assistant","content":"edited"},
			  {"messageId":"m2","role":"user","content":"hi","messageScope":"session","sessionSequence":2,"timestamp":"2026-08-05T00:00:00Z"}]`},
		{"reasoning.started; reasoning.completed; reasoning.delta", "reasoning",
			`[{"reasoningId":"x1","content":"h","completed":true,"timestamp":"2026-08-05T00:00:00Z"}]`},
		{"reasoning.started; messages.snapshot coversThroughSessionSequence=1", "reasoning", `null`},
		{"state.snapshot; state.delta baseRevision=5 revision=6", "state", `{"session":{"revision":1,"state":{"n":1},"resyncRequired":true}}`},
		{"state.snapshot; state.delta", "state", `{"session":{"revision":2,"state":{"n":2}}}`},
		{"state.snapshot; state.compacted", "state", `{"session":{"revision":3,"state":{"n":1},"resyncRequired":true}}`},
		{"state.snapshot; state.compacted", "resyncRequired", `true`},
		{"view.opened; view.updated; view.closed", "views", `{"v1":{"model":{"n":2}}}`},
	} {
		s := newStory(NewModel(false, 0, ""))
		s.run(t, c.story)
		want, err := Parse([]byte(c.want))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.m.Snapshot()[c.field]; Diff(object{c.field: got}, object{c.field: want}) != "" {
			t.Errorf("%s: got %v, want %v\n%s", c.field, got, want, c.story)
		}
	}
}
