package narya

import (
	"regexp"
	"slices"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// TestAliases: what a fact names for the first time has its way back, unless the UUID is
// the id itself (R5).
func TestAliases(t *testing.T) {
	const own = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"
	pack := narad.Raw(`{"members":[{"requestId":"a"},{"requestId":"b"}]}`)
	words := []string{"approve", "deny"}
	for _, c := range []struct {
		name string
		fact narad.Authority
		want []Alias
	}{
		{"a session", custom("", facts.SessionCreated, facts.Created{}), []Alias{
			{UUID: UUID(KindSession, "s"), Kind: KindSession, ID: "s"}, {UUID: MainLaneID("s"), Kind: KindMainLane, ID: "s"}}},
		{"a session of an own UUID", in("", facts.Session(facts.SessionCreated, facts.Created{}), func(e *narad.Event) { e.SessionID = own }), []Alias{
			{UUID: MainLaneID(own), Kind: KindMainLane, ID: own}}},
		{"a run", in("r", &narad.RunStarted{}, func(e *narad.Event) { e.RootRunID, e.RunID = own, own }), nil},
		{"a run of a chosen id", in("r", &narad.RunStarted{}), []Alias{{UUID: UUID(KindRun, "r"), Kind: KindRun, ID: "r"}}},
		{"a nested run", in(own, &narad.RunStarted{ParentRunID: "r"}), []Alias{{UUID: LaneID(own), Kind: KindLane, ID: own}}},
		{"a gate", in("n", &narad.RunStarted{ParentRunID: "r"}, facts.SetGate), nil},
		{"a workflow", in("", &narad.WorkflowStarted{}, ofWorkflow), []Alias{{UUID: UUID(KindWorkflow, "w"), Kind: KindWorkflow, ID: "w"}}},
		{"a permission", in("r", &narad.InterruptRequested{InterruptID: own, Kind: "approval", Actions: words}), nil},
		{"a question", in("r", &narad.InterruptRequested{InterruptID: "i", Kind: "question", Actions: words, Input: pack}), []Alias{
			{UUID: UUID(KindInterrupt, "i"), Kind: KindInterrupt, ID: "i"}}},
		{"a pack", in("r", &narad.InterruptRequested{InterruptID: own, Kind: "approval", Actions: words, Input: pack}), []Alias{
			{MemberPermissionID(own, "a"), KindMember, own, "a"}, {MemberPermissionID(own, "b"), KindMember, own, "b"}}},
		{"a piece of text", in("r", &narad.MessageTextDelta{MessageID: "m"}), nil},
	} {
		got := Mapping1.Aliases(c.fact)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if NoMapping.Aliases(c.fact) != nil {
			t.Errorf("%s: a session that began before the contract has aliases", c.name)
		}
		for _, a := range got { // each is one that the events name
			if !mentions(t, c.fact, a.UUID) {
				t.Errorf("%s: no event names %+v", c.name, a)
			}
		}
	}
}

var uuids = regexp.MustCompile(`[0-9a-f-]{36}`)

// mentions reports whether the events of a fact name a UUID.
func mentions(t *testing.T, fact narad.Authority, uuid string) bool {
	t.Helper()
	for _, e := range Mapping1.Project(fact) {
		e.ID = 1
		if data := mustEncode(t, e); slices.Contains(uuids.FindAllString(data, -1), uuid) {
			return true
		}
	}
	return false
}
