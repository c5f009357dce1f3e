package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// impureImports maps the packages that a pure package may not import, with all
// below them, to what they would bring in.
var impureImports = []struct{ path, brings string }{
	{"math/rand", "randomness"},
	{"crypto/rand", "randomness"},
	{"hash/maphash", "randomness"},
	{"context", "a clock"},
	{"os", "I/O"},
	{"net", "I/O"},
	{"io/fs", "I/O"},
	{"io/ioutil", "I/O"},
	{"path/filepath", "I/O"},
	{"syscall", "I/O"},
	{"plugin", "I/O"},
	{"database/sql", "I/O"},
	{"log", "a logger"},
	{"sync", "a lock"},
	{"runtime", "the state of the process"},
	{"testing", "tests"},
}

// pureExceptions are below an impure path and yet only compute.
var pureExceptions = []string{"net/url", "net/netip"}

// impureNames maps the names that a pure package may not take from a package it
// may import.
var impureNames = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// impurities finds what a pure package may not use: a clock, randomness, I/O, a
// goroutine, a lock or a logger. Tests of such a package may.
func impurities(m *module, t *table) []violation {
	pure := func(p *pkg, f *file) bool { return t.rows[p.dir].is("pure") && !f.test }
	var found []violation
	m.inspect(pure, func(f *file, node ast.Node) {
		if what := impurity(f, node); what != "" {
			found = append(found, violation{m.at(node), what})
		}
	})
	return found
}

func impurity(f *file, node ast.Node) string {
	switch node := node.(type) {
	case *ast.ImportSpec:
		return impureImport(importPath(node))
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.CallExpr:
		if name, ok := node.Fun.(*ast.Ident); ok && (name.Name == "print" || name.Name == "println") {
			return "prints"
		}
	case *ast.SelectorExpr:
		for from, names := range impureNames {
			if name, ok := f.selected(node, from); ok && slices.Contains(names, name) {
				return fmt.Sprintf("uses %s.%s", from, name)
			}
		}
	}
	return ""
}

func impureImport(name string) string {
	if within(name, pureExceptions) {
		return ""
	}
	for _, impure := range impureImports {
		if within(name, []string{impure.path}) {
			return fmt.Sprintf("imports %s, which brings in %s", name, impure.brings)
		}
	}
	return ""
}
