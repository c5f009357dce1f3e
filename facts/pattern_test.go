package facts_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
)

// A pattern of many ** and a long name takes no longer than their product.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"/a/**", "/a", true}, {"/a/**", "/a/b/c", true}, {"/a/**", "/ab", false}, {"**", "/x/y", true},
		{"/a/*", "/a/b", true}, {"/a/*", "/a/b/c", false}, {"**/x", "x", true}, {"**/x", "/a/x", true},
		{"/**/x/**/y", "/a/x/b/c/y", true}, {"[", "[", false}, {"", "", true},
		{"**", "x", true}, {"*", "x/y", false}, {"x*", "xy", true}, {"**/b/**/c", "a/b/a/c", true},
		{"**/a/b/**/c", "a/a/b/c/d", false}, {strings.Repeat("**/a/", 50) + "b", strings.Repeat("a/", 200) + "c", false},
	} {
		if got := facts.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("%q on %q: got %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

func TestWellFormed(t *testing.T) {
	for pattern, want := range map[string]bool{
		"": true, "*": true, "a/**/b": true, "**": true, "[a-c]?": true, "[": false, "a/[": false, "a**": false, "x/**y/z": false,
	} {
		if got := facts.WellFormed(pattern); got != want {
			t.Errorf("%q: got %v, want %v", pattern, got, want)
		}
	}
}
