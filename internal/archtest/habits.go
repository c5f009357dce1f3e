package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// sleeps finds time.Sleep in tests, except in packages whose tests start real
// processes and in synctest bubbles, where it costs no time. Inside a bubble
// means: in the arguments of synctest.Test, or in a function that also calls
// synctest.Wait, which panics anywhere else.
func sleeps(m *module, t *table) []violation {
	var found []violation
	for p, f := range m.files {
		if !t.isTest(p, f) || t.rows[p.dir].is("sleeps") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if containsCall(f, decl, "testing/synctest", "Wait") {
				continue
			}
			found = append(found, sleepsIn(m, f, decl)...)
		}
	}
	return found
}

func sleepsIn(m *module, f *file, decl ast.Decl) []violation {
	var found []violation
	ast.Inspect(decl, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			if name, ok := f.selected(call.Fun, "testing/synctest"); ok && name == "Test" {
				return false
			}
		}
		if name, ok := f.selected(node, "time"); ok && name == "Sleep" {
			found = append(found, violation{m.at(node), "time.Sleep in a test of " + f.syntax.Name.Name})
		}
		return true
	})
	return found
}

func containsCall(f *file, root ast.Node, importPath, function string) bool {
	found := false
	ast.Inspect(root, func(node ast.Node) bool {
		if name, ok := f.selected(node, importPath); ok && name == function {
			found = true
		}
		return !found
	})
	return found
}

// textTests are the functions that answer a question about a text.
var textTests = map[string][]string{
	"strings": {"Compare", "Contains", "ContainsAny", "ContainsFunc", "Count", "EqualFold", "HasPrefix", "HasSuffix", "Index", "LastIndex"},
	"regexp":  {"MatchString"},
}

// errorTexts finds ordinary code that asks what an error is by its text.
func errorTexts(m *module, t *table) []violation {
	ordinary := func(p *pkg, f *file) bool { return !t.isTest(p, f) }
	var found []violation
	m.inspect(ordinary, func(f *file, node ast.Node) {
		if asksErrorText(f, node) {
			found = append(found, violation{m.at(node), "asks for the text of an error; use errors.Is or errors.As"})
		}
	})
	return found
}

func asksErrorText(f *file, node ast.Node) bool {
	switch node := node.(type) {
	case *ast.BinaryExpr:
		return (node.Op == token.EQL || node.Op == token.NEQ) && (isErrorText(node.X) || isErrorText(node.Y))
	case *ast.SwitchStmt:
		return node.Tag != nil && isErrorText(node.Tag)
	case *ast.CallExpr:
		return testsText(f, node) && slices.ContainsFunc(node.Args, isErrorText)
	}
	return false
}

func testsText(f *file, call *ast.CallExpr) bool {
	for from, names := range textTests {
		if name, ok := f.selected(call.Fun, from); ok && slices.Contains(names, name) {
			return true
		}
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "MatchString"
}

// isErrorText reports whether expr is err.Error(), or a text made of one.
func isErrorText(expr ast.Expr) bool {
	found := false
	ast.Inspect(expr, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && len(call.Args) == 0 {
			selector, ok := call.Fun.(*ast.SelectorExpr)
			found = found || ok && selector.Sel.Name == "Error"
		}
		return !found
	})
	return found
}

// referenceTestsMisnamed finds tests that read the reference folder under a name
// that `make reference` would not run.
func referenceTestsMisnamed(m *module) []violation {
	finder := m.path + "/internal/referencetest"
	var found []violation
	for _, f := range m.files {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && isTestFunc(fn) && !strings.HasPrefix(fn.Name.Name, "TestReference") && containsCall(f, fn, finder, "Dir") {
				found = append(found, violation{m.at(fn), fn.Name.Name + " reads the reference folder; call it TestReference..."})
			}
		}
	}
	return found
}

func isTestFunc(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}
