package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is imports.txt: who may import whom. Its own comments say how it reads.
type table struct {
	rows       map[string]*row
	order      []string // directories in the order of the file
	thirdParty []string // module paths open to public and pure packages
	testOnly   []string // module paths for tests alone
}

// row is what one package may do.
type row struct {
	dir    string
	traits []string // public, pure, test, sleeps
	allow  []string // directories its ordinary code may import, as written
	tests  []string // directories its tests may import as well, as written
	line   int
}

func (r *row) is(trait string) bool { return r != nil && slices.Contains(r.traits, trait) }

var knownTraits = []string{"public", "pure", "test", "sleeps"}

// parseTable reads the text of imports.txt.
func parseTable(text string) (*table, error) {
	t := &table{rows: map[string]*row{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := t.addLine(line, number); err != nil {
			return nil, fmt.Errorf("imports.txt:%d: %w", number, err)
		}
	}
	return t, t.checkNames()
}

func (t *table) addLine(line string, number int) error {
	if list, ok := strings.CutPrefix(line, "third-party:"); ok {
		t.thirdParty = append(t.thirdParty, strings.Fields(list)...)
		return nil
	}
	if list, ok := strings.CutPrefix(line, "test-only:"); ok {
		t.testOnly = append(t.testOnly, strings.Fields(list)...)
		return nil
	}
	cells := strings.Split(line, "|")
	if len(cells) < 2 || len(cells) > 3 {
		return fmt.Errorf("%q is not 'package traits | imports | imports of tests'", line)
	}
	head := strings.Fields(cells[0])
	if len(head) == 0 {
		return fmt.Errorf("%q names no package", line)
	}
	r := &row{dir: head[0], traits: head[1:], allow: names(cells[1]), line: number}
	if len(cells) == 3 {
		r.tests = names(cells[2])
	}
	for _, trait := range r.traits {
		if !slices.Contains(knownTraits, trait) {
			return fmt.Errorf("%s has the unknown trait %q", r.dir, trait)
		}
	}
	if t.rows[r.dir] != nil {
		return fmt.Errorf("a second row for %s", r.dir)
	}
	t.rows[r.dir] = r
	t.order = append(t.order, r.dir)
	return nil
}

func names(cell string) []string {
	return slices.DeleteFunc(strings.Fields(cell), func(name string) bool { return name == "-" })
}

// checkNames refuses a row that names a package without a row above it: the
// table is a ladder, and each step stands on those above.
func (t *table) checkNames() error {
	above := map[string]bool{}
	for _, dir := range t.order {
		r := t.rows[dir]
		for _, name := range r.allow {
			name = strings.TrimSuffix(name, "+")
			if name != "above" && name != "any" && !above[name] {
				return fmt.Errorf("imports.txt:%d: %s may not import %s, which has no row above it", r.line, dir, name)
			}
		}
		for _, name := range r.tests {
			if t.rows[name] == nil {
				return fmt.Errorf("imports.txt:%d: the tests of %s name %s, which has no row", r.line, dir, name)
			}
		}
		above[dir] = true
	}
	return nil
}

// allowed is the set of directories that the ordinary code of dir may import.
func (t *table) allowed(dir string) map[string]bool {
	set := map[string]bool{}
	r := t.rows[dir]
	if r == nil {
		return set
	}
	for _, name := range r.allow {
		base, inherit := strings.CutSuffix(name, "+")
		switch {
		case name == "any":
			t.add(set, t.order)
		case name == "above":
			t.add(set, t.order[:slices.Index(t.order, dir)])
		default:
			set[base] = true
			if inherit {
				maps.Copy(set, t.allowed(base))
			}
		}
	}
	return set
}

// add puts the packages among dirs that are not for tests into set.
func (t *table) add(set map[string]bool, dirs []string) {
	for _, dir := range dirs {
		if !t.rows[dir].is("test") {
			set[dir] = true
		}
	}
}

// allowedTests is the set of directories that the tests of dir may import: what
// the package itself may, the package, what the row adds, and every test helper
// that needs nothing beyond those.
func (t *table) allowedTests(dir string) map[string]bool {
	set := t.allowed(dir)
	set[dir] = true
	for _, name := range t.rows[dir].tests {
		set[name] = true
	}
	for changed := true; changed; {
		changed = false
		for _, helper := range t.order {
			if t.rows[helper].is("test") && !set[helper] && covers(set, t.allowed(helper)) {
				set[helper] = true
				changed = true
			}
		}
	}
	return set
}

func covers(set, subset map[string]bool) bool {
	for name := range subset {
		if !set[name] {
			return false
		}
	}
	return true
}

// isTest reports whether a file is for tests alone, by its name or because its
// package is.
func (t *table) isTest(p *pkg, f *file) bool { return f.test || t.rows[p.dir].is("test") }
