package config

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// What a rule has done with a permission that an agent asks for.
const (
	Allow = "allow"
	Ask   = "ask"
	Deny  = "deny"
)

// A Rule decides permissions without asking. Of all rules the first that matches
// counts; a rule matches when all of its conditions do, and an empty condition
// always does.
type Rule struct {
	Name   string // recorded with each decision by the rule
	Action string
	Kinds  []string // of tools
	Tool   string   // pattern for the name of the tool
	Path   string   // pattern for each file that the call is about
	Quorum int      // how many must approve; 0 for one
}

// ToolKinds are the kinds of tools that a rule can name.
func ToolKinds() []string {
	return []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"}
}

const (
	maxRules    = 1024
	maxRuleName = 256
	maxPattern  = 1024
	maxQuorum   = 100
)

// policy reads all [[policy]].
func (l *loader) policy(doc document, raw any) {
	entries, ok := raw.([]any)
	if !ok {
		l.fail(doc.source("policy"), "policy", show(raw), "must be written as [[policy]], one for each rule")
		return
	}
	if len(entries) > maxRules {
		l.fail(doc.source("policy"), "policy", "", fmt.Sprintf("must be at most %d rules", maxRules))
		return
	}
	seen := make(map[string]bool)
	for i, entry := range entries {
		key := entryKey("policy", i)
		values, ok := entry.(map[string]any)
		if !ok {
			l.fail(doc.source(key), key, show(entry), "must be a table")
			continue
		}
		rule := Rule{Name: fmt.Sprintf("rule-%d", i+1)}
		if !l.rule(doc, key, values, &rule) {
			continue
		}
		if seen[rule.Name] {
			l.fail(doc.source(join(key, "name")), join(key, "name"), fmt.Sprintf("%q", rule.Name), "another rule has this name")
			continue
		}
		seen[rule.Name] = true
		l.config.Policy = append(l.config.Policy, rule)
	}
}

func (l *loader) rule(doc document, prefix string, values map[string]any, rule *Rule) bool {
	before := len(l.errs)
	for _, field := range slices.Sorted(maps.Keys(values)) {
		key, raw := join(prefix, field), values[field]
		if err := rule.set(field, raw); err != nil {
			shown := show(raw)
			if errors.Is(err, errNoSuchKey) {
				shown = ""
			}
			l.fail(doc.source(key), key, shown, err.Error())
		}
	}
	if len(l.errs) == before && rule.Quorum > 0 && rule.Action != Ask {
		l.fail(doc.source(join(prefix, "quorum")), join(prefix, "quorum"), "", "is for the action ask alone")
	}
	if len(l.errs) == before && rule.Action == "" {
		l.fail(doc.source(prefix), join(prefix, "action"), "", "must be allow, ask or deny")
	}
	return len(l.errs) == before
}

func (r *Rule) set(field string, raw any) error {
	switch field {
	case "kind":
		return r.setKinds(raw)
	case "quorum":
		n, ok := raw.(int64)
		if !ok || n < 1 || n > maxQuorum {
			return fmt.Errorf("must be a number from 1 to %d", maxQuorum)
		}
		r.Quorum = int(n)
		return nil
	}
	checks := map[string]struct {
		at    *string
		check func(string) error
	}{
		"name":   {&r.Name, checkRuleName},
		"action": {&r.Action, checkAction},
		"tool":   {&r.Tool, checkPattern},
		"path":   {&r.Path, checkPattern},
	}
	target, ok := checks[field]
	if !ok {
		return errNoSuchKey
	}
	one, ok := raw.(string)
	if !ok {
		return errors.New("must be a string")
	}
	if err := target.check(one); err != nil {
		return err
	}
	*target.at = one
	return nil
}

// setKinds takes one kind or a list.
func (r *Rule) setKinds(raw any) error {
	kinds, ok := stringsOf(raw)
	if one, isText := raw.(string); isText {
		kinds, ok = []string{one}, true
	}
	rule := fmt.Errorf("must be one or a list of %s", strings.Join(ToolKinds(), ", "))
	if !ok || len(kinds) == 0 {
		return rule
	}
	for _, kind := range kinds {
		if !slices.Contains(ToolKinds(), kind) {
			return rule
		}
	}
	r.Kinds = kinds
	return nil
}

func checkRuleName(s string) error {
	if s == "" || len(s) > maxRuleName || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("must be 1 to %d bytes without control characters", maxRuleName)
	}
	return nil
}

func checkAction(s string) error {
	if s != Allow && s != Ask && s != Deny {
		return errors.New("must be allow, ask or deny")
	}
	return nil
}

// checkPattern holds patterns to those of path.Match, with "**" for any number of
// directories.
func checkPattern(s string) error {
	if s == "" || len(s) > maxPattern {
		return fmt.Errorf("must be 1 to %d bytes; leave it out to match everything", maxPattern)
	}
	for part := range strings.SplitSeq(s, "/") {
		if _, err := path.Match(part, ""); err != nil {
			return errors.New("must be a pattern of *, ?, [...] and **")
		}
		if strings.Contains(part, "**") && part != "**" {
			return errors.New(`"**" must stand alone between slashes`)
		}
	}
	return nil
}
