package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

var vagueNames = []string{"util", "utils", "common", "types", "models", "helpers", "helper", "pkg", "misc"}

// vagueNamed finds packages whose names say nothing about what is in them.
func vagueNamed(m *module) []violation {
	var found []violation
	for _, p := range m.packages {
		elements := strings.Split(p.dir, "/")
		for _, f := range p.files {
			elements = append(elements, strings.TrimSuffix(f.syntax.Name.Name, "_test"))
		}
		for _, element := range slices.Compact(elements) {
			if slices.Contains(vagueNames, element) {
				found = append(found, violation{p.dir, fmt.Sprintf("is called %q; name it after what it is", element)})
				break
			}
		}
	}
	return found
}

// packagesWithoutComment finds packages that do not say what they are.
func packagesWithoutComment(m *module) []violation {
	var found []violation
	for _, p := range m.packages {
		ordinary := slices.DeleteFunc(slices.Clone(p.files), func(f *file) bool { return f.test })
		if len(ordinary) > 0 && !slices.ContainsFunc(ordinary, documented) {
			found = append(found, violation{path.Join(p.dir, "doc.go"), "the package has no comment"})
		}
	}
	return found
}

func documented(f *file) bool {
	return f.syntax.Doc != nil && strings.TrimSpace(f.syntax.Doc.Text()) != ""
}

// initFunctions finds init functions in ordinary code.
func initFunctions(m *module) []violation {
	var found []violation
	for _, f := range m.files {
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && !f.test && fn.Recv == nil && fn.Name.Name == "init" {
				found = append(found, violation{m.at(fn), "an init function; wire it by hand where it is needed"})
			}
		}
	}
	return found
}
