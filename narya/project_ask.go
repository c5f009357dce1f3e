package narya

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// asking is what the input of an interrupt says of what it asks for (R11-R13).
type asking struct {
	permission
	Members   []permission  `json:"members"`
	Questions []askQuestion `json:"questions"`
}

type permission struct {
	RequestID  string `json:"requestId"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	Action     string `json:"action"`
	Resource   string `json:"resource"`
	Detail     string `json:"detail"`
	// Quorum is as it was told, which may be anything.
	Quorum narad.Raw `json:"quorum"`
}

type askQuestion struct {
	Text        string   `json:"text"`
	Options     []string `json:"options"`
	Recommended *int     `json:"recommended"`
	Multiple    bool     `json:"multiple"`
	Free        bool     `json:"free"`
}

func (p *projection) asked(f *narad.InterruptRequested) {
	if facts.AsksFor(f.Kind, f.Actions) == facts.AsksQuestion {
		p.question(f, inputOf(f))
		return
	}
	members := membersOf(f)
	for _, m := range members {
		p.permission(MemberPermissionID(f.InterruptID, m.RequestID), f, m)
	}
	if len(members) == 0 {
		p.permission(UUID(KindInterrupt, f.InterruptID), f, inputOf(f).permission)
	}
}

func inputOf(f *narad.InterruptRequested) asking {
	var input asking
	if f.Input == nil || json.Unmarshal(f.Input, &input) != nil {
		return asking{} // an agent's own form
	}
	return input
}

// membersOf returns the members of a pack of permissions, none for any other interrupt.
func membersOf(f *narad.InterruptRequested) []permission {
	if facts.AsksFor(f.Kind, f.Actions) == facts.AsksQuestion {
		return nil
	}
	return inputOf(f).Members
}

func (p *projection) permission(id string, f *narad.InterruptRequested, is permission) {
	p.tellIn(&PermissionAsked{
		PermissionID: id, ToolCallID: is.ToolCallID, Action: cmp.Or(is.Action, is.ToolName, f.Kind),
		Resource: cmp.Or(is.Resource, f.Title, f.Message), Detail: is.explained(f),
	})
}

// explained is what is shown of a permission, with what an allow would grant that is
// remembered.
func (p permission) explained(f *narad.InterruptRequested) string {
	detail := cmp.Or(p.Detail, f.Message)
	subject := facts.Subject{Action: p.Action, Tool: p.ToolName, Resource: p.Resource}
	if f.Scope == narad.ScopeWorkflow || !subject.Lasting(facts.Quorum(p.Quorum)) {
		return detail
	}
	grants := "If it is remembered, an allow holds for " + cmp.Or(p.Action, p.ToolName, f.Kind)
	if p.Action != "" && p.ToolName != "" && p.ToolName != p.Action {
		grants += " by " + p.ToolName
	}
	grants += " on exactly this resource."
	if detail == "" {
		return grants
	}
	return detail + "\n\n" + grants
}

func (p *projection) question(f *narad.InterruptRequested, input asking) {
	asked := &QuestionAsked{QuestionID: UUID(KindInterrupt, f.InterruptID), ToolCallID: input.ToolCallID}
	for _, q := range input.Questions {
		asked.Questions = append(asked.Questions, q.shown(f.Title))
	}
	if len(asked.Questions) == 0 { // another choice than a permission's (R11)
		one := askQuestion{Text: cmp.Or(f.Message, f.Title, f.Kind), Options: f.Actions}
		asked.Questions = []Question{one.shown(f.Title)}
	}
	p.tellIn(asked)
}

// shown is a question as it is drawn.
func (q askQuestion) shown(header string) Question {
	shown := Question{Header: header, Question: q.Text, Multiple: q.Multiple, Options: []QuestionOption{}}
	for _, i := range facts.OptionOrder(len(q.Options), q.Recommended) {
		shown.Options = append(shown.Options, QuestionOption{
			Value: q.Options[i], Recommended: q.Recommended != nil && *q.Recommended == i,
		})
	}
	if q.Free || len(q.Options) == 0 {
		shown.Options = append(shown.Options, QuestionOption{Value: "Something else", Other: true})
	}
	return shown
}

func (p *projection) resolved(f *narad.InterruptResolved) {
	if facts.Asks(p.event) != facts.AsksPermission {
		return // the end of its call retires a question
	}
	var who facts.Actor
	if f.Actor != nil && json.Unmarshal(f.Actor, &who) != nil {
		who = facts.Actor{}
	}
	if len(f.Members) == 0 {
		p.decided(UUID(KindInterrupt, f.InterruptID), f.Decision, who)
		return
	}
	open, told := facts.Settles(p.event)
	for _, m := range f.Members {
		if !told || slices.Contains(open, m.RequestID) {
			p.decided(MemberPermissionID(f.InterruptID, m.RequestID), m.Decision, who)
		}
	}
}

// memberDecided tells of members that were decided before the last of their pack. A vote
// decides nothing.
func (p *projection) memberDecided(d facts.Decided) {
	for _, m := range d.Members {
		if !m.Vote {
			p.decided(MemberPermissionID(d.InterruptID, m.RequestID), m.Decision, d.Actor)
		}
	}
}

// policyActor is the actor of a decision that a rule made.
const policyActor = "policy"

func (p *projection) decided(id, word string, who facts.Actor) {
	decided := &PermissionDecided{PermissionID: id, Decision: Deny, DecidedBy: ByUser}
	if who.Rule != "" || who.ID == policyActor {
		decided.DecidedBy = ByPolicy
	}
	switch word {
	case "approve", "approve_always":
		decided.Decision = Allow
	case narad.DecisionExpired:
		decided.Decision, decided.DecidedBy = Expired, ByPolicy
	}
	p.tellIn(decided)
}
