package harness

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Policy classifies the records of a run: the first rule that fits says the class, and
// without one a record has its own (R37). It is recorded at the start of a run and never
// changes for it. The zero value has no rules.
type Policy struct{ Rules []Rule }

// Rule gives a class to the records that it fits. What is empty fits anything; the others
// are patterns as [facts.Match] has them. The records of a run's life, its usage and its
// checkpoints are always public and fit no rule.
type Rule struct {
	// Tool fits the records of a tool's calls: their start and end, what is asked for them,
	// and what came of them. What is asked for several tools at once has the strictest of
	// their classes.
	Tool string `json:"tool,omitzero"`
	// Type fits the type of the record.
	Type string `json:"type,omitzero"`
	// Agent fits the name of the session's agent.
	Agent string      `json:"agent,omitzero"`
	Class Sensitivity `json:"class"`
}

// ErrPolicy says that a policy cannot be used.
var ErrPolicy = errors.New("invalid classification policy")

// Bounds of a policy.
const (
	maxRules   = 64
	maxPattern = 256
)

// ParsePolicy reads a policy: an array of rules, nil for none. It refuses what it does not
// know, since a rule that is half understood may publish what it should hide.
func ParsePolicy(raw narad.Raw) (Policy, error) {
	if raw == nil {
		return Policy{}, nil
	}
	var p Policy
	if err := json.Unmarshal(raw, &p.Rules, json.RejectUnknownMembers(true)); err != nil {
		return Policy{}, fmt.Errorf("%w: it is no array of rules", ErrPolicy)
	}
	return p, p.Validate()
}

// Validate says what is wrong with a policy.
func (p Policy) Validate() error {
	if len(p.Rules) > maxRules {
		return fmt.Errorf("%w: %d rules, at most %d are allowed", ErrPolicy, len(p.Rules), maxRules)
	}
	for i, r := range p.Rules {
		if err := r.validate(); err != nil {
			return fmt.Errorf("%w: rule %d: %w", ErrPolicy, i+1, err)
		}
	}
	return nil
}

func (r Rule) validate() error {
	if !slices.Contains([]Sensitivity{Public, Private, Secret}, r.Class) {
		return errors.New("the class is public, private or secret")
	}
	for _, pattern := range []string{r.Tool, r.Type, r.Agent} {
		if len(pattern) > maxPattern {
			return fmt.Errorf("a pattern has at most %d bytes", maxPattern)
		}
		if !facts.WellFormed(pattern) {
			return errors.New("a pattern is malformed")
		}
	}
	if alwaysPublic(Type(r.Type)) {
		return errors.New("records of this type are always public")
	}
	return nil
}

// Encode returns the policy as it is recorded, nil for one without rules. Equal policies
// give equal bytes.
func (p Policy) Encode() narad.Raw {
	if len(p.Rules) == 0 {
		return nil
	}
	data, _ := facts.Value(p.Rules) // texts alone
	return bytes.Clone(data)
}

// subject is what rules look at.
type subject struct {
	tool  string
	kind  Type
	agent string
}

// classify returns the class of a record whose own is given. What is secret by itself
// stays so: a rule is about kinds of records and knows nothing of the one.
func (p Policy) classify(s subject, own Sensitivity) Sensitivity {
	if own == Secret || alwaysPublic(s.kind) {
		return own
	}
	for _, r := range p.Rules {
		if fits(r.Tool, s.tool) && fits(r.Type, string(s.kind)) && fits(r.Agent, s.agent) {
			return r.Class
		}
	}
	return own
}

// stricter is the class of two that fewer may see.
func stricter(a, b Sensitivity) Sensitivity {
	for _, class := range []Sensitivity{Secret, Private} {
		if a == class || b == class {
			return class
		}
	}
	return Public
}

// fits reports whether a condition is met. What a record does not have meets none, be the
// pattern as wide as it may: a rule for all tools says nothing of what no tool did.
func fits(pattern, name string) bool {
	return pattern == "" || name != "" && facts.Match(pattern, name)
}

func alwaysPublic(t Type) bool {
	switch t {
	case RunStarted, RunCompleted, RunCanceled, SubrunStarted, SubrunCompleted, UsageReported, Checkpointed:
		return true
	}
	return false
}
