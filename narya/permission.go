package narya

// PermissionAsked tells that an action waits for a decision.
type PermissionAsked struct {
	PermissionID string
	Action       string
	Resource     string
	Detail       string
	ToolCallID   string // "" where no call raised it
}

// Type returns permission-asked.
func (*PermissionAsked) Type() Type { return TypePermissionAsked }

func (p *PermissionAsked) fields(c *coder) {
	c.uuid("permissionId", &p.PermissionID, required)
	c.text("action", &p.Action, required)
	c.text("resource", &p.Resource, required)
	c.text("detail", &p.Detail, optional)
	c.text("toolCallId", &p.ToolCallID, optional)
}

// PermissionDecided tells that an action waits no longer.
type PermissionDecided struct {
	PermissionID string
	Decision     Decision
	DecidedBy    Decider
}

// Type returns permission-decided.
func (*PermissionDecided) Type() Type { return TypePermissionDecided }

func (p *PermissionDecided) fields(c *coder) {
	c.uuid("permissionId", &p.PermissionID, required)
	word(c, "decision", &p.Decision, decisions, required)
	word(c, "decidedBy", &p.DecidedBy, deciders, required)
}

// Decision is how a permission was settled.
type Decision string

// The decisions. Expired is that of a permission which nobody decided: the action did not
// run.
const (
	Allow   Decision = "allow"
	Deny    Decision = "deny"
	Expired Decision = "expired"
)

var decisions = []Decision{Allow, Deny, Expired}

// Decider says who settled a permission.
type Decider string

// The deciders.
const (
	ByUser   Decider = "user"
	ByPolicy Decider = "policy"
	ByHook   Decider = "hook"
)

var deciders = []Decider{ByUser, ByPolicy, ByHook}

// QuestionAsked tells that an agent waits until a person chooses. The end of the call that
// it names retires it.
type QuestionAsked struct {
	QuestionID string
	ToolCallID string
	// Questions are answered by position.
	Questions []Question
}

// Type returns question-asked.
func (*QuestionAsked) Type() Type { return TypeQuestionAsked }

func (p *QuestionAsked) fields(c *coder) {
	c.uuid("questionId", &p.QuestionID, required)
	c.text("toolCallId", &p.ToolCallID, optional)
	list(c, "questions", &p.Questions, required, 0)
}

// Question is one question.
type Question struct {
	Header   string
	Question string
	// Multiple says that more than one option may be chosen.
	Multiple bool
	// Options stand in the order in which they are drawn, and answers name their places in
	// it: the recommended one first, the row that takes typing last.
	Options []QuestionOption
}

func (q *Question) fields(c *coder) {
	c.text("header", &q.Header, optional)
	c.text("question", &q.Question, required)
	c.flag("multiple", &q.Multiple)
	list(c, "options", &q.Options, required, 0)
}

// QuestionOption is one answer that a person may choose.
type QuestionOption struct {
	Value       string
	Recommended bool
	Preview     string
	// Other marks the row that takes typing, which is no option of the agent's.
	Other bool
}

func (o *QuestionOption) fields(c *coder) {
	c.text("value", &o.Value, required)
	c.flag("recommended", &o.Recommended)
	c.text("preview", &o.Preview, optional)
	c.flag("other", &o.Other)
}
