package field_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const repository = "../.."

var (
	namedTest   = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`")
	caseOfTest  = regexp.MustCompile(`^TestCase([0-9]+)[A-Z]`)
	testInFiles = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(t \*testing\.T\)`)
)

// testsOf are the tests of a package, by its directory.
func testsOf(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testInFiles.FindAllSubmatch(source, -1) {
			tests = append(tests, string(found[1]))
		}
	}
	return tests
}

// row is one case of the table.
type row struct {
	number string
	tests  []string // as package.Test
	rest   string   // of the last cell
}

func parseTable(text string) (rows []row, faults []string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		number := strings.TrimSpace(cells[0])
		if _, err := strconv.Atoi(number); err != nil {
			continue // no row of a case
		}
		if len(cells) != 4 {
			faults = append(faults, fmt.Sprintf("case %s has %d cells, want 4", number, len(cells)))
			continue
		}
		r := row{number: number, rest: cells[3]}
		for _, found := range namedTest.FindAllStringSubmatch(cells[3], -1) {
			r.tests = append(r.tests, found[1]+"."+found[2])
		}
		rows = append(rows, r)
	}
	return rows, faults
}

// faultsOf are what is wrong with the table, given the tests that there are.
func faultsOf(text string, testsOf func(dir string) []string) []string {
	rows, faults := parseTable(text)
	named := map[string]bool{}
	last := 0
	for _, r := range rows {
		number, _ := strconv.Atoi(r.number)
		if number <= last {
			faults = append(faults, fmt.Sprintf("case %s comes after case %d", r.number, last))
		}
		last = number
		if len(r.tests) == 0 && !strings.Contains(r.rest, "waits for") {
			faults = append(faults, fmt.Sprintf("case %s names no test and nothing that it waits for", r.number))
		}
		for _, test := range r.tests {
			dir, name, _ := strings.Cut(test, ".")
			if !slices.Contains(testsOf(dir), name) {
				faults = append(faults, fmt.Sprintf("case %s names %s, which does not exist", r.number, test))
			}
			if of := caseOfTest.FindStringSubmatch(name); of != nil && dir == "test/field" && of[1] != r.number {
				faults = append(faults, fmt.Sprintf("case %s names %s, which is of case %s", r.number, test, of[1]))
			}
			named[test] = true
		}
	}
	for _, name := range testsOf("test/field") {
		if caseOfTest.MatchString(name) && !named["test/field."+name] {
			faults = append(faults, "no case names "+name)
		}
	}
	return faults
}

// The table of docs/field-cases.md tells the truth about the sources.
func TestTableNamesTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "field-cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	if rows, _ := parseTable(string(text)); len(rows) < 20 {
		t.Errorf("got %d rows, want all cases", len(rows))
	}
	for _, fault := range faultsOf(string(text), func(dir string) []string { return testsOf(t, dir) }) {
		t.Error(fault)
	}
}

// The test above sees what it is there to see.
func TestTableFaultsAreSeen(t *testing.T) {
	t.Parallel()
	tests := func(dir string) []string {
		return map[string][]string{"test/field": {"TestCase2A", "TestCase3A"}, "a/b": {"TestX"}}[dir]
	}
	const sound = "| 2 | f | c | `test/field.TestCase2A`, `a/b.TestX` |\n| 3 | f | c | `test/field.TestCase3A` |\n| 42 | f | c | waits for executors |\n"
	for text, want := range map[string]string{
		sound: "",
		"| 2 | f | c | `test/field.TestCase2A` |\n| 2 | f | c | `test/field.TestCase3A` |": "case 2 comes after case 2",
		strings.Replace(sound, "TestX", "TestY", 1):                                        "which does not exist",
		strings.Replace(sound, "TestCase3A", "TestCase2A", 1):                              "which is of case 2",
		strings.Replace(sound, "`test/field.TestCase3A`", "`a/b.TestX`", 1):                "no case names TestCase3A",
		strings.Replace(sound, "waits for executors", "", 1):                               "names no test",
		strings.Replace(sound, "| f | c | waits", "| f | waits", 1):                        "has 3 cells",
	} {
		got := strings.Join(faultsOf(text, tests), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q, of\n%s", got, want, text)
		}
	}
}
