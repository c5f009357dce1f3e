package harness

import (
	"cmp"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// approval is the payload of an approval's records, with what a headless consumer needs to
// show and to decide it.
type approval struct {
	In
	Approval
	CallID string `json:"call_id,omitzero"`
	// Actions are the decisions that are offered, Input what is asked, whole (R11-R13).
	Actions   []string  `json:"actions,omitempty"`
	Input     narad.Raw `json:"input,omitzero"`
	ExpiresAt string    `json:"expires_at,omitzero"`
	// Decision is the word of the decision, Reason why, Members those of a pack.
	Decision string         `json:"decision,omitzero"`
	Reason   string         `json:"reason,omitzero"`
	Members  []memberOutput `json:"members,omitempty"`
	Answers  narad.Raw      `json:"answers,omitzero"`
}

type memberOutput struct {
	RequestID string `json:"request_id"`
	Decision  string `json:"decision"`
}

// question is what a ui.block shows of questions.
type question struct {
	Questions narad.Raw `json:"questions,omitzero"`
	Actions   []string  `json:"actions"`
}

func (p *projection) asked(f *narad.InterruptRequested) error {
	call := facts.ToolCall(&f.Event)
	cause := p.begun()
	if call != "" {
		cause = toolID(call, wordStarted)
	}
	p.about(f.InterruptID)
	if p.event.Type == UIBlock {
		p.named(approvalID(f.InterruptID, "shown"), cause)
		data := question{f.Input.Field("questions"), f.Actions}
		return p.says(Private, facts.ToolName(&f.Event), block{p.in, f.InterruptID, "question", data})
	}
	p.named(approvalID(f.InterruptID, wordRequested), cause)
	prompt, summary := f.Title, f.Message
	if prompt == "" {
		prompt, summary = cmp.Or(f.Message, firstQuestion(f.Input)), word(f.Input, "detail")
	}
	p.mentions = namedTools(f.Input)
	return p.says(Private, facts.ToolName(&f.Event), approval{
		In: p.in, CallID: call, Actions: f.Actions, Input: f.Input, ExpiresAt: f.ExpiresAt,
		Approval: Approval{
			ApprovalID: f.InterruptID, Prompt: prompt, Status: "pending", Scope: Scope(f.Kind, f.Input),
			Kind: f.Kind, Summary: summary,
		},
	})
}

// namedTools are the tools that the input of an interrupt is about by its own words, those of
// a pack's members included (R11, R12).
func namedTools(input narad.Raw) []string {
	if input == nil {
		return nil
	}
	var names []string
	members, _ := input.Field("members").Elements()
	for _, about := range append(members, input) {
		if name := word(about, "toolName"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (p *projection) decided(f *narad.InterruptResolved) error {
	p.named(approvalID(f.InterruptID, wordResolved), p.told(approvalID(f.InterruptID, wordRequested)))
	p.about(f.InterruptID)
	payload := approval{
		In: p.in, Decision: f.Decision, Reason: f.Reason, Answers: facts.Answers(&f.Event),
		Approval: Approval{
			ApprovalID: f.InterruptID, Status: StatusOf(f.Decision), PolicyReason: word(f.Actor, "rule"),
		},
	}
	for _, m := range f.Members {
		payload.Members = append(payload.Members, memberOutput{m.RequestID, m.Decision})
		if m.ToolName != "" {
			p.mentions = append(p.mentions, m.ToolName)
		}
	}
	return p.says(Private, facts.ToolName(&f.Event), payload)
}

// StatusOf is the status of an approval that was decided with an action: approved, denied
// or expired. An answer to a question approves that its run goes on with it.
func StatusOf(decision string) string {
	switch decision {
	case narad.DecisionExpired:
		return "expired"
	case "deny", "deny_always", "stop", "dismiss":
		return "denied"
	}
	return "approved"
}

// Scope is what an approval grants, as its request declares it; see [facts.Scope].
func Scope(kind string, input narad.Raw) string { return facts.Scope(kind, input) }

// firstQuestion is the text of the first of the questions that are asked, "" for none.
func firstQuestion(input narad.Raw) string {
	if input == nil {
		return ""
	}
	list, _ := input.Field("questions").Elements()
	if len(list) == 0 {
		return ""
	}
	return word(list[0], "text")
}

// word returns a text of an object, "" for none.
func word(object narad.Raw, name string) string {
	if object == nil {
		return ""
	}
	s, _ := object.Field(name).IsString()
	return s
}
