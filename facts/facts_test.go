package facts_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// through writes a fact and reads it back.
func through(t *testing.T, f narad.Authority) narad.Authority {
	t.Helper()
	e := f.Envelope()
	e.EventID, e.Timestamp, e.SessionID, e.SessionSequence = "1.aaaaaaaa", "2026-01-02T03:04:05Z", "s", 1
	if e.RunID != "" {
		e.Sequence = 1
	}
	data, err := narad.Encode(f)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	rec, err := narad.DecodeStrict(data)
	if err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	return rec.(narad.Authority)
}

func roundTrip[T any](t *testing.T, fact *narad.Custom, want T) {
	t.Helper()
	got, ok := facts.Read[T](through(t, fact), fact.Name)
	if !ok || !cmp.Equal(got, want) {
		t.Errorf("%s: got %+v %v, want %+v", fact.Name, got, ok, want)
	}
}

func TestPayloads(t *testing.T) {
	created := facts.Created{
		WorkspaceID: "w", Cwd: "/x", ClientKind: "cli", Title: "t", Agent: "a", ClientExecutorID: "e",
		RequiredProfiles: []string{"narad.conversation/v1"}, Mappings: facts.Mappings{Narya: 1}, ParentSessionID: "p",
	}
	roundTrip(t, facts.Session(facts.SessionCreated, created), created)
	queued := facts.Queued{MessageID: "m", RunID: "r", Kind: facts.Start, Content: "\u2028 \x01 \"quoted\" é"}
	roundTrip(t, facts.Session(facts.InputQueued, queued), queued)
	withdrawn := facts.Withdrawn{MessageID: "m", RunID: "r"}
	roundTrip(t, facts.Session(facts.InputWithdrawn, withdrawn), withdrawn)
	posture := facts.Postured{Posture: facts.Detached, Was: facts.Attended}
	roundTrip(t, facts.Session(facts.Posture, posture), posture)
	ref := facts.Remembered{Agent: "a", Ref: "x"}
	roundTrip(t, facts.Session(facts.AgentRemembered, ref), ref)
	decided := facts.Decided{InterruptID: "i", Members: []facts.MemberDecided{{RequestID: "a", Decision: "deny"}}, Actor: facts.Actor{ID: "ada", Rule: "r"}, Reason: "why"}
	roundTrip(t, facts.Run("root", "run", facts.Decision, decided), decided)
	output := facts.Output{ToolCallID: "c", Text: "x", Truncated: true}
	roundTrip(t, facts.Run("root", "run", facts.ToolOutput, output), output)
	if !decided.Names("a") || decided.Names("b") {
		t.Error("Names does not tell the members of a decision")
	}
}

// What an agent gives need not be text. It must not end the host.
func TestBytesThatAreNoText(t *testing.T) {
	got, ok := facts.Read[facts.Remembered](through(t, facts.Session(facts.AgentRemembered, facts.Remembered{Ref: "a\xffb"})), facts.AgentRemembered)
	if !ok || got.Ref != "a\uFFFDb" {
		t.Errorf("got %+q %v, want the byte replaced", got.Ref, ok)
	}
}

func TestReadOfSomethingElse(t *testing.T) {
	other := facts.Session(facts.QueueReleased, facts.Released{})
	if _, ok := facts.Read[facts.Queued](other, facts.InputQueued); ok {
		t.Error("read the payload of another name")
	}
	broken := &narad.Custom{Kind: narad.TypeSessionCustom, Name: facts.InputQueued, Value: narad.Raw(`[1]`)}
	if _, ok := facts.Read[facts.Queued](broken, facts.InputQueued); ok {
		t.Error("read a payload that does not fit")
	}
	if _, ok := facts.Read[facts.Queued](&narad.RunFinished{}, facts.InputQueued); ok {
		t.Error("read the payload of a fact that has none")
	}
	grown := &narad.Custom{Kind: narad.TypeSessionCustom, Name: facts.InputWithdrawn, Value: narad.Raw(`{"runId":"r","later":1}`)}
	if w, ok := facts.Read[facts.Withdrawn](grown, facts.InputWithdrawn); !ok || w.RunID != "r" {
		t.Errorf("a payload that has grown: got %+v %v", w, ok)
	}
}

// R6: every name is one that the schemas take, under the prefix.
func TestNames(t *testing.T) {
	valid := regexp.MustCompile(`^mahati(\.[a-z0-9]+)+$`)
	for _, name := range []string{
		facts.SessionCreated, facts.SessionArchived, facts.SessionRestored, facts.Posture, facts.InputQueued,
		facts.InputWithdrawn, facts.QueueReleased, facts.AgentRemembered, facts.Decision, facts.ToolOutput, facts.Round,
		facts.SessionMoved, facts.SessionModel, facts.SessionTitled, facts.SessionVariant, facts.SessionStyle,
		facts.SessionWarming, facts.SessionViewed, facts.TaskList, facts.Intercom, facts.Extension,
	} {
		if !valid.MatchString(name) {
			t.Errorf("%q is no name of ours", name)
		}
		through(t, facts.Session(name, struct{}{}))
	}
}

// R1: the optional fields come through, and what is empty leaves nothing.
func TestOptionalFields(t *testing.T) {
	f := &narad.RunFinished{}
	f.RootRunID, f.RunID = "r", "r"
	e := &f.Event
	facts.SetCaused(e, "c")
	facts.SetInputID(e, "i")
	facts.SetAgentID(e, "call_1")
	facts.SetGate(e)
	facts.SetQueued(e)
	facts.SetToolFinish(e, "write", -5)
	facts.SetToolStart(e, "edit", "Write")
	facts.SetStopReason(e, "completed")
	facts.SetAgentName(e, "helper")
	facts.SetAnswers(e, narad.Raw(`[1.10]`))
	facts.SetHarness(e, 0)
	facts.SetStatus(e, facts.Idle, facts.Running)
	e = through(t, f).Envelope()
	got := []any{
		facts.Caused(e), facts.InputID(e), facts.AgentID(e), facts.Gate(e), facts.WasQueued(e), facts.ToolName(e),
		facts.ToolKind(e), facts.StopReason(e), facts.AgentName(e), string(facts.Answers(e)),
		string(e.Optional("durationMs")), string(e.Optional("title")), string(e.Optional("harness")), string(e.Optional("status")),
	}
	want := []any{
		"c", "i", "call_1", true, true, "write", "edit", "completed", "helper", "[1.10]",
		"0", `"Write"`, "0", `{"was":"idle","now":"running"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	none := &narad.Event{}
	facts.SetCaused(none, "")
	facts.SetAgentID(none, "")
	facts.SetStatus(none, facts.Idle, facts.Idle)
	facts.SetAnswers(none, nil)
	for _, name := range []string{"commandId", "agentId", "status", "answers"} {
		if v := none.Optional(name); v != nil {
			t.Errorf("%s: got %s, want nothing", name, v)
		}
	}
	if facts.Caused(none) != "" || facts.Gate(none) || facts.WasQueued(none) {
		t.Error("a fact without optional fields has some")
	}
}
