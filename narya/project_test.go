package narya

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"pgregory.net/rapid"
)

// at is the time of every fact here, so that what a test demands is short.
const at = "2026-11-30T09:15:00.000Z"

// in places a fact in the session "s" and in a run: of the root run "r" if it is that or
// below it.
func in[F narad.Authority](run string, f F, with ...func(*narad.Event)) narad.Authority {
	e := f.Envelope()
	e.SessionID, e.Timestamp, e.EventID, e.SessionSequence = "s", at, "1.aaaaaaaa", 1
	if run != "" {
		e.RootRunID, e.RunID, e.Sequence = "r", run, 1
	}
	for _, w := range with {
		w(e)
	}
	return f
}

func custom(run, name string, payload any) narad.Authority {
	if run == "" {
		return in("", facts.Session(name, payload))
	}
	return in(run, facts.Run("r", run, name, payload))
}

func ofWorkflow(e *narad.Event) { e.WorkflowID, e.WorkflowSequence = "w", 1 }

func status(was, now string) func(*narad.Event) {
	return func(e *narad.Event) { facts.SetStatus(e, was, now) }
}

func gateOf(run string) func(*narad.Event) {
	return func(e *narad.Event) { e.SetOptional("gateOf", narad.Quote(run)) }
}

// names stand for the UUIDs of these tests.
var names = func() *strings.Replacer {
	list := []string{
		UUID(KindSession, "s"), "s", UUID(KindSession, "p"), "p", MainLaneID("s"), "main", UUID(KindWorkflow, "w"), "w", UUID(KindAsk, "q"), "q",
		UUID(KindInterrupt, "i"), "i", MemberPermissionID("i", "a"), "i/a", MemberPermissionID("i", "b"), "i/b",
		MessageEntryID("s", "m"), "message:m", CallEntryID("c"), "call:c", ResultEntryID("c"), "result:c",
	}
	for _, run := range []string{"r", "n"} {
		list = append(list, UUID(KindRun, run), run, LaneID(run), "lane:"+run)
	}
	return strings.NewReplacer(list...)
}()

// told writes the events of a fact, one a line: lane, type, payload. Each must be one that
// may be served.
func told(t rapid.TB, fact narad.Authority) []string {
	t.Helper()
	var lines []string
	for i, e := range Mapping1.Project(fact) {
		e.ID = int64(i + 1)
		text := names.Replace(mustEncode(t, e))
		_, payload, _ := strings.Cut(text, `"payload":`)
		session := `,"sessionId":"s"`
		if e.SessionID == "" {
			session = ""
		}
		lane := ""
		if e.LaneID != "" {
			lane = fmt.Sprintf(`,"laneId":"%s"`, names.Replace(e.LaneID))
		}
		want := fmt.Sprintf(`{"id":"%d","type":"%s"%s%s,"timestamp":"%s","payload":%s`, i+1, e.Type(), session, lane, at, payload)
		if text != want {
			t.Errorf("got %s, want %s", text, want)
		}
		lines = append(lines, strings.TrimSpace(names.Replace(e.LaneID)+" "+string(e.Type())+" "+strings.TrimSuffix(payload, "}")))
	}
	if n := Mapping1.Count(fact); n != len(lines) {
		t.Errorf("Count says %d of %d events", n, len(lines))
	}
	return lines
}

func number[T any](n T) *T { return &n }

// TestProjection: which events a fact causes, in which order (R39, R41, R42).
func TestProjection(t *testing.T) {
	permissionInput := narad.Raw(`{"toolCallId":"c","toolName":"sh","action":"execute","resource":"date","detail":"Run date","options":[{"id":"x"}]}`)
	actions := []string{"approve", "approve_always", "deny"}
	pack := narad.Raw(`{"members":[{"requestId":"a","toolCallId":"c","toolName":"sh","resource":"x"},{"requestId":"b","action":"write","resource":"y","detail":"z"}]}`)
	member := func(id, decision string) narad.MemberDecision {
		return narad.MemberDecision{RequestID: id, Decision: decision}
	}
	permits := func(e *narad.Event) { facts.SetAsks(e, facts.AsksPermission) }
	for _, c := range []struct {
		name string
		fact narad.Authority
		want []string
	}{
		{"a session begins", custom("", facts.SessionCreated, facts.Created{Cwd: "/w", Title: "T", ClientKind: "tui", ParentSessionID: "p", Mappings: facts.Mappings{Narya: 1}}), []string{
			`session-created {"session":{"id":"s","title":"T","repository":"/w","status":"idle","clientKind":"tui","parentSessionId":"p","createdAt":"` + at + `","updatedAt":"` + at + `"}}`,
			`main lane-started {"kind":"main"}`}},
		{"of a client of no known kind", custom("", facts.SessionCreated, facts.Created{Cwd: "/w", ClientKind: "cli"}), []string{
			`session-created {"session":{"id":"s","repository":"/w","status":"idle","clientKind":"unknown","createdAt":"` + at + `","updatedAt":"` + at + `"}}`,
			`main lane-started {"kind":"main"}`}},
		{"archived", custom("", facts.SessionArchived, facts.Archived{}), []string{`session-status-changed {"status":"archived","previousStatus":"idle"}`}},
		{"archived, in its own words", in("", facts.Session(facts.SessionArchived, facts.Archived{}), status("idle", "archived")), []string{`session-status-changed {"status":"archived","previousStatus":"idle"}`}},
		{"restored", custom("", facts.SessionRestored, facts.Archived{}), []string{`session-status-changed {"status":"idle","previousStatus":"archived"}`}},
		{"nobody is there", custom("", facts.Posture, facts.Postured{Posture: "detached", Was: "attended"}), []string{`session-posture-changed {"posture":"detached","previousPosture":"attended"}`}},
		{"nobody is there, the first that is said", custom("", facts.Posture, facts.Postured{Posture: "detached"}), []string{`session-posture-changed {"posture":"detached"}`}},
		{"somebody is there, the first that is said", custom("", facts.Posture, facts.Postured{Posture: "attended"}), nil},
		{"somebody has always been there", custom("", facts.Posture, facts.Postured{Posture: "attended", Was: "attended"}), nil},
		{"moved", custom("", facts.SessionMoved, facts.Moved{Cwd: "/b", Was: "/a"}), []string{`session-moved {"repository":"/b","previousRepository":"/a"}`}},
		{"moved to where it is", custom("", facts.SessionMoved, facts.Moved{Cwd: "/a", Was: "/a"}), nil},
		{"another model", custom("", facts.SessionModel, facts.Modelled{Provider: "p", Model: "m", WasProvider: "p", WasModel: "l"}), []string{`model-switch {"provider":"p","model":"m"}`}},
		{"the same model", custom("", facts.SessionModel, facts.Modelled{Provider: "p", Model: "m", WasProvider: "p", WasModel: "m"}), nil},

		{"a turn begins", in("r", &narad.RunStarted{}, status("idle", "running")), []string{
			`session-status-changed {"status":"running","previousStatus":"idle"}`, `main turn-started {"turnId":"r"}`}},
		{"and the next at once", in("r", &narad.RunStarted{}), []string{`main turn-started {"turnId":"r"}`}},
		{"a subagent", in("n", &narad.RunStarted{ParentRunID: "r", ParentToolCallID: "c"}, func(e *narad.Event) { facts.SetAgentName(e, "reader") }), []string{
			`lane:n lane-started {"kind":"subagent","agent":"reader"}`, `lane:n turn-started {"turnId":"n"}`}},
		{"a gate", in("n", &narad.RunStarted{ParentRunID: "r", ParentToolCallID: "c"}, facts.SetGate), nil},
		{"a gate ends", in("n", &narad.RunFinished{}, facts.SetGate), nil},
		{"a gate is stopped", in("n", &narad.RunCancelled{}, facts.SetGate), nil},
		{"the run of a step", in("r", &narad.RunStarted{}, ofWorkflow), []string{
			`lane:r lane-started {"kind":"workflow"}`, `lane:r turn-started {"turnId":"r"}`}},
		{"a branch of a step", in("n", &narad.RunStarted{ParentRunID: "r"}, ofWorkflow), []string{
			`lane:n lane-started {"kind":"workflow"}`, `lane:n turn-started {"turnId":"n"}`}},
		{"a subagent of a step", in("n", &narad.RunStarted{ParentRunID: "r", ParentToolCallID: "c"}, ofWorkflow), []string{
			`lane:n lane-started {"kind":"subagent"}`, `lane:n turn-started {"turnId":"n"}`}},
		{"a turn ends", in("r", &narad.RunFinished{}, status("running", "waiting")), []string{
			`main turn-finished {"turnId":"r","stopReason":"completed"}`, `session-status-changed {"status":"waiting","previousStatus":"running"}`}},
		{"with all figures", in("r", &narad.RunFinished{}, func(e *narad.Event) {
			facts.SetStopReason(e, "max-tokens")
			facts.SetTurn(e, facts.Turn{
				LastRound: &facts.Tokens{Input: 5, Output: 0, CacheRead: number(int64(4)), CacheWrite: number(int64(0)), CostUSD: number(0.5)},
				CostUSD:   number(0.75), ElapsedMs: number(int64(0)), ContextWindow: number(int64(9)),
			})
		}), []string{`main turn-finished {"turnId":"r","stopReason":"max-tokens","usage":{"inputTokens":5,"outputTokens":0,"cacheReadTokens":4,"cacheWriteTokens":0,"costUsd":0.5},"costUsd":0.75,"elapsedMs":0,"contextWindow":9}`}},
		{"with the sum of all rounds alone", in("r", &narad.RunFinished{Usage: &narad.Usage{PromptTokens: number(int64(5))}}, func(e *narad.Event) { facts.SetStopReason(e, "unknown") }), []string{
			`main turn-finished {"turnId":"r","stopReason":"completed"}`}},
		{"a turn is stopped", in("r", &narad.RunCancelled{Code: "stopped"}, status("running", "idle")), []string{
			`main turn-finished {"turnId":"r","stopReason":"interrupted"}`, `session-status-changed {"status":"idle","previousStatus":"running"}`}},
		{"a turn dies", in("r", &narad.RunError{Code: "agent_failed", Message: "no luck"}), []string{
			`main turn-finished {"turnId":"r","stopReason":"error","error":{"code":"NRY-0019","title":"The agent failed","message":"no luck"}}`}},
		{"with the host", in("r", &narad.RunError{Code: "host_restarted", Message: "again"}), []string{
			`main turn-finished {"turnId":"r","stopReason":"error","error":{"code":"NRY-0020","title":"The host was restarted","message":"again"}}`}},
		{"a lane ends", in("n", &narad.RunFinished{}), []string{
			`lane:n turn-finished {"turnId":"n","stopReason":"completed"}`, `lane:n lane-finished {"status":"completed"}`}},
		{"a lane is cut", in("n", &narad.RunCancelled{}), []string{
			`lane:n turn-finished {"turnId":"n","stopReason":"interrupted"}`, `lane:n lane-finished {"status":"cancelled"}`}},
		{"a lane fails", in("n", &narad.RunError{Code: "max_turn_requests", Message: "no more"}), []string{
			`lane:n turn-finished {"turnId":"n","stopReason":"error","error":{"code":"NRY-0034","title":"Turn limit reached","message":"no more"}}`, `lane:n lane-finished {"status":"failed"}`}},

		{"a prompt", in("r", &narad.MessageUserRecorded{MessageID: "m", MessageScope: narad.ScopeSession, Content: "x"}), []string{
			`main entry-appended {"entryId":"message:m","kind":"user-message","turnId":"r"}`}},
		{"a prompt that waits", custom("", facts.InputQueued, facts.Queued{MessageID: "m", RunID: "r"}), []string{
			`main entry-appended {"entryId":"message:m","kind":"user-message","turnId":"r"}`}},
		{"a prompt that waits alone", in("", facts.Session(facts.InputQueued, facts.Queued{MessageID: "m", RunID: "r"}), status("idle", "waiting")), []string{
			`main entry-appended {"entryId":"message:m","kind":"user-message","turnId":"r"}`, `session-status-changed {"status":"waiting","previousStatus":"idle"}`}},
		{"a prompt that has waited", in("r", &narad.MessageUserRecorded{MessageID: "m", MessageScope: narad.ScopeSession}, facts.SetQueued), nil},
		{"a prompt taken back", in("", facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: "m", RunID: "r"}), status("waiting", "idle")), []string{
			`queued-input-withdrawn {"entryId":"message:m"}`, `session-status-changed {"status":"idle","previousStatus":"waiting"}`}},
		{"the prompt of a subagent", in("n", &narad.MessageUserRecorded{MessageID: "m", MessageScope: narad.ScopeRun}), []string{
			`lane:n entry-appended {"entryId":"message:m","kind":"user-message","turnId":"n"}`}},
		{"a round", custom("r", facts.Round, facts.Rounded{Provider: "acp", Model: "goose"}), []string{
			`main message-start {"turnId":"r","provider":"acp","model":"goose"}`}},
		{"a message begins", in("r", &narad.MessageTextStarted{MessageID: "m", Role: narad.RoleAssistant, MessageScope: narad.ScopeSession}), nil},
		{"a piece of it", in("r", &narad.MessageTextDelta{MessageID: "m", Delta: "né\n"}), []string{`main message-delta {"turnId":"r","delta":"né\n"}`}},
		{"a piece of a subagent's", in("n", &narad.MessageTextDelta{MessageID: "m", Delta: "x"}), []string{`lane:n message-delta {"turnId":"n","delta":"x"}`}},
		{"a thought", in("r", &narad.ReasoningDelta{ReasoningID: "t", Delta: "x"}), []string{`main message-delta {"turnId":"r","delta":"x","channel":"reasoning"}`}},
		{"a message ends", in("r", &narad.MessageTextCompleted{MessageID: "m"}), []string{
			`main entry-appended {"entryId":"message:m","kind":"assistant-message","turnId":"r"}`, `main message-end {"turnId":"r","entryId":"message:m"}`}},

		{"a call", in("r", &narad.ToolCallStarted{ToolCallID: "c", ToolName: "sh", Args: narad.Raw(`{ "n":1.10}`)}), []string{
			`main tool-call-started {"turnId":"r","toolCallId":"c","tool":"sh","input":{ "n":1.10}}`, `main entry-appended {"entryId":"call:c","kind":"tool-call","turnId":"r"}`}},
		{"a call without an object", in("n", &narad.ToolCallStarted{ToolCallID: "c", ToolName: "sh", Args: narad.Raw(`[1]`)}), []string{
			`lane:n tool-call-started {"turnId":"n","toolCallId":"c","tool":"sh"}`, `lane:n entry-appended {"entryId":"call:c","kind":"tool-call","turnId":"n"}`}},
		{"output", custom("r", facts.ToolOutput, facts.Output{ToolCallID: "c", Text: "x\x1b"}), []string{`main tool-call-update {"turnId":"r","toolCallId":"c","delta":"x\u001b"}`}},
		{"more output than is kept", custom("r", facts.ToolOutput, facts.Output{ToolCallID: "c", Truncated: true}), []string{
			`main tool-call-update {"turnId":"r","toolCallId":"c","delta":"\n[more output than is kept]\n"}`}},
		{"a call ends", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeSuccess, Message: "done"}, func(e *narad.Event) {
			facts.SetToolFinish(e, "sh", 12)
			facts.SetFileTouches(e, []facts.FileTouch{{Path: "/a", Op: "edit"}, {Path: "/b", Op: "lick"}})
		}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"sh","status":"ok","durationMs":12,"fileTouches":[{"path":"/a","op":"edit"}]}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},
		{"a call fails", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeError, Code: "e", Message: "no file"}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"","status":"error","failure":"no file"}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},
		{"a call is denied", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeCancelled, Code: "denied"}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"","status":"denied","failure":"denied"}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},
		{"a call fails, and the words are told", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeError, Code: "e"}, func(e *narad.Event) {
			facts.SetFailure(e, "no disk")
		}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"","status":"error","failure":"no disk"}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},
		{"a call is denied without a word", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeCancelled, Code: "denied"}, func(e *narad.Event) {
			facts.SetFailure(e, "")
		}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"","status":"denied"}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},
		{"a call is cancelled", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeCancelled, Code: "stopped"}), []string{
			`main tool-call-finished {"turnId":"r","toolCallId":"c","tool":"","status":"cancelled","failure":"stopped"}`,
			`main entry-appended {"entryId":"result:c","kind":"tool-result","turnId":"r"}`}},

		{"a permission, in a gate", in("n", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "approval", Actions: actions, Title: "T", Message: "M", Input: permissionInput}, gateOf("r")), []string{
			`main permission-asked {"permissionId":"i","action":"execute","resource":"date","detail":"Run date\n\nIf it is remembered, an allow holds for execute by sh on exactly this resource.","toolCallId":"c"}`}},
		{"a permission of a subagent's call", in("g", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "approval", Actions: actions, Input: permissionInput}, gateOf("n")), []string{
			`lane:n permission-asked {"permissionId":"i","action":"execute","resource":"date","detail":"Run date\n\nIf it is remembered, an allow holds for execute by sh on exactly this resource.","toolCallId":"c"}`}},
		{"a permission in words alone", in("r", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "approval", Actions: actions, Title: "T", Message: "M", Input: narad.Raw(`{"action":7}`)}), []string{
			`main permission-asked {"permissionId":"i","action":"approval","resource":"T","detail":"M"}`}},
		{"a permission of a workflow", in("", &narad.InterruptRequested{Scope: narad.ScopeWorkflow, InterruptID: "i", WaitID: "v", Kind: "approval", Actions: actions, Title: "T"}, ofWorkflow), []string{
			`main permission-asked {"permissionId":"i","action":"approval","resource":"T"}`}},
		{"a pack", in("r", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "approval", Actions: actions, Message: "M", Input: pack}), []string{
			`main permission-asked {"permissionId":"i/a","action":"sh","resource":"x","detail":"M\n\nIf it is remembered, an allow holds for sh on exactly this resource.","toolCallId":"c"}`,
			`main permission-asked {"permissionId":"i/b","action":"write","resource":"y","detail":"z\n\nIf it is remembered, an allow holds for write on exactly this resource."}`}},
		{"approved", in("n", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "approve_always", Actor: narad.Raw(`{"id":"ada"}`)}, gateOf("r"), permits), []string{
			`main permission-decided {"permissionId":"i","decision":"allow","decidedBy":"user"}`}},
		{"stopped instead", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "stop", Actor: narad.Raw(`{"id":"ada"}`)}, permits), []string{
			`main permission-decided {"permissionId":"i","decision":"deny","decidedBy":"user"}`}},
		{"denied by a rule", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "deny", Actor: narad.Raw(`{"id":"policy","rule":"r1"}`)}, permits), []string{
			`main permission-decided {"permissionId":"i","decision":"deny","decidedBy":"policy"}`}},
		{"expired", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "expired", Actor: narad.Raw(`{"id":"host"}`)}, permits), []string{
			`main permission-decided {"permissionId":"i","decision":"expired","decidedBy":"policy"}`}},
		{"a member is decided", custom("r", facts.Decision, facts.Decided{InterruptID: "i", Actor: facts.Actor{ID: "ada"}, Members: []facts.MemberDecided{{RequestID: "a", Decision: "deny"}}}), []string{
			`main permission-decided {"permissionId":"i/a","decision":"deny","decidedBy":"user"}`}},
		{"a member is voted on", custom("r", facts.Decision, facts.Decided{InterruptID: "i", Members: []facts.MemberDecided{{RequestID: "a", Decision: "approve", Vote: true}}}), nil},
		{"a member of a workflow's pack", in("", facts.Session(facts.Decision, facts.Decided{InterruptID: "i", Members: []facts.MemberDecided{{RequestID: "b", Decision: "approve"}}})), []string{
			`main permission-decided {"permissionId":"i/b","decision":"allow","decidedBy":"user"}`}},
		{"the rest of a pack", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "deny", Members: []narad.MemberDecision{member("a", "deny"), member("b", "approve")}}, permits, func(e *narad.Event) { facts.SetSettles(e, []string{"b"}) }), []string{
			`main permission-decided {"permissionId":"i/b","decision":"allow","decidedBy":"user"}`}},
		{"nothing of a pack is left", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "deny", Members: []narad.MemberDecision{member("a", "deny")}}, permits, func(e *narad.Event) { facts.SetSettles(e, nil) }), nil},
		{"a whole pack at once", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "deny", Members: []narad.MemberDecision{member("a", "deny"), member("b", "expired")}}, permits), []string{
			`main permission-decided {"permissionId":"i/a","decision":"deny","decidedBy":"user"}`, `main permission-decided {"permissionId":"i/b","decision":"expired","decidedBy":"policy"}`}},

		{"a question", in("r", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "question", Actions: []string{"0", "1", "2", "dismiss"}, Title: "H",
			Input: narad.Raw(`{"toolCallId":"c","questions":[{"text":"Q","options":["x","y","z"],"recommended":1}]}`)}), []string{
			`main question-asked {"questionId":"i","toolCallId":"c","questions":[{"header":"H","question":"Q","options":[{"value":"y","recommended":true},{"value":"x"},{"value":"z"}]}]}`}},
		{"questions", in("n", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "question", Actions: []string{"answer", "dismiss"},
			Input: narad.Raw(`{"toolCallId":"c","questions":[{"text":"Q"},{"text":"P","options":["x"],"multiple":true,"free":true}]}`)}), []string{
			`lane:n question-asked {"questionId":"i","toolCallId":"c","questions":[{"question":"Q","options":[{"value":"Something else","other":true}]},{"question":"P","multiple":true,"options":[{"value":"x"},{"value":"Something else","other":true}]}]}`}},
		{"another choice", in("r", &narad.InterruptRequested{InterruptID: "i", WaitID: "v", Kind: "approval", Actions: []string{"ship", "wait"}, Title: "T", Message: "M"}), []string{
			`main question-asked {"questionId":"i","questions":[{"header":"T","question":"M","options":[{"value":"ship"},{"value":"wait"}]}]}`}},
		{"a question is answered", in("r", &narad.InterruptResolved{InterruptID: "i", WaitID: "v", Decision: "0"}, func(e *narad.Event) { facts.SetAsks(e, facts.AsksQuestion) }), nil},

		{"tasks", custom("", facts.TaskList, facts.Tasked{Tasks: []facts.Task{{Content: "x", Status: "in_progress"}, {Content: "y", Status: "odd"}}}), []string{
			`task-list {"tasks":[{"content":"x","status":"in_progress"},{"content":"y","status":"pending"}]}`}},
		{"no tasks", custom("r", facts.TaskList, facts.Tasked{}), []string{`task-list {"tasks":[]}`}},
		{"another session asks", custom("", facts.Intercom, facts.Told{MessageID: "m", From: "relay-1", Content: "?", Kind: "ask", AskID: "q"}), []string{
			`main entry-appended {"entryId":"message:m","kind":"intercom"}`, `intercom-message {"from":"relay-1","content":"?","kind":"ask","askId":"q"}`}},
		{"another session does something else", custom("", facts.Intercom, facts.Told{MessageID: "m", Kind: "sing"}), nil},
		{"an extension", custom("", facts.Extension, facts.Published{Extension: "a/b", Name: "n", Payload: narad.Raw(`{"x":1.0}`)}), []string{`extension {"extension":"a/b","name":"n","payload":{"x":1.0}}`}},
		{"an extension of another form", custom("", facts.Extension, facts.Published{Extension: "a", Name: "n"}), nil},

		{"a workflow begins", in("", &narad.WorkflowStarted{NodeID: "one"}, ofWorkflow, status("idle", "running"), func(e *narad.Event) {
			facts.SetSteps(e, facts.Steps{Completed: number(int64(0)), Total: number(int64(2))})
		}), []string{
			`session-status-changed {"status":"running","previousStatus":"idle"}`, `workflow-progress {"runId":"w","status":"running","completedSteps":0,"totalSteps":2}`}},
		{"a step begins", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: "one"}, ofWorkflow), []string{
			`workflow-progress {"runId":"w","status":"running","step":{"name":"one","status":"running","startedAt":"` + at + `"}}`}},
		{"a step ends", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFinished, NodeID: "one"}, ofWorkflow, func(e *narad.Event) {
			facts.SetSteps(e, facts.Steps{Completed: number(int64(1)), StartedAt: "2026-11-30T09:00:00Z", Output: "fine"})
		}), []string{`workflow-progress {"runId":"w","status":"running","step":{"name":"one","status":"completed","output":"fine","startedAt":"2026-11-30T09:00:00Z","finishedAt":"` + at + `"},"completedSteps":1}`}},
		{"a step fails", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFailed, NodeID: "one"}, ofWorkflow, func(e *narad.Event) { facts.SetStepFailure(e, "c", "why", "") }), []string{
			`workflow-progress {"runId":"w","status":"running","step":{"name":"one","status":"failed","output":"why","finishedAt":"` + at + `"}}`}},
		{"a workflow ends", in("", &narad.WorkflowEnded{Kind: narad.TypeWorkflowFinished}, ofWorkflow, status("running", "idle")), []string{
			`workflow-progress {"runId":"w","status":"completed"}`, `session-status-changed {"status":"idle","previousStatus":"running"}`}},
		{"a workflow fails", in("", &narad.WorkflowEnded{Kind: narad.TypeWorkflowError}, ofWorkflow), []string{`workflow-progress {"runId":"w","status":"failed"}`}},
		{"a step is stopped", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFailed, NodeID: "one"}, ofWorkflow, func(e *narad.Event) { facts.SetStepFailure(e, "stopped", "", "") }), []string{
			`workflow-progress {"runId":"w","status":"running","step":{"name":"one","status":"stopped","finishedAt":"` + at + `"}}`}},
		{"a workflow is stopped", in("", &narad.WorkflowEnded{Kind: narad.TypeWorkflowCancelled}, ofWorkflow), []string{`workflow-progress {"runId":"w","status":"stopped"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(t, c.fact); !slices.Equal(got, c.want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(c.want, got))
			}
		})
	}
}

// What is on the host is of no session, and what is beside a session is in no stream.
func TestWhereFactsStand(t *testing.T) {
	published := facts.Session(facts.Extension, facts.Published{Extension: "a/b", Name: "n"})
	published.SessionID, published.Timestamp = "~host", at
	if got, want := told(t, published), []string{`extension {"extension":"a/b","name":"n"}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	created := facts.Session(facts.SessionCreated, facts.Created{})
	for _, id := range []string{"~host", "s~trace"} {
		created.SessionID = id
		if got := Mapping1.Project(created); got != nil {
			t.Errorf("%s: got %v, want nothing", id, got)
		}
	}
	created.SessionID = "s"
	if got := NoMapping.Project(created); got != nil || NoMapping.Count(created) != 0 {
		t.Errorf("a session that began before the contract: got %v", got)
	}
}

// The preview cuts whole characters, of texts at the top alone (field case 78).
func TestCase78Preview(t *testing.T) {
	lyre := func(n int) string { return strings.Repeat("🪕", n) }
	args := fmt.Sprintf(`{"a":"%s","b":"%s","c":"%s","d":"%s","deep":{"x":"%[4]s"},"list":["%[4]s"],"%s":1.0}`,
		lyre(511), lyre(512), lyre(513), lyre(5000), lyre(600))
	got := string(Preview(narad.Raw(args)))
	want := fmt.Sprintf(`{"a":"%s","b":"%s","c":"%[2]s…","d":"%[2]s…","deep":{"x":"%[3]s"},"list":["%[3]s"],"%[4]s":1.0}`,
		lyre(511), lyre(512), lyre(5000), lyre(600))
	if got != want {
		t.Errorf("the preview is not what it must be: %d characters, want %d", utf8.RuneCountInString(got), utf8.RuneCountInString(want))
	}
	for text, want := range map[string]string{
		`{ "x" : "` + lyre(512) + `" }`: `{ "x" : "` + lyre(512) + `" }`, `"` + lyre(600) + `"`: "", `null`: "", `[{}]`: "",
	} {
		if got := string(Preview(narad.Raw(text))); got != want {
			t.Errorf("got %.40q, want %.40q", got, want)
		}
	}
}

// TestProjectionOfGoldenTraces: whatever a fact says, its events may be served, and are the
// same each time.
func TestProjectionOfGoldenTraces(t *testing.T) {
	files, err := filepath.Glob("../conformance/traces/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	seen := map[Type]int{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			rec, err := narad.Decode(narad.Raw(line).Field("record"))
			fact, ok := rec.(narad.Authority)
			if err != nil || !ok {
				continue
			}
			for _, e := range Mapping1.Project(fact) {
				e.ID = 1
				if _, err := Encode(e); err != nil && hostTime(fact) {
					t.Errorf("%s: %v\n%s", name, err, line)
				}
				seen[e.Type()]++
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("the traces cause only %v", seen)
	}
}

// hostTime reports whether a host could have written a fact's time; traces hold others.
func hostTime(fact narad.Authority) bool { return isTime(fact.Envelope().Timestamp) }

// TestRandomFacts: texts, numbers and words that nobody expects leave every event one that
// may be served, and the same each time.
func TestRandomFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run, word := rapid.SampledFrom([]string{"", "r", "n"}).Draw(t, "run"), func() string {
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"approve", "running", "idle", "question", "completed", "detached", "a/b", strings.Repeat("é", 5000)})).Draw(t, "word")
		}
		value := func() narad.Raw {
			return narad.Raw(rapid.SampledFrom([]string{
				`null`, `{}`, `[]`, `7`, `{"members":[{}]}`, `{"members":7}`, `{"questions":[{}]}`, `{"questions":[{"options":["a"],"recommended":-1}]}`,
				`{"inputTokens":-1}`, `{"lastRound":{"inputTokens":-1,"outputTokens":2},"costUsd":-1,"elapsedMs":-5,"contextWindow":0}`, `{"was":"idle","now":"x"}`,
				`[{"path":"` + strings.Repeat("é", 5000) + `","op":"read"}]`, `{"completedSteps":-1,"startedAt":"now","nodeId":"` + strings.Repeat("é", 300) + `"}`, `1e3`, `"x"`,
			}).Draw(t, "value"))
		}
		name := rapid.SampledFrom([]string{
			facts.SessionCreated, facts.SessionArchived, facts.Posture, facts.SessionMoved, facts.SessionModel, facts.InputQueued, facts.InputWithdrawn,
			facts.TaskList, facts.Intercom, facts.Extension, facts.Round, facts.ToolOutput, facts.Decision,
		}).Draw(t, "name")
		payload := map[string]any{"members": []map[string]any{{"requestId": word(), "decision": word()}}, "tasks": []map[string]any{{"content": word(), "status": word()}}, "payload": value()}
		for _, field := range []string{"posture", "was", "cwd", "title", "clientKind", "parentSessionId", "provider", "model", "messageId", "runId", "kind", "from", "content", "askId", "extension", "name", "toolCallId", "text", "interruptId"} {
			payload[field] = word()
		}
		data, err := facts.Value(payload)
		if err != nil {
			t.Fatal(err)
		}
		fact := rapid.SampledFrom([]narad.Authority{
			&narad.RunStarted{}, &narad.RunFinished{}, &narad.RunError{Code: word(), Message: word()}, &narad.RunCancelled{},
			&narad.MessageUserRecorded{MessageID: word()}, &narad.MessageTextDelta{Delta: word()}, &narad.ReasoningDelta{Delta: word()}, &narad.MessageTextCompleted{MessageID: word()},
			&narad.ToolCallStarted{ToolCallID: word(), ToolName: word(), Args: value()}, &narad.ToolCallFinished{ToolCallID: word(), Outcome: narad.Outcome(word()), Code: word(), Message: word()},
			&narad.InterruptRequested{InterruptID: word(), Kind: word(), Actions: []string{word()}, Title: word(), Message: word(), Input: value()},
			&narad.InterruptResolved{InterruptID: word(), Decision: word(), Actor: value(), Members: []narad.MemberDecision{{RequestID: word(), Decision: word()}}},
			&narad.InterruptResolved{InterruptID: word(), Decision: word(), Actor: value()},
			&narad.WorkflowStarted{}, &narad.WorkflowEnded{Kind: narad.TypeWorkflowCancelled}, &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFailed, NodeID: word()},
			&narad.Custom{Kind: narad.TypeRunCustom, Name: name, Value: data}, &narad.Custom{Kind: narad.TypeRunCustom, Name: name, Value: value()},
		}).Draw(t, "fact")
		in(run, fact)
		for _, field := range []string{"status", "turn", "fileTouches", "progress", "settles", "durationMs", "gateOf", "asks", "stopReason", "message"} {
			if rapid.Bool().Draw(t, field) {
				fact.Envelope().SetOptional(field, value())
			}
		}
		if rapid.Bool().Draw(t, "asked for a permission") {
			facts.SetAsks(fact.Envelope(), facts.AsksPermission)
		}
		if first, second := told(t, fact), told(t, fact); !slices.Equal(first, second) {
			t.Fatalf("told in two ways\n%q\n%q", first, second)
		}
	})
}

// TestFactsThatNoHostWrites: what cannot be served is left out, cut or called by a word
// that can.
func TestFactsThatNoHostWrites(t *testing.T) {
	long, minus := strings.Repeat("é", 5000), func(e *narad.Event) {
		e.SetOptional("turn", narad.Raw(`{"lastRound":{"inputTokens":-1,"outputTokens":2},"costUsd":-0.5,"elapsedMs":-5,"contextWindow":0}`))
		e.SetOptional("durationMs", narad.Raw(`-1`))
		e.SetOptional("progress", narad.Raw(`{"completedSteps":-1,"totalSteps":-2,"startedAt":"now"}`))
	}
	for _, c := range []struct {
		name string
		fact narad.Authority
		want string // a part of the first event
	}{
		{"figures below zero", in("r", &narad.RunFinished{}, minus), `{"turnId":"r","stopReason":"completed"}`},
		{"a time below zero", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeSuccess}, minus), `"status":"ok"}`},
		{"steps below zero", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFinished, NodeID: "n"}, ofWorkflow, minus), `{"name":"n","status":"completed","finishedAt":"` + at + `"}}`},
		{"a long node", in("", &narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: long}, ofWorkflow), `"name":"` + long[:2*255] + `…"`},
		{"a long title", custom("", facts.SessionCreated, facts.Created{Title: long, Cwd: long}), `"title":"` + long[:2*511] + `…","repository":"` + long[:2*4095] + `…"`},
		{"a long fault", in("r", &narad.RunError{Message: long}), `"message":"` + long[:2*4095] + `…"`},
		{"a fault without words", in("r", &narad.RunError{}), `"message":"The agent ended the turn with an error of its own, or its process ended."`},
		{"a long failure", in("r", &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeError, Message: long}), `"failure":"` + long[:2*1023] + `…"`},
		{"a long path", in("r", &narad.ToolCallFinished{ToolCallID: "c"}, func(e *narad.Event) { facts.SetFileTouches(e, []facts.FileTouch{{Path: long, Op: "read"}}) }), `"path":"` + long[:2*4095] + `…"`},
		{"no posture", custom("", facts.Posture, facts.Postured{Posture: "asleep", Was: "attended"}), ``},
		{"another posture before", custom("", facts.Posture, facts.Postured{Posture: "detached", Was: "asleep"}), `{"posture":"detached"}`},
		{"no status", in("r", &narad.MessageTextStarted{}, status("idle", "asleep")), ``},
		{"no form at all", in("", &narad.Custom{Kind: narad.TypeSessionCustom, Name: facts.TaskList, Value: narad.Raw(`[1]`)}), ``},
		{"a long name of an event", custom("", facts.Extension, facts.Published{Extension: "a/b", Name: long}), ``},
		{"text of no run", in("", &narad.MessageTextDelta{MessageID: "m", Delta: "x"}), ``},
		{"a message of no run", in("", &narad.MessageTextCompleted{MessageID: "m"}), `{"entryId":"message:m","kind":"assistant-message"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(told(t, c.fact), "\n")
			if first, _, _ := strings.Cut(got, "\n"); !strings.Contains(first, c.want) || (got == "") != (c.want == "") {
				t.Errorf("got %.300s\nwant %.300s", got, c.want)
			}
		})
	}
}
