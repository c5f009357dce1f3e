package host

import (
	"testing"

	"github.com/mahati-host/mahati/internal/agent"
)

func TestRules(t *testing.T) {
	words := []string{"approve", "deny"}
	rules := []Rule{
		{Name: "secrets", Effect: Deny, Path: "**/.env"},
		{Name: "tests", Effect: Allow, Kinds: []string{"edit"}, Path: "/src/**/*_test.go"},
		{Name: "ask first", Effect: AskOn, Tool: "deploy*"},
		{Name: "reads", Effect: Allow, Kinds: []string{"read", "search"}},
		{Name: "no shell", Effect: Deny, Kinds: []string{"execute"}, Tool: "bash"},
		{Name: "shell", Effect: Allow, Kinds: []string{"execute"}},
	}
	for _, tt := range []struct {
		name  string
		tool  agent.Tool
		words []string
		want  string // rule and decision, "" for a person
	}{
		{"a kind", agent.Tool{Name: "cat", Kind: "read"}, words, "reads approve"},
		{"the first rule counts", agent.Tool{Name: "cat", Kind: "read", Paths: []string{"/src/.env"}}, words, "secrets deny"},
		{"one path is enough to deny", agent.Tool{Kind: "read", Paths: []string{"/a", "/b/.env"}}, words, "secrets deny"},
		{"a path that is not clean", agent.Tool{Kind: "read", Paths: []string{"/b/x/../.env"}}, words, "secrets deny"},
		{"every path must fit to allow", agent.Tool{Kind: "edit", Paths: []string{"/src/a/b_test.go", "/src/c_test.go"}}, words, "tests approve"},
		{"one does not", agent.Tool{Kind: "edit", Paths: []string{"/src/a_test.go", "/etc/passwd"}}, words, ""},
		{"no path is told", agent.Tool{Kind: "edit"}, words, ""},
		{"dots lead out", agent.Tool{Kind: "edit", Paths: []string{"/src/../etc/a_test.go"}}, words, ""},
		{"a person", agent.Tool{Name: "deploy-all", Kind: "execute"}, words, ""},
		{"tool and kind", agent.Tool{Name: "bash", Kind: "execute"}, words, "no shell deny"},
		{"another tool", agent.Tool{Name: "make", Kind: "execute"}, words, "shell approve"},
		{"no rule", agent.Tool{Name: "x", Kind: "other"}, words, ""},
		{"the word is not offered", agent.Tool{Name: "cat", Kind: "read"}, []string{"approve_always", "deny"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &Host{opt: Options{Rules: rules}}
			got := ""
			if r, _ := h.rule(tt.tool, tt.words); r != nil {
				got = r.Rule + " " + r.Decision
			}
			if got != tt.want {
				t.Errorf("%+v: got %q, want %q", tt.tool, got, tt.want)
			}
		})
	}
}
