package acp_test

import (
	"fmt"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// A call that succeeded tells which files it read or changed, each once.
func TestFileTouches(t *testing.T) {
	const done = `,"status":"completed"}`
	call := func(rest string) string {
		return `send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x"` + rest
	}
	for _, tt := range []struct{ name, script, want string }{
		{"read", call(`,"kind":"read","locations":[{"path":"/a"},{"path":"/b"},{"path":"/a"}]` + done), "[{/a read} {/b read}]"},
		{"below the directory of the session", call(`,"kind":"edit","locations":[{"path":"sub/a"}]` + done), "[{/sub/a edit}]"},
		{"deleted", call(`,"kind":"delete","locations":[{"path":"/a"}]` + done), "[{/a delete}]"},
		{"changed and made", call(`,"kind":"edit","locations":[{"path":"/a"}],"content":[{"type":"diff","path":"/a","oldText":"x","newText":"y"},` +
			`{"type":"diff","path":"/b","newText":"y"}]` + done), "[{/a edit} {/b write}]"},
		{"of another kind", call(`,"kind":"search","locations":[{"path":"/a"}]` + done), "[]"},
		{"failed", call(`,"kind":"edit","locations":[{"path":"/a"}],"status":"failed"}`), "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := set(t, agenttest.Options{Cwd: "/"})
			s.Do(s.agent, tt.script)
			got, ends := "", 0
			for _, f := range s.Facts() {
				if end, ok := f.(*narad.ToolCallFinished); ok {
					got, ends = fmt.Sprint(facts.FileTouches(&end.Event)), ends+1
				}
			}
			if got != tt.want || ends != 1 {
				t.Errorf("got %s of %d calls, want %s", got, ends, tt.want)
			}
		})
	}
}

// A call that failed says why in its own words, as far as it has any.
func TestFailures(t *testing.T) {
	call := func(rest string) string {
		return `send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"failed"` + rest + `}`
	}
	for _, tt := range []struct{ name, script, want string }{
		{"its text", call(`,"content":[{"type":"content","content":{"type":"text","text":"it broke because"}}],"rawOutput":{"x":1}`), "it broke because"},
		{"raw output that is a text", call(`,"rawOutput":"no such file"`), "no such file"},
		{"raw output that tells an error", call(`,"rawOutput":{"error":"no such file","code":1}`), "no such file"},
		{"the message of an error", call(`,"rawOutput":{"error":{"message":"no such file"}}`), "no such file"},
		{"a message", call(`,"rawOutput":{"message":"no such file"}`), "no such file"},
		{"nothing", call(`,"rawOutput":{"x":1}`), ""},
		{"denied with a reason", lines("ask p allow_once,reject_once "+askRun, "wait p"), "because"},
		{"it succeeded", `send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"completed","rawOutput":"fine"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := set(t, agenttest.Options{Answer: func(session.Interrupt) (agenttest.Decision, bool) {
				return agenttest.Decision{Decision: "deny", Reason: "because"}, true
			}})
			s.Do(s.agent, tt.script)
			var got []string
			for _, f := range s.Facts() {
				if end, ok := f.(*narad.ToolCallFinished); ok {
					got = append(got, end.Message)
				}
			}
			if len(got) != 1 || got[0] != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A turn costs what it adds to the cost of its session. Where that is not known the turn
// says nothing, which is not zero (R42).
func TestFiguresOfTurns(t *testing.T) {
	usage := func(fields string) string { return `send {"sessionUpdate":"usage_update",` + fields + `}` }
	cost := func(amount, currency string) string {
		return usage(`"used":10,"size":2000,"cost":{"amount":` + amount + `,"currency":"` + currency + `"}`)
	}
	s := set(t, agenttest.Options{})
	for _, turn := range []struct{ script, cost, window string }{
		{cost("0.25", "USD"), "0.25", "2000"},
		{lines(cost("0.5", "USD"), cost("1.25", "USD")), "1", "2000"},
		{usage(`"used":10,"size":4000`), "unknown", "4000"},
		{cost("3", "USD"), "unknown", "2000"}, // what the turn before has added is not known
		{cost("3", "USD"), "0", "2000"},
		{cost("2", "USD"), "unknown", "2000"}, // a sum that falls is none
		{cost("2.5", "EUR"), "unknown", "2000"},
		{usage(`"used":10,"size":-1`), "unknown", "unknown"},
	} {
		e := s.Do(s.agent, turn.script)
		if got, window := figure(e.Turn.CostUSD), figure(e.Turn.ContextWindow); e.Outcome != agent.Finished || got != turn.cost || window != turn.window {
			t.Errorf("after %s: cost %s, window %s, want %s and %s", turn.script, got, window, turn.cost, turn.window)
		}
	}
}

func figure[T any](n *T) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
