package archtest

import (
	"fmt"
	"go/ast"
)

const (
	longFile     = 600
	longTestFile = 1000
	longFunction = 80
)

// tooLong finds files and functions that ask to be split. Nothing fails for
// them: the number is a question for the reader, not a rule.
func tooLong(m *module) []violation {
	var found []violation
	for _, f := range m.files {
		limit := longFile
		if f.test {
			limit = longTestFile
		}
		if f.lines > limit {
			found = append(found, violation{f.name, fmt.Sprintf("%d lines (over %d)", f.lines, limit)})
		}
		for _, decl := range f.syntax.Decls {
			if n := m.lines(decl); n > longFunction && isFunc(decl) {
				found = append(found, violation{m.at(decl), fmt.Sprintf("%s has %d lines (over %d)", declName(decl), n, longFunction)})
			}
		}
	}
	return found
}

func isFunc(decl ast.Decl) bool { _, ok := decl.(*ast.FuncDecl); return ok }

func (m *module) lines(node ast.Node) int {
	return m.fset.Position(node.End()).Line - m.fset.Position(node.Pos()).Line + 1
}
