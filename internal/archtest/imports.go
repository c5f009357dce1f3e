package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// packagesWithoutRow finds packages that the table does not know.
func packagesWithoutRow(m *module, t *table) []violation {
	var found []violation
	for _, p := range m.packages {
		if t.rows[p.dir] == nil {
			found = append(found, violation{p.dir, "has no row in imports.txt; decide what it may import and write one"})
		}
	}
	return found
}

// rowsWithoutPackage finds rows of the table for packages that are not in the tree.
func rowsWithoutPackage(m *module, t *table) []violation {
	var found []violation
	for _, dir := range t.order {
		if !slices.ContainsFunc(m.packages, func(p *pkg) bool { return p.dir == dir }) {
			found = append(found, violation{fmt.Sprintf("imports.txt:%d", t.rows[dir].line), dir + " is no package of the tree: a row comes with its package, and goes with it"})
		}
	}
	return found
}

// testPackagesMisnamed finds rows for test helpers whose names do not say so.
func testPackagesMisnamed(t *table) []violation {
	var found []violation
	for _, dir := range t.order {
		named := strings.HasSuffix(dir, "test") || strings.HasPrefix(dir, "test/")
		if t.rows[dir].is("test") != named {
			found = append(found, violation{fmt.Sprintf("imports.txt:%d", t.rows[dir].line), dir + ": exactly the packages for tests are named <pkg>test or stand under test/"})
		}
	}
	return found
}

// importsOutsideTable finds imports of our packages that the table does not allow.
func importsOutsideTable(m *module, t *table) []violation {
	return imports(m, func(p *pkg, f *file, name string) string {
		dir, ours := m.ours(name)
		if !ours || t.rows[p.dir] == nil {
			return ""
		}
		allowed, who := t.allowed(p.dir), p.dir
		if t.isTest(p, f) {
			allowed, who = t.allowedTests(p.dir), "a test of "+p.dir
		}
		if allowed[dir] {
			return ""
		}
		return fmt.Sprintf("%s may not import %s, only: %s", who, dir, list(allowed))
	})
}

// thirdPartyOutsideTable finds imports of other people's modules by packages
// that keep to the standard library and the few modules listed, and imports of
// test libraries by ordinary code.
func thirdPartyOutsideTable(m *module, t *table) []violation {
	return imports(m, func(p *pkg, f *file, name string) string {
		r, test := t.rows[p.dir], t.isTest(p, f)
		switch {
		case !thirdParty(m, name) || within(name, t.thirdParty):
			return ""
		case within(name, t.testOnly):
			if test {
				return ""
			}
			return name + " is for tests alone"
		case r.is("public") || r.is("pure"):
			return fmt.Sprintf("%s uses the standard library and %s alone, not %s", p.dir, strings.Join(t.thirdParty, ", "), name)
		}
		return ""
	})
}

// testingInProduction finds the testing packages in what users build.
func testingInProduction(m *module, t *table) []violation {
	return imports(m, func(p *pkg, f *file, name string) string {
		if t.isTest(p, f) || !within(name, []string{"testing"}) {
			return ""
		}
		return "ordinary code imports " + name + "; test helpers live in a <pkg>test package"
	})
}

// imports calls complain for every import of every file; what it answers, when
// not empty, is a violation.
func imports(m *module, complain func(p *pkg, f *file, name string) string) []violation {
	var found []violation
	for p, f := range m.files {
		for _, spec := range f.syntax.Imports {
			if what := complain(p, f, importPath(spec)); what != "" {
				found = append(found, violation{m.at(spec), what})
			}
		}
	}
	return found
}

// thirdParty reports whether an import path belongs to another module: the first
// element of a standard library path has no dot.
func thirdParty(m *module, name string) bool {
	first, _, _ := strings.Cut(name, "/")
	_, ours := m.ours(name)
	return !ours && strings.Contains(first, ".")
}

// within reports whether name is one of the paths or below one.
func within(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}

func list(set map[string]bool) string {
	if len(set) == 0 {
		return "nothing of ours"
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), ", ")
}
