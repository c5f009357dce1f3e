package field_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The table of docs/executor.md has the eleven rules of §11.3, each with a test that
// there is.
func TestRulesOfExecutorsHaveTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "executor.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, faults := parseTable(string(text))
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(rows) != 11 {
		t.Fatalf("got %d rules, want 11", len(rows))
	}
	for i, r := range rows {
		if r.number != strconv.Itoa(i+1) || len(r.tests) == 0 {
			t.Errorf("row %d is of rule %s with the tests %v", i+1, r.number, r.tests)
		}
		for _, test := range r.tests {
			if dir, name, _ := strings.Cut(test, "."); !slices.Contains(testsOf(t, dir), name) {
				t.Errorf("rule %s names %s, which does not exist", r.number, test)
			}
		}
	}
	for _, test := range namedTest.FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(testsOf(t, test[1]), test[2]) {
			t.Errorf("the text names %s, which does not exist", test[0])
		}
	}
}
