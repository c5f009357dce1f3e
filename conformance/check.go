package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Check is one demand on a host.
type Check struct {
	// Name identifies it: the area, a dot, and what is demanded there.
	Name string
	// Cites says where the demand is written.
	Cites string
	// Demands is the demand in one phrase.
	Demands string

	needs needs
	run   func(*probe)
}

// needs are what a check cannot do without.
type needs uint8

const (
	nothing needs = 0
	agent   needs = 1 << iota
	executor
)

func (n needs) missing(t Target) string {
	switch {
	case n&agent != 0 && t.Agent == "":
		return "no agent was named that does what the checks ask (see docs/conformance.md)"
	case n&executor != 0 && t.Executor == "":
		return "no executor id was given"
	}
	return ""
}

// Checks returns all checks, in the order in which they are performed.
func Checks() []Check {
	return slices.Concat(hostChecks, sessionChecks, historyChecks, streamChecks, commandChecks, interruptChecks, executorChecks, viewChecks)
}

func chosen(only []string) ([]Check, error) {
	if len(only) == 0 {
		return Checks(), nil
	}
	var list []Check
	for _, c := range Checks() {
		if slices.ContainsFunc(only, func(name string) bool { return strings.HasPrefix(c.Name, name) }) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no check has a name that begins with %s", ErrChecks, strings.Join(only, " or "))
	}
	return list, nil
}
