package acp_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
)

// An agent is told that no person speaks to it, and what asks gets its last message: it knows
// no other way to answer.
func TestOtherSessionsSpeak(t *testing.T) {
	tool := `send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"completed","rawInput":{}}`
	message := func(text string) string {
		return `send {"sessionUpdate":"agent_message_chunk","messageId":"` + text + `","content":{"type":"text","text":"` + text + `"}}`
	}
	for _, tt := range []struct {
		name, askID, script, intro, answer string
	}{
		{"a message", "", lines("preface", "say Hello."), "A message from another session on this machine, called fees-1, not from a person:", ""},
		{"an ask", "a1", lines("preface", tool, "say Half-", "say even."),
			"A question from another session on this machine, called fees-1, not from a person. It gets your last message as the answer:", "Half-even."},
		{"messages without a tool between them", "a1", lines(message("one"), message("two"), "think So."), "", "two"},
		{"nothing was said", "a1", lines(tool), "", ""},
		{"a turn that fails", "a1", lines("say Well.", "error -32000 no"), "", ""},
		{"a turn that ends in the middle of a character", "a1", lines(`bytes "Ja\xe2\x82"`), "", "Ja"},
		{"a long message", "a1", "huge 100000", "", strings.Repeat("h", 32<<10)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := &facts.Speaker{Name: "fees-1", Kind: facts.Said, AskID: tt.askID}
			s := set(t, agenttest.Options{From: from})
			s.Do(s.agent, tt.script)
			if !strings.HasPrefix(s.says(), tt.intro) {
				t.Errorf("it was told %q, want %q", s.says(), tt.intro)
			}
			var answers []string
			for _, f := range s.Facts() {
				if sent, ok := facts.Read[facts.Sent](f, facts.IntercomSent); ok && sent.AskID == "a1" && sent.Kind == facts.Answered {
					answers = append(answers, sent.Content)
				}
			}
			if got := strings.Join(answers, "; "); got != tt.answer {
				t.Errorf("answered %.200q, want %.200q", got, tt.answer)
			}
		})
	}
}
