package acp_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
)

// rounds tells the rounds of all runs with what was said and called in them. Below is where
// a delegate works.
func rounds(list []narad.Authority) string {
	var got []string
	for _, rec := range list {
		word := ""
		switch rec.Type() {
		case narad.TypeMessageTextStarted:
			word = "message"
		case narad.TypeMessageTextCompleted:
			word = "end"
		case narad.TypeReasoningStarted:
			word = "thought"
		case narad.TypeToolCallStarted:
			word = "call"
		case narad.TypeRunStarted:
			got = append(got, "|")
		}
		if r, ok := facts.Read[facts.Rounded](rec, facts.Round); ok {
			word = r.Provider + "/" + r.Model
		}
		if e := rec.Envelope(); word != "" && e.RunID != e.RootRunID {
			word = "below:" + word
		}
		if word != "" {
			got = append(got, word)
		}
	}
	return strings.Join(got, " ")
}

// One round is told for each time that the model is asked: the prompt, and what comes after
// the results of calls. It names the model that answers, as far as anybody says (R42).
func TestRounds(t *testing.T) {
	call := func(id, status string) string {
		return `send {"sessionUpdate":"tool_call","toolCallId":"` + id + `","title":"x","status":"` + status + `"}`
	}
	ends := func(id, status string) string {
		return `send {"sessionUpdate":"tool_call_update","toolCallId":"` + id + `","status":"` + status + `"}`
	}
	below := func(text string) string {
		return `send {"sessionUpdate":"agent_message_chunk","_meta":{"parentToolCallId":"t"},"content":{"type":"text","text":"` + text + `"}}`
	}
	for _, tt := range []struct{ name, words, script, want string }{
		{"an answer", "stderr=x", "say a", "| acp/test message end"},
		{"the model that the agent has", "models=p/one,two", "say a", "| p/one message end"},
		{"before there were settings", "oldmodels=one,two", "say a", "| acp/one message end"},
		{"it changes its model", "models=one,two", lines("say a", call("t", "completed"),
			`send {"sessionUpdate":"config_option_update","configOptions":[{"id":"m","category":"model","type":"select","currentValue":"p/two","options":[]}]}`,
			"say b"), "| acp/one message end call p/two message end"},
		{"answer, call, answer", "stderr=x", lines("say a", call("t", "in_progress"), ends("t", "completed"), "think hm", "say b"),
			"| acp/test message end call acp/test thought message end"},
		{"calls one after the other", "stderr=x", lines(call("1", "completed"), call("2", "failed"), "say a"),
			"| acp/test call acp/test call acp/test message end"},
		{"calls at once", "stderr=x", lines(call("1", "in_progress"), call("2", "in_progress"), ends("2", "completed"), "say meanwhile", ends("1", "completed"), "say a"),
			"| acp/test call call message end acp/test message end"},
		{"nothing after the call", "stderr=x", lines("say a", call("t", "completed")), "| acp/test message end call"},
		{"a delegate", "models=one,two", lines(call("t", "in_progress"), below("a"), below("b"), ends("t", "completed"), "say c"),
			"| acp/one call | below:acp/test below:message below:end acp/one message end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := set(t, agenttest.Options{}, tt.words)
			s.Do(s.agent, tt.script)
			if got := rounds(s.Facts()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What was denied has ended, too: the agent goes on with another round.
func TestRoundAfterDenial(t *testing.T) {
	s := set(t, agenttest.Options{Answer: always("deny")})
	s.Do(s.agent, lines("ask p allow_once,reject_once "+askRun, "wait p"))
	if got, want := rounds(s.Facts()), "| acp/test call | acp/test message end"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
