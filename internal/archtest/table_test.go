package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestTableIsRefused(t *testing.T) {
	for _, tc := range []struct{ name, table, want string }{
		{"a name without a row", "a | b", "imports.txt:1: a may not import b"},
		{"a name from a row below", "a | b\nb | -", "imports.txt:1: a may not import b"},
		{"itself", "a | a", "a may not import a"},
		{"a name of a test cell without a row", "a | - | b", "the tests of a name b"},
		{"an unknown trait", "a clean | -", `unknown trait "clean"`},
		{"a second row", "a | -\n\na | -", "imports.txt:3: a second row for a"},
		{"a row without cells", "a", "is not 'package traits"},
		{"a row without a package", " | a", "names no package"},
	} {
		if _, err := parseTable(tc.table); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q\n%s", tc.name, err, tc.want, tc.table)
		}
	}
}

func TestTableAllows(t *testing.T) {
	table := rows(t, `
core        | -
mid         | core
core/coretest test | core
outer       | mid+
top         | above
cmd         | any | -
engine      | core | mid
`)
	for _, tc := range []struct {
		dir            string
		allowed, tests []string
	}{
		{"core", nil, []string{"core", "core/coretest"}},
		{"mid", []string{"core"}, []string{"core", "core/coretest", "mid"}},
		{"outer", []string{"core", "mid"}, []string{"core", "core/coretest", "mid", "outer"}},
		{"top", []string{"core", "mid", "outer"}, []string{"core", "core/coretest", "mid", "outer", "top"}},
		{"cmd", []string{"cmd", "core", "engine", "mid", "outer", "top"}, []string{"cmd", "core", "core/coretest", "engine", "mid", "outer", "top"}},
		{"engine", []string{"core"}, []string{"core", "core/coretest", "engine", "mid"}},
	} {
		if got := slices.Sorted(maps.Keys(table.allowed(tc.dir))); !slices.Equal(got, tc.allowed) {
			t.Errorf("%s may import %q, want %q", tc.dir, got, tc.allowed)
		}
		if got := slices.Sorted(maps.Keys(table.allowedTests(tc.dir))); !slices.Equal(got, tc.tests) {
			t.Errorf("tests of %s may import %q, want %q", tc.dir, got, tc.tests)
		}
	}
}

func TestTableHelperBeyondReach(t *testing.T) {
	table := rows(t, "core | -\nouter | core\nouter/outertest test | outer core")
	if table.allowedTests("core")["outer/outertest"] {
		t.Error("a test of core may import outer/outertest, which imports outer")
	}
	if !table.allowedTests("outer")["outer/outertest"] {
		t.Error("a test of outer may not import outer/outertest")
	}
}
