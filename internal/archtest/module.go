package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is every Go source of one module, parsed, by directory.
type module struct {
	path     string // as go.mod says it
	fset     *token.FileSet
	packages []*pkg // sorted by dir
}

// pkg is the Go files of one directory: the package, and its tests.
type pkg struct {
	dir   string // slash-separated, relative to the root of the module
	files []*file
}

// file is one parsed source.
type file struct {
	name    string // slash-separated, relative to the root of the module
	test    bool   // its name ends in _test.go
	lines   int
	syntax  *ast.File
	imports map[string]string // import path -> the name it has in this file
}

// violation is one place where a rule is broken.
type violation struct {
	where string // file:line, a directory, or a line of a table
	what  string
}

func (v violation) String() string { return v.where + ": " + v.what }

// load parses the module at the root of fsys. As the go command does, it leaves
// out testdata, directories whose names begin with a dot or an underscore, and
// nested modules.
func load(fsys fs.FS) (*module, error) {
	m := &module{fset: token.NewFileSet()}
	var err error
	if m.path, err = modulePath(fsys); err != nil {
		return nil, err
	}
	byDir := map[string]*pkg{}
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && ignored(fsys, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.ContainsAny(path.Base(name)[:1], "._"):
			return nil
		}
		f, err := m.parse(fsys, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
			m.packages = append(m.packages, byDir[dir])
		}
		byDir[dir].files = append(byDir[dir].files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the sources of %s: %w", m.path, err)
	}
	slices.SortFunc(m.packages, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return m, nil
}

func ignored(fsys fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base == "node_modules" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func modulePath(fsys fs.FS) (string, error) {
	text, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", errors.New("go.mod has no module line")
}

func (m *module) parse(fsys fs.FS, name string) (*file, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	syntax, err := parser.ParseFile(m.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &file{
		name:    name,
		test:    strings.HasSuffix(name, "_test.go"),
		lines:   strings.Count(string(text), "\n"),
		syntax:  syntax,
		imports: map[string]string{},
	}
	for _, spec := range syntax.Imports {
		f.imports[importPath(spec)] = localName(spec)
	}
	return f, nil
}

func importPath(spec *ast.ImportSpec) string {
	name, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
	return name
}

// localName is the name of an import in its file. For a path without an
// explicit name that is the last element: right for the standard library
// packages that rules ask for, a guess for others.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(importPath(spec))
}

// at says where a node is, as file:line.
func (m *module) at(node ast.Node) string {
	position := m.fset.Position(node.Pos())
	return fmt.Sprintf("%s:%d", position.Filename, position.Line)
}

// ours gives the directory of an import path of this module.
func (m *module) ours(importPath string) (dir string, ok bool) {
	if importPath == m.path {
		return ".", true
	}
	return strings.CutPrefix(importPath, m.path+"/")
}

// selected gives the name that expr selects from the package importPath, as
// "Now" for time.Now.
func (f *file) selected(expr ast.Node, importPath string) (name string, ok bool) {
	selector, ok := expr.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	from, ok := selector.X.(*ast.Ident)
	local, imported := f.imports[importPath]
	if !ok || !imported || from.Name != local {
		return "", false
	}
	return selector.Sel.Name, true
}

// inspect calls visit for every node of every file that keep accepts.
func (m *module) inspect(keep func(*pkg, *file) bool, visit func(*file, ast.Node)) {
	for p, f := range m.files {
		if !keep(p, f) {
			continue
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if node != nil {
				visit(f, node)
			}
			return true
		})
	}
}

// files is an iterator over all files with their packages.
func (m *module) files(yield func(*pkg, *file) bool) {
	for _, p := range m.packages {
		for _, f := range p.files {
			if !yield(p, f) {
				return
			}
		}
	}
}
