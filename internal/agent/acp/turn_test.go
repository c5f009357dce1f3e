package acp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
)

func TestTurnTellsInOrder(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"text, tool, text (case 107)", lines(
			`say a`, `say b`,
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"Run ls","kind":"execute","status":"in_progress","rawInput":{"command":"ls"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"content","content":{"type":"text","text":"out"}}]}`,
			`say c`), `
			say "ab"
			start t execute execute {"command":"ls"}
			finish t success {"text":"out"}
			say "c"`},
		{"thought before and after text", lines(`think hm`, `say a`, `think so`, `say b`), `
			think "hm"
			say "a"
			think "so"
			say "b"`},
		{"another message id", lines(
			`send {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"a"}}`,
			`send {"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"b"}}`,
			`send {"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"c"}}`), `
			say "ab"
			say "c"`},
		{"free-form values keep their bytes", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress","rawInput":{"n":9007199254740993,"m":1.10,"e":1e400,"z":-0}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":{"n":123456789012345678901234567890}}`), `
			start t x other {"n":9007199254740993,"m":1.10,"e":1e400,"z":-0}
			finish t success {"output":{"n":123456789012345678901234567890}}`},
		{"what is null is left out", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"bash","kind":"execute","status":"in_progress","rawInput":{"command":"ls"},"_meta":null}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"kind":null,"status":"completed","content":null,"locations":null,"rawInput":null,"rawOutput":null}`), `
			start t bash execute {"command":"ls"}
			finish t success null`},
		{"arguments are awaited while they are written", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"bash","kind":"execute","status":"pending","rawInput":{}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress","rawInput":{"command":"ls"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}`), `
			start t bash execute {"command":"ls"}
			finish t error null tool_failed`},
		{"the directory alone is no argument", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"bash","status":"pending","rawInput":{"cwd":"/w"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress","rawInput":{"command":"ls","cwd":"/w"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawInput":{"command":"ls","cwd":"/w"}}`), `
			start t bash other {"command":"ls","cwd":"/w"}
			finish t success null`},
		{"arguments that became others", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"bash","status":"in_progress","rawInput":{"command":"ls"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawInput":{"command":"ls -l"},"rawOutput":1}`), `
			start t bash other {"command":"ls"}
			finish t success {"output":1,"input":{"command":"ls -l"}}`},
		{"a call without arguments", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"now","rawInput":{}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`), `
			start t now other {}
			finish t success null`},
		{"names that agents tell aside", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"a","title":"Read x.go","kind":"read","status":"completed","_meta":{"toolName":"read_file"}}`,
			`send {"sessionUpdate":"tool_call","toolCallId":"b","title":"Think hard","kind":"switch_mode","status":"completed","_meta":{"claudeCode":{"toolName":"Mode"}}}`), `
			start a read_file read {}
			finish a success null
			start b Mode other {}
			finish b success null`},
		{"an update without a start", `send {"sessionUpdate":"tool_call_update","toolCallId":"t","title":"grep","kind":"search","status":"completed"}`, `
			start t grep search {}
			finish t success null`},
		{"finished once, and ids are used again (R4)", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"call_1","title":"a","status":"completed"}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"failed"}`,
			`send {"sessionUpdate":"tool_call","toolCallId":"call_1","title":"b","status":"completed"}`), `
			start call_1 a other {}
			finish call_1 success null
			start call_1 b other {}
			finish call_1 success null`},
		{"parallel results by id (case 50)", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"1","title":"x","status":"in_progress"}`,
			`send {"sessionUpdate":"tool_call","toolCallId":"2","title":"x","status":"in_progress"}`,
			`send {"sessionUpdate":"tool_call","toolCallId":"3","title":"x","status":"in_progress"}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"3","status":"completed","rawOutput":3}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","rawOutput":1}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"2","status":"completed","rawOutput":2}`), `
			start 1 x other {}
			start 2 x other {}
			start 3 x other {}
			finish 3 success {"output":3}
			finish 1 error {"output":1} tool_failed
			finish 2 success {"output":2}`},
		{"output as it comes", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress"}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"one "}}]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"one two"}}]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"one two\ud83d"}}]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"one two\ud83d\ude00"}}]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`), `
			start t x other {}
			output t "one two😀"
			finish t success {"text":"one two😀"}`},
		{"what a call is about is no output", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","kind":"execute","status":"pending","rawInput":{},"content":[]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":"ls"},"content":[{"type":"content","content":{"type":"text","text":"Lists files"}}]}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[]}`), `
			start t x execute {"command":"ls"}
			finish t success null`},
		{"diffs and what is no text (R7)", `send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","kind":"edit","status":"completed","content":[` +
			`{"type":"diff","path":"/a","oldText":"1","newText":"2"},` +
			`{"type":"content","content":{"type":"image","mimeType":"image/png","data":"QUJDRA=="}},` +
			`{"type":"terminal","terminalId":"7"},{"type":"hologram"}]}`, `
			start t x edit {}
			finish t success {"diffs":[{"path":"/a","oldText":"1","newText":"2"}],` +
			`"content":[{"mediaType":"image/png","bytes":4,"artifactId":"artifact-1"},{"terminalId":"7"}]}`},
		{"an image in a message", lines(`say a`, `send {"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"QUJD"}}`, `say b`), `
			acp.content {"mediaType":"image/png","bytes":3,"artifactId":"artifact-1"}
			say "ab"`},
		{"a delegate speaks in a run of its own (case 68)", lines(
			`say root`,
			`send {"sessionUpdate":"tool_call","toolCallId":"task","title":"task","status":"in_progress"}`,
			`send {"sessionUpdate":"agent_message_chunk","_meta":{"parentToolCallId":"task"},"content":{"type":"text","text":"child"}}`,
			`say more`,
			`send {"sessionUpdate":"tool_call","toolCallId":"in","title":"ls","status":"completed","_meta":{"parentToolCallId":"task"}}`,
			`send {"sessionUpdate":"tool_call_update","toolCallId":"task","status":"completed"}`,
			`send {"sessionUpdate":"agent_message_chunk","_meta":{"parentToolCallId":"task"},"content":{"type":"text","text":"too late"}}`), `
			say "root"
			start task task other {}
			run below task
			say "child"
			start in ls other {}
			finish in success null
			run finished
			finish task success null
			say "more"`},
		{"what is left open", lines(
			`send {"sessionUpdate":"tool_call","toolCallId":"a","title":"a","status":"in_progress"}`,
			`send {"sessionUpdate":"tool_call","toolCallId":"b","title":"b","status":"pending","rawInput":{}}`), `
			start a a other {}
			finish a cancelled null unfinished`},
		{"what is not for the journal", lines(
			`send {"sessionUpdate":"available_commands_update","availableCommands":[]}`,
			`send {"sessionUpdate":"current_mode_update","currentModeId":"x"}`,
			`send {"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"echo"}}`,
			`send {"sessionUpdate":"yet_to_be_invented","content":7}`,
			`raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not mine"}}}}`,
			`raw {"jsonrpc":"2.0","method":"_vendor/thing","params":[]}`,
			`raw {"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}`,
			`end end_turn`, `after late`), ``},
		{"a plan", lines(
			`send {"sessionUpdate":"plan","entries":[{"content":"one","status":"in_progress"},{"content":"two","status":"pending"}]}`,
			`send {"sessionUpdate":"plan","entries":[{"content":"zero","status":"pending"},{"content":"one","status":"completed"},{"content":"two","status":"pending"}]}`,
			`send {"sessionUpdate":"plan","entries":[{"content":"zero","status":"completed"},{"content":"one","status":"completed"}]}`), `
			step plan-1 active "one" "in progress"
			step plan-2 active "two" "pending" "one":"in_progress" "two":"pending"
			step plan-3 active "zero" "pending"
			step plan-1 completed "one" "" "zero":"pending" "one":"completed" "two":"pending"
			step plan-3 completed "zero" ""
			step plan-2 cancelled "two" "" "zero":"completed" "one":"completed"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{})
			if e := s.tells(c.script, c.want); e.Outcome != agent.Finished || e.StopReason != "completed" {
				t.Errorf("got %+v, want a run that is completed", e)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	for _, c := range []struct {
		step string
		want agent.Ending
	}{
		{`end end_turn`, agent.Ending{StopReason: "completed"}},
		{`end max_tokens`, agent.Ending{StopReason: "max-tokens"}},
		{`end refusal`, agent.Ending{StopReason: "content-filter"}},
		{`end max_turn_requests`, agent.Ending{Outcome: agent.Failed, Code: "max_turn_requests", Message: "The agent reached its limit of requests to the model in one turn."}},
		{`end cancelled`, agent.Ending{Outcome: agent.Cancelled, Code: "agent_cancelled"}},
		{`error -32603 key MARKER-KEY is wrong`, agent.Ending{Outcome: agent.Failed, Code: "agent_error", Message: "The agent reported an error (code -32603): key MARKER-KEY is wrong"}},
		{`error -32603 token sk-1 of sk-abcdefghijklmnopqrstuvwxyz is wrong`, agent.Ending{Outcome: agent.Failed, Code: "agent_error", Message: "The agent reported an error (code -32603): [hidden] of [hidden] is wrong"}},
		{`error -32000 sign in`, agent.Ending{Outcome: agent.Failed, Code: "agent_auth_required", Message: "The agent wants you to sign in first: start it in a terminal and sign in there."}},
		{`exit 3`, agent.Ending{Outcome: agent.Failed, Code: "agent_exited", Message: "The agent ended (exit status 3)."}},
		{`mute`, agent.Ending{Outcome: agent.Failed, Code: "agent_exited", Message: "The agent ended (it closed its output)."}},
		{`garbage 100`, agent.Ending{Outcome: agent.Failed, Code: "agent_protocol_error", Message: "What the agent writes is not the Agent Client Protocol."}},
	} {
		t.Run(c.step, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{})
			got := s.Do(s.agent, c.step)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("another ending (-want +got):\n%s", diff)
			}
			// The next run works, whatever became of the process.
			if e := s.Do(s.agent, "say again"); e.StopReason != "completed" || s.says() != "again" {
				t.Errorf("got %+v and %q, want the next run to work", e, s.says())
			}
		})
	}
}

func TestUsage(t *testing.T) {
	s := set(t, agenttest.Options{})
	e := s.Do(s.agent, `end end_turn {"inputTokens":7,"outputTokens":2,"totalTokens":9,"cachedReadTokens":4}`)
	got, err := e.Usage.MarshalJSON()
	if want := `{"promptTokens":7,"completionTokens":2,"totalTokens":9,"cachedReadTokens":4}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	e = s.Do(s.agent, `raw {"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":3,"output_tokens":1}}}}}`)
	got, err = e.Usage.MarshalJSON()
	if want := `{"promptTokens":3,"completionTokens":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if e := s.Do(s.agent, `end end_turn`); e.Usage != nil {
		t.Errorf("got %+v, want no figures that nobody told", e.Usage)
	}
}

func TestCharactersCutInTwo(t *testing.T) { // case 77
	s := set(t, agenttest.Options{})
	s.Do(s.agent, lines(
		`say a\ud83d`, `say \ude00b`, // a pair of which each half came alone
		`bytes "\xe6\xbc"`, `bytes "\xa2"`, // bytes of one character
		`say \ud83d`, `say z`, // a half without its other
		`bytes "\xff!"`, // no text at all
		`say e\u0301`, `say \ud83d`))
	if got, want := s.says(), "a😀b漢\uFFFDz\uFFFD!e\u0301\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestManyQuickUpdates(t *testing.T) {
	s := set(t, agenttest.Options{})
	e := s.Do(s.agent, "many 10000")
	if got := s.says(); got != strings.Repeat("x", 10000) || e.StopReason != "completed" {
		t.Errorf("got %d characters and %+v, want 10000", len(got), e)
	}
}

// TestHugeLines is case 76: 20 MB of a tool are told by a summary, and no line is too
// long to be read.
func TestHugeLines(t *testing.T) {
	s := set(t, agenttest.Options{})
	e := s.Do(s.agent, lines("huge 3000000", "say .",
		`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"completed","rawInput":"@600000@","rawOutput":"@20971520@"}`))
	if got := len(s.says()); got != 3_000_001 || e.StopReason != "completed" {
		t.Errorf("got %d bytes and %+v, want all of them", got, e)
	}
	for _, rec := range s.Facts() {
		switch r := rec.(type) {
		case *narad.ToolCallStarted:
			checkSummary(t, r.Args, "600002")
		case *narad.ToolCallFinished:
			checkSummary(t, r.Response, "20971533") // the host keeps it: a stage has no room
		}
	}
}

func checkSummary(t *testing.T, value narad.Raw, bytes string) {
	t.Helper()
	if string(value.Field("truncated")) != "true" || string(value.Field("bytes")) != bytes || value.Field("preview") == nil {
		t.Errorf("got %.200s, want a summary of %s bytes", value, bytes)
	}
}

func TestValuesThatNoFactCanHold(t *testing.T) {
	s := set(t, agenttest.Options{})
	s.Do(s.agent, lines(
		`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress","rawInput":{"a":1,"a":2}}`,
		`send {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":`+
			strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`))
	for _, rec := range s.Facts() {
		switch r := rec.(type) {
		case *narad.ToolCallStarted:
			if got := string(r.Args); got != `{"a":2}` {
				t.Errorf("got arguments %s, want the last of a name twice", got)
			}
		case *narad.ToolCallFinished:
			checkSummary(t, r.Response, "211")
		}
	}
	if got := sorted(s.finishes()); len(got) != 1 || got[0] != "t=success" {
		t.Errorf("got %q, want the call to be finished", got)
	}
}
