package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// start is one place where ordinary code starts a goroutine.
type start struct {
	where string
	name  string // internal/journal.Log.Open, the top-level function around it
}

// goroutineStarts finds every place in ordinary code that starts a goroutine: a
// go statement, the Go method of a wait group or error group, time.AfterFunc and
// context.AfterFunc.
func goroutineStarts(m *module, t *table) []start {
	var found []start
	for p, f := range m.files {
		if t.isTest(p, f) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			ast.Inspect(decl, func(node ast.Node) bool {
				if startsGoroutine(f, node) {
					found = append(found, start{m.at(node), p.dir + "." + declName(decl)})
				}
				return true
			})
		}
	}
	return found
}

func startsGoroutine(f *file, node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		selector, ok := node.Fun.(*ast.SelectorExpr)
		if ok && selector.Sel.Name == "Go" && len(node.Args) == 1 {
			return true
		}
		for _, from := range []string{"time", "context"} {
			if name, ok := f.selected(node.Fun, from); ok && name == "AfterFunc" {
				return true
			}
		}
	}
	return false
}

// declName names a top-level declaration: Func, Type.Method or the first
// variable of the declaration.
func declName(decl ast.Decl) string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil || len(decl.Recv.List) == 0 {
			return decl.Name.Name
		}
		return receiver(decl.Recv.List[0].Type) + "." + decl.Name.Name
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok {
				return value.Names[0].Name
			}
		}
	}
	return "?"
}

func receiver(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr.Name
	case *ast.StarExpr:
		return receiver(expr.X)
	case *ast.ParenExpr:
		return receiver(expr.X)
	case *ast.IndexExpr:
		return receiver(expr.X)
	case *ast.IndexListExpr:
		return receiver(expr.X)
	}
	return "?"
}

const startedIn = "started in" // the heading of the column that names functions

var quoted = regexp.MustCompile("`([^`]+)`")

// goroutineTable gives the functions named in the "Started in" column of the
// tables of a Markdown document.
func goroutineTable(document string) []string {
	var names []string
	column := -1
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			column = -1
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if at := slices.IndexFunc(cells, isStartedIn); at >= 0 {
			column = at
			continue
		}
		if column < 0 || column >= len(cells) {
			continue
		}
		for _, match := range quoted.FindAllStringSubmatch(cells[column], -1) {
			names = append(names, match[1])
		}
	}
	return names
}

func isStartedIn(cell string) bool { return strings.EqualFold(strings.TrimSpace(cell), startedIn) }

// goroutinesWithoutRow finds goroutines that the document does not list, and
// rows of our packages for functions that start none.
func goroutinesWithoutRow(m *module, t *table, document string) []violation {
	var found []violation
	rows := goroutineTable(document)
	started := map[string]bool{}
	for _, s := range goroutineStarts(m, t) {
		started[s.name] = true
		if !slices.Contains(rows, s.name) {
			found = append(found, violation{s.where, "no row names `" + s.name + "` in its 'Started in' cell"})
		}
	}
	for _, name := range rows {
		if !started[name] && m.hasPackageOf(name) {
			found = append(found, violation{"ARCHITECTURE.md", "`" + name + "` starts no goroutine; take its row out"})
		}
	}
	return found
}

// hasPackageOf reports whether a name such as internal/journal.Log.Open is of a
// package of this module. Rows may also name others, such as net/http.Server.
func (m *module) hasPackageOf(name string) bool {
	return slices.ContainsFunc(m.packages, func(p *pkg) bool { return strings.HasPrefix(name, p.dir+".") })
}
