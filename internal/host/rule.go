package host

import (
	"path"
	"slices"
	"strings"

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
	// Tool and Path are patterns of package path; in Path ** stands for any number of
	// elements. A rule with a Path allows only if every path of the call fits.
	Tool string
	Path string
}

// fits reports whether the rule is about a tool call.
func (r Rule) fits(t agent.Tool) bool {
	if len(r.Kinds) > 0 && !slices.Contains(r.Kinds, t.Kind) {
		return false
	}
	if r.Tool != "" && !match(r.Tool, t.Name) {
		return false
	}
	if r.Path == "" {
		return true
	}
	fit := func(p string) bool { return match(r.Path, path.Clean(p)) }
	if r.Effect == Allow {
		return len(t.Paths) > 0 && !slices.ContainsFunc(t.Paths, func(p string) bool { return !fit(p) })
	}
	return slices.ContainsFunc(t.Paths, fit)
}

// rule returns what the first fitting rule decides; nil leaves it to a person.
func (h *Host) rule(t agent.Tool, actions []string) *decide.Ruling {
	for _, r := range h.opt.Rules {
		if !r.fits(t) {
			continue
		}
		word := map[Effect]string{Allow: "approve", Deny: "deny"}[r.Effect]
		if word == "" || !slices.Contains(actions, word) {
			return nil
		}
		return &decide.Ruling{Rule: r.Name, Decision: word}
	}
	return nil
}

// match is path.Match with ** for any number of elements.
func match(pattern, name string) bool {
	return matchParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func matchParts(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		for skip := range len(name) + 1 {
			if matchParts(pattern[1:], name[skip:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matchParts(pattern[1:], name[1:])
}
