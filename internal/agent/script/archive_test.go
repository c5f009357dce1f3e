package script_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// archive is a file of sections, each under a line "-- name --".
type archive struct {
	name  string
	parts []part // the first has no name: what stands above all sections
}

type part struct{ name, text string }

var heading = regexp.MustCompile(`(?m)^-- (\S+) --\n`)

func readArchive(t *testing.T, name string) *archive {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{name: name}
	text, section := string(data), ""
	for {
		at := heading.FindStringSubmatchIndex(text)
		if at == nil {
			a.parts = append(a.parts, part{section, text})
			return a
		}
		a.parts = append(a.parts, part{section, text[:at[0]]})
		text, section = text[at[1]:], text[at[2]:at[3]]
	}
}

// section returns a section that must be there.
func (a *archive) section(t *testing.T, name string) *part {
	t.Helper()
	for i := range a.parts {
		if a.parts[i].name == name {
			return &a.parts[i]
		}
	}
	t.Fatalf("%s has no section %q", a.name, name)
	return nil
}

func (a *archive) write(t *testing.T) {
	t.Helper()
	var out strings.Builder
	for _, p := range a.parts {
		if p.name != "" {
			out.WriteString("-- " + p.name + " --\n")
		}
		out.WriteString(p.text)
	}
	if err := os.WriteFile(a.name, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
