package host

import (
	"path"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
)

// Effect is what a rule says of a permission.
type Effect string

// The effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	AskOn Effect = "ask"
)

// Rule decides a permission by the tool's kind, name and paths. What is empty fits
// anything.
type Rule struct {
	Name   string
	Effect Effect
	Kinds  []string
	// Tool and Path are patterns as facts.Match has them. A rule with a Path allows only if
	// every path of the call fits.
	Tool string
	Path string
	// Quorum is how many principals must approve what is asked; 0 and 1 say one.
	Quorum int
}

// fits reports whether the rule is about a tool call.
func (r Rule) fits(t agent.Tool) bool {
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, t.Kind) {
		return false
	}
	if r.Tool != "" && !facts.Match(r.Tool, t.Name) {
		return false
	}
	if r.Path == "" {
		return true
	}
	fit := func(p string) bool { return facts.Match(r.Path, path.Clean(p)) }
	if r.Effect == Allow {
		return len(t.Paths) > 0 && !slices.ContainsFunc(t.Paths, func(p string) bool { return !fit(p) })
	}
	return slices.ContainsFunc(t.Paths, fit)
}

// rule returns what the first fitting rule decides; nil leaves it to so many people.
func (h *Host) rule(t agent.Tool, actions []string) (ruling *decide.Ruling, quorum int) {
	for _, r := range h.opt.Rules {
		if !r.fits(t) {
			continue
		}
		word := map[Effect]string{Allow: "approve", Deny: "deny"}[r.Effect]
		if word == "" || !slices.Contains(actions, word) {
			return nil, r.Quorum
		}
		return &decide.Ruling{Rule: r.Name, Decision: word}, 0
	}
	return nil, 0
}

// quorum is how many people must approve a call of which nothing is known but that it is
// asked for: as many as any rule wants.
func (h *Host) quorum() (most int) {
	for _, r := range h.opt.Rules {
		most = max(most, r.Quorum)
	}
	return most
}
