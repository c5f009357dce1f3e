package archtest

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sources makes a module example.com/m of a text in which a line "-- name --"
// begins the file of that name.
func sources(t *testing.T, text string) *module {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.com/m\n\ngo 1.26\n")}}
	name := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if begun, ok := strings.CutPrefix(trimmed, "-- "); ok {
			name = strings.TrimSuffix(begun, " --")
			fsys[name] = &fstest.MapFile{}
			continue
		}
		if name == "" {
			if trimmed != "" {
				t.Fatalf("fixture begins with %q, want '-- name --'", line)
			}
			continue
		}
		fsys[name].Data = append(fsys[name].Data, line...)
	}
	m, err := load(fsys)
	if err != nil {
		t.Fatalf("load the fixture: %v\n%s", err, text)
	}
	return m
}

func rows(t *testing.T, text string) *table {
	t.Helper()
	parsed, err := parseTable(text)
	if err != nil {
		t.Fatalf("parse the table: %v\n%s", err, text)
	}
	return parsed
}

// expect compares violations with what they must say: one substring each, which
// names place and matter, in any order.
func expect(t *testing.T, found []violation, want ...string) {
	t.Helper()
	missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool {
		return slices.ContainsFunc(found, func(v violation) bool { return strings.Contains(v.String(), w) })
	})
	if len(missing) > 0 || len(found) != len(want) {
		t.Errorf("got %d violations:\n%s\nwant %d, one each with:\n\t%s\nnot found: %q",
			len(found), text(found), len(want), strings.Join(want, "\n\t"), missing)
	}
}

func text(found []violation) string {
	var b strings.Builder
	for _, v := range found {
		b.WriteString("\t" + v.String() + "\n")
	}
	return b.String()
}

func TestLoadLeavesOutWhatGoDoes(t *testing.T) {
	m := sources(t, `
-- a/a.go --
package a
-- a/a_windows.go --
package a
-- a/testdata/x.go --
package x
-- _old/x.go --
package x
-- .hidden/x.go --
package x
-- nested/go.mod --
module example.com/nested
-- nested/x.go --
package x
-- a/_draft.go --
package broken {
`)
	var got []string
	for _, f := range m.files {
		got = append(got, f.name)
	}
	if want := []string{"a/a.go", "a/a_windows.go"}; !slices.Equal(got, want) {
		t.Errorf("got files %q, want %q", got, want)
	}
}

func TestLoadReportsBrokenSource(t *testing.T) {
	fsys := fstest.MapFS{
		"go.mod": {Data: []byte("module example.com/m\n")},
		"a/a.go": {Data: []byte("package a\nfunc {\n")},
	}
	if _, err := load(fsys); err == nil || !strings.Contains(err.Error(), "a/a.go:2") {
		t.Errorf("got error %v, want one that names a/a.go:2", err)
	}
}
