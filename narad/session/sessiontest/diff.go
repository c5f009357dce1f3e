package sessiontest

import (
	"fmt"
	"slices"
)

// foreignValues are the fields of a snapshot whose values are not the protocol's:
// they come out as they went in, number by number.
var foreignValues = []string{"args", "response", "input", "state", "model"}

// meaningful are fields whose empty value says more than its absence.
var meaningful = []string{"caseIndex", "pointer"}

// Diff returns the first place where two snapshots differ, or "". A field that is
// empty equals one that is absent, but for values that are not the protocol's own.
func Diff(got, want map[string]any) string { return diffFields("", got, want) }

func diffFields(path string, got, want object) string {
	names := append(sortedKeys(got), sortedKeys(want)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		g, gotHas := got[name]
		w, wantHas := want[name]
		here := path + "/" + name
		if d := diffField(here, name, g, w, gotHas, wantHas); d != "" {
			return d
		}
	}
	return ""
}

func diffField(path, name string, got, want any, gotHas, wantHas bool) string {
	if path == "/state" { // the scoped states, by scope
		return diffOwn(path, got, want)
	}
	isWord := name == "state" && isString(got) && isString(want)
	if slices.Contains(foreignValues, name) && !isWord {
		if gotHas != wantHas || !identical(got, want) {
			return fmt.Sprintf("%s: got %v, want %v", path, got, want)
		}
		return ""
	}
	if slices.Contains(meaningful, name) && gotHas != wantHas {
		return fmt.Sprintf("%s: present %v, want %v", path, gotHas, wantHas)
	}
	return diffOwn(path, got, want)
}

// diffOwn compares values of the protocol's own.
func diffOwn(path string, got, want any) string {
	g, gotObject := got.(object)
	w, wantObject := want.(object)
	gl, gotList := got.([]any)
	wl, wantList := want.([]any)
	switch {
	case empty(got) && empty(want):
		return ""
	case gotObject && wantObject:
		return diffFields(path, g, w)
	case gotList && wantList && len(gl) == len(wl):
		for i := range gl {
			if d := diffOwn(fmt.Sprintf("%s/%d", path, i), gl[i], wl[i]); d != "" {
				return d
			}
		}
		return ""
	case same(got, want):
		return ""
	}
	return fmt.Sprintf("%s: got %v, want %v", path, got, want)
}

// identical is same, with numbers compared as they are spelled.
func identical(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			if other, has := b[name]; !has || !identical(a[name], other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, identical)
	default:
		return a == b
	}
}

func isString(v any) bool { _, ok := v.(string); return ok }
