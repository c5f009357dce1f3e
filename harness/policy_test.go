package harness_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// R37: the first rule that fits says the class; without one content is private, and the
// life of a run, its usage and its checkpoints are public, whatever a rule says.
func TestClasses(t *testing.T) {
	policy := harness.Policy{Rules: []harness.Rule{
		{Tool: "read_*", Class: harness.Public},
		{Type: "tool.*", Class: harness.Secret},
		{Agent: "other", Class: harness.Secret},
		{Type: "ui.block", Class: harness.Public},
	}}
	run := harness.Run{ID: "r", Mapping: harness.Mapping, Policy: policy, Agent: "writer"}
	used := int64(1)
	in := func(f narad.Authority) narad.Authority {
		e := f.Envelope()
		e.EventID, e.SessionID, e.RootRunID, e.RunID = "1.aaaaaaaa", "s", "r", "r"
		return f
	}
	finished := func(name string) *narad.ToolCallFinished {
		f := &narad.ToolCallFinished{ToolCallID: "c", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")}
		facts.SetToolName(&f.Event, name)
		return f
	}
	asked := &narad.InterruptRequested{InterruptID: "i", Kind: "approval"}
	facts.SetToolName(&asked.Event, "read_file")
	progress := func(p narad.Privacy) *narad.ProgressRecorded {
		return &narad.ProgressRecorded{ProgressID: "p", Category: "c", Label: "l", Status: narad.ProgressActive, Privacy: p}
	}
	for _, c := range []struct {
		fact narad.Authority
		want string
	}{
		{&narad.MessageTextDelta{MessageID: "m", Delta: "x"}, "message.delta private"},
		{&narad.ToolCallStarted{ToolCallID: "c", ToolName: "read_file"}, "tool.started public"},
		{&narad.ToolCallStarted{ToolCallID: "c", ToolName: "write_file"}, "tool.started secret"},
		{finished("read_file"), "tool.completed public"},
		{finished("write_file"), "tool.completed secret"},
		{asked, "approval.requested public"},
		{&narad.InterruptResolved{InterruptID: "i", Decision: "deny"}, "approval.resolved private"},
		{progress(narad.PrivacyPublic), "ui.block public"},
		{progress(narad.PrivacyInternal), "ui.block public"},
		{progress(narad.PrivacySensitive), "ui.block secret"},
		{&narad.RunStarted{}, "run.started public"},
		{&narad.RunError{Code: "c", Usage: &narad.Usage{PromptTokens: &used}}, "error private usage public run.completed public checkpoint public"},
	} {
		kinds := strings.Count(c.want, " ")/2 + 1
		events, err := run.Project(in(c.fact), 1, kinds, nil)
		if err != nil {
			t.Errorf("%s: %v", c.fact.Type(), err)
			continue
		}
		var got []string
		for _, e := range events {
			got = append(got, string(e.Type), string(e.Sensitivity))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.fact.Type(), text, c.want)
		}
	}
}

// A rule for tools is about nothing but tools, however wide its pattern, and ** crosses the
// slashes of names like fs/read_text_file, as in the other rules of the configuration.
func TestToolPatterns(t *testing.T) {
	project := func(pattern string, fact narad.Authority) harness.Sensitivity {
		t.Helper()
		e := fact.Envelope()
		e.EventID, e.SessionID, e.RootRunID, e.RunID = "1.aaaaaaaa", "s", "r", "r"
		run := harness.Run{ID: "r", Mapping: harness.Mapping, Policy: harness.Policy{Rules: []harness.Rule{{Tool: pattern, Class: harness.Public}}}}
		events, err := run.Project(fact, 1, 1, nil)
		if err != nil {
			t.Fatalf("%s: %v", fact.Type(), err)
		}
		return events[0].Sensitivity
	}
	said := &narad.MessageTextDelta{MessageID: "m", Delta: "x"}
	for _, pattern := range []string{"*", "**", "?*", "**/*"} {
		if got := project(pattern, said); got != harness.Private {
			t.Errorf("tool = %q on what no tool did: got %s, want private", pattern, got)
		}
	}
	for _, c := range []struct {
		pattern, tool string
		want          harness.Sensitivity
	}{
		{"*", "bash", harness.Public}, {"*", "fs/read", harness.Private}, {"**", "fs/read", harness.Public}, {"**", "bash", harness.Public},
		{"mcp/**", "mcp/a/b", harness.Public}, {"mcp/**", "mcpx", harness.Private},
	} {
		if got := project(c.pattern, &narad.ToolCallStarted{ToolCallID: "c", ToolName: c.tool}); got != c.want {
			t.Errorf("tool = %q on %q: got %s, want %s", c.pattern, c.tool, got, c.want)
		}
	}
}

// What is asked for several tools at once is at least as secret as the most secret of them,
// and no claim of an agent's makes it more open.
func TestClassOfPack(t *testing.T) {
	run := harness.Run{ID: "r", Mapping: harness.Mapping, Policy: harness.Policy{Rules: []harness.Rule{
		{Tool: "vault_*", Class: harness.Secret}, {Tool: "read_*", Class: harness.Public},
	}}}
	for input, want := range map[string]harness.Sensitivity{
		`{"members":[{"requestId":"1","toolName":"read_file"},{"requestId":"2","toolName":"vault_get"}]}`: harness.Secret,
		`{"members":[{"requestId":"1","toolName":"read_file"}]}`:                                          harness.Private,
		`{"toolName":"vault_get"}`: harness.Secret,
		`{"toolName":"read_file"}`: harness.Private,
		`{"members":7}`:            harness.Private,
	} {
		fact := &narad.InterruptRequested{InterruptID: "i", Kind: "approval", Input: narad.Raw(input)}
		fact.EventID, fact.SessionID, fact.RootRunID, fact.RunID = "1.aaaaaaaa", "s", "r", "r"
		events, err := run.Project(fact, 1, 1, nil)
		if err != nil || events[0].Sensitivity != want {
			t.Errorf("%s: got %+v %v, want %s", input, events, err, want)
		}
	}
}

// What a run recorded is what was configured; what is not understood is refused.
func TestPolicies(t *testing.T) {
	policy := harness.Policy{Rules: []harness.Rule{{Tool: "a*", Type: "tool.?*", Agent: "[x-z]", Class: harness.Public}, {Class: harness.Secret}}}
	got, err := harness.ParsePolicy(policy.Encode())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(policy) {
		t.Errorf("got %+v %v, want %+v", got, err, policy)
	}
	if raw := (harness.Policy{}).Encode(); raw != nil {
		t.Errorf("no rules: %s", raw)
	}
	if p, err := harness.ParsePolicy(nil); err != nil || len(p.Rules) > 0 {
		t.Errorf("nothing: %+v %v", p, err)
	}
	many := `[` + strings.Repeat(`{"class":"public"},`, 64) + `{"class":"public"}]`
	for _, bad := range []string{
		`{}`, `[`, `[{}]`, `[{"class":"SECRET"}]`, `[{"class":"public","tools":"x"}]`, `[{"class":"public","tool":"[","type":"x"}]`,
		`[{"class":"public","tool":"` + strings.Repeat("x", 257) + `"}]`, `[{"type":"checkpoint","class":"secret"}]`,
		`[{"type":"run.started","class":"private"}]`, many,
	} {
		if p, err := harness.ParsePolicy(narad.Raw(bad)); !errors.Is(err, harness.ErrPolicy) {
			t.Errorf("%.80s: got %+v %v", bad, p, err)
		}
	}
}

// What came of a pack is no more open than what was asked.
func TestClassOfAPacksDecision(t *testing.T) {
	run := harness.Run{ID: "r", Mapping: harness.Mapping, Policy: harness.Policy{Rules: []harness.Rule{
		{Tool: "vault_*", Class: harness.Secret}, {Tool: "read_*", Class: harness.Public},
	}}}
	for tool, want := range map[string]harness.Sensitivity{"vault_get": harness.Secret, "read_file": harness.Private, "": harness.Private} {
		fact := &narad.InterruptResolved{InterruptID: "i", Decision: "deny", Members: []narad.MemberDecision{
			{RequestID: "1", ToolName: "read_file", Decision: "approve"}, {RequestID: "2", ToolName: tool, Decision: "deny"},
		}}
		fact.EventID, fact.SessionID, fact.RootRunID, fact.RunID = "1.aaaaaaaa", "s", "r", "r"
		events, err := run.Project(fact, 1, 1, nil)
		if err != nil || events[0].Sensitivity != want {
			t.Errorf("a member of %q: got %+v %v, want %s", tool, events, err, want)
		}
	}
}
