package facts

import (
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/narad"
)

// PermissionRemembered is the name of the fact that a decision holds for later asks too.
const PermissionRemembered = "mahati.permission.remembered"

// PermissionForgotten is the name of the fact that a remembered decision holds no more.
const PermissionForgotten = "mahati.permission.forgotten"

// Forgotten is the payload of PermissionForgotten.
type Forgotten struct {
	// Rule is the name of the rule that was made by a decision.
	Rule string `json:"rule"`
}

// PermissionRule is the payload of PermissionRemembered: how the host decides from now on
// what is asked for the very same subject, in the session or in one lane of it. No agent
// is told of it.
type PermissionRule struct {
	// Rule is the name under which it decides.
	Rule string `json:"rule"`
	// Scope is one of ForSession and ForLane. RunID is the run of the lane, "" where that is
	// the main one.
	Scope string `json:"scope"`
	RunID string `json:"runId,omitzero"`
	Subject
	// Decision is approve or deny.
	Decision string `json:"decision"`
	// InterruptID is what was decided so, RequestID the member of a pack.
	InterruptID string `json:"interruptId"`
	RequestID   string `json:"requestId,omitzero"`
}

// The scopes of remembered decisions.
const (
	ForSession = "session"
	ForLane    = "lane"
)

// Same reports whether two rules are about the same, so that the later one replaces the
// other.
func (r PermissionRule) Same(other PermissionRule) bool {
	return r.Scope == other.Scope && r.RunID == other.RunID && r.Subject == other.Subject
}

// Covers reports whether the rule decides what is asked for a subject in the lane of a
// run, "" for the main one.
func (r PermissionRule) Covers(run string, of Subject) bool {
	return r.Subject == of && (r.Scope == ForSession || r.RunID == run)
}

// Subject is what a permission is asked for, word for word.
type Subject struct {
	Action   string `json:"action,omitzero"`
	Tool     string `json:"tool,omitzero"`
	Resource string `json:"resource"`
}

// maxSubject bounds a resource that can be remembered, in bytes: what agents ask for is
// not cut as short as this, so that two which differ are never the same.
const maxSubject = 4 << 10

// SubjectOf reads the subject out of the input of an interrupt, or of a member of a pack.
// It is false where a decision can not be remembered: no resource is named, or so long a
// one that it may have been cut, or several must agree each time.
func SubjectOf(input narad.Raw) (Subject, bool) {
	if input == nil {
		return Subject{}, false
	}
	word := func(name string) string {
		s, _ := input.Field(name).IsString()
		return s
	}
	s := Subject{Action: word("action"), Tool: word("toolName"), Resource: word("resource")}
	return s, s.Lasting(Quorum(input.Field("quorum")))
}

// Quorum reads how many deciders an approval needs, 1 where nothing else is told.
func Quorum(told narad.Raw) int {
	n, err := strconv.Atoi(string(told))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Lasting reports whether a decision about the subject, of so many deciders, can be
// remembered.
func (s Subject) Lasting(quorum int) bool {
	return s.Resource != "" && len(s.Resource) <= maxSubject && quorum <= 1
}

// OptionOrder returns the order in which a question's options are drawn: at each place the
// agent's own index. The recommended one stands first. The row that takes typing, if there
// is one, stands after all of these.
func OptionOrder(options int, recommended *int) []int {
	order := make([]int, options)
	for i := range order {
		order[i] = i
	}
	if recommended != nil && *recommended > 0 && *recommended < options {
		order = slices.Insert(slices.Delete(order, *recommended, *recommended+1), 0, *recommended)
	}
	return order
}
