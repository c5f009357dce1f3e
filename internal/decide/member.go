package decide

import (
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// member is one thing of a pack, as the request's input lists it.
type member struct {
	RequestID  string `json:"requestId"`
	ToolCallID string `json:"toolCallId,omitzero"`
	ToolName   string `json:"toolName,omitzero"`
	ToolType   string `json:"toolType,omitzero"`
	Action     string `json:"action,omitzero"`
	Resource   string `json:"resource,omitzero"`
	Detail     string `json:"detail,omitzero"`
	// Quorum is how many deciders an approval needs; 0 and 1 say one.
	Quorum int `json:"quorum,omitzero"`
	// Ruling decides the member at once; nil asks a person.
	Ruling *Ruling `json:"-"`
}

// membersOf reads the members of a pack.
func membersOf(i session.Interrupt) []member {
	items, _ := i.Input.Field("members").Elements()
	members := make([]member, 0, len(items))
	for _, item := range items {
		m := member{
			RequestID: word(item, "requestId"), ToolCallID: word(item, "toolCallId"),
			ToolName: word(item, "toolName"), ToolType: word(item, "toolType"), Quorum: quorumOf(item),
		}
		if m.RequestID != "" {
			members = append(members, m)
		}
	}
	return members
}

func word(object narad.Raw, name string) string {
	s, _ := object.Field(name).IsString()
	return s
}

func (m member) decided(decision string) narad.MemberDecision {
	return narad.MemberDecision{
		RequestID: m.RequestID, ToolCallID: m.ToolCallID, ToolName: m.ToolName, ToolType: m.ToolType,
		Decision: decision,
	}
}

// lapsed is what becomes of an interrupt that is closed by no decision of its own: of a pack,
// whose members keep what was decided of them before, the others expire. A vote that was
// not yet a decision goes with its question.
func (d *draft) lapsed(i session.Interrupt) (decision string, members []narad.MemberDecision) {
	for _, m := range membersOf(i) {
		was := d.desk.Votes[i.InterruptID][m.RequestID]
		members = append(members, m.decided(orElse(was, narad.DecisionExpired)))
	}
	if len(members) == 0 {
		return narad.DecisionExpired, nil
	}
	return session.Fold(members), members
}
