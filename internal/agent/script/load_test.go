package script_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/agent/script"
)

// TestRefusals holds each mistake to the line and the words of its refusal.
func TestRefusals(t *testing.T) {
	const head = "script: 1\nsteps:\n"
	tests := []struct {
		name, file string
		line       int
		problem    string // a part of it
	}{
		{"empty", "", 1, "empty"},
		{"not yaml", "script: 1\nsteps: [\n", 2, "did not find"},
		{"no version", "steps: []\n", 1, "script: 1"},
		{"two documents", "script: 1\nsteps: []\n---\nscript: 1\n", 1, "one YAML document"},
		{"a list", "- say: x\n", 1, "must be a mapping"},
		{"unknown key", "script: 1\nsteps: []\nextra: 1\n", 3, `unknown key "extra"`},
		{"key twice", "script: 1\nsteps: []\nsteps: []\n", 3, `"steps" stands twice`},
		{"no steps", "script: 1\n", 1, "steps, or rules and scenarios"},
		{"alias", head + "  - say: &a x\n  - say: *a\n", 3, "anchors and aliases"},
		{"unknown step", head + "  - say: x\n  - shout: x\n", 4, `unknown step "shout"`},
		{"two kinds", head + "  - say: x\n    think: y\n", 3, "a step must be one key"},
		{"no mapping", head + "  - say\n", 3, "a step must be one key"},
		{"nested unknown key", head + "  - tool:\n      name: a\n      nmae: b\n", 5, `unknown key "nmae"`},
		{"no name", head + "  - tool: {kind: edit}\n", 3, "a name"},
		{"kind", head + "  - tool: {name: a, kind: cook}\n", 3, "kind must be one of"},
		{"text or bytes", head + "  - say: {text: a, bytes: 5}\n", 3, "either text or bytes"},
		{"neither", head + "  - say: {chunk: 5}\n", 3, "either text or bytes"},
		{"too many bytes", head + "  - say: {bytes: 99999999999}\n", 3, "a number from 0"},
		{"duration", head + "  - delay: 5\n", 3, "a time such as"},
		{"negative", head + "  - delay: -5s\n", 3, "a time such as"},
		{"unknown variable", head + "  - say: \"{{who}}\"\n", 3, `unknown variable "who"`},
		{"unknown field", head + "  - say: \"{{a.colour}}\"\n", 3, `unknown variable "a.colour"`},
		{"unnamed step", head + "  - say: \"{{a.decision}}\"\n", 3, `named "a"`},
		{"no variable", head + "  - say: \"{{ a b }}\"\n", 3, "is no variable"},
		{"infinite", head + "  - tool: {name: a, args: {x: .inf}}\n", 3, "JSON has no number"},
		{"branch", head + "  - tool: {name: a, on: {deny: []}}\n", 3, `"deny" is no possible result`},
		{"ask in a branch", head + "  - parallel:\n      - - ask: {title: x}\n", 4, "ask cannot stand in a parallel branch"},
		{"fail in a branch", head + "  - parallel:\n      - - repeat: {times: 1, steps: [{fail: x}]}\n", 4, "fail cannot stand"},
		{"finish in a branch", head + "  - parallel:\n      - - finish: done\n", 4, "finish cannot stand"},
		{"two speakers", head + "  - parallel:\n      - - say: a\n      - - if: {value: a, is: a, then: [{think: b}]}\n", 5, "only one branch"},
		{"member twice", head + "  - ask: {members: [{id: a}, {id: a}]}\n", 3, "an id of its own"},
		{"action twice", head + "  - ask: {actions: [a, a]}\n", 3, "cannot stand here"},
		{"expired offered", head + "  - ask: {actions: [expired]}\n", 3, "cannot stand here"},
		{"no actions", head + "  - ask: {actions: []}\n", 3, "must not be empty"},
		{"recommended", head + "  - question: {text: a, options: [x], recommended: 1}\n", 3, "from 0 to 0"},
		{"custom name", head + "  - custom: {name: Build, value: 1}\n", 3, "joined by dots"},
		{"host's name", head + "  - custom: {name: mahati.x, value: 1}\n", 3, "are taken"},
		{"own name", head + "  - custom: {name: script.step, value: 1}\n", 3, "are taken"},
		{"crash", head + "  - crash: true\n", 3, "not enabled"},
		{"outcome of a command", head + "  - tool: {name: a, run: ls, outcome: error}\n", 3, "is its own"},
		{"play", "script: 1\nrules: [{play: a}]\nscenarios: {b: []}\n", 2, `not "a"`},
		{"pattern", "script: 1\nrules: [{matches: '(', play: b}]\nscenarios: {b: []}\n", 2, "not a regular expression"},
		{"steps too", "script: 1\nsteps: []\nrules: []\nscenarios: {}\n", 3, `unknown key "rules"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := script.New([]byte(test.file), script.Options{Name: "file.yaml"})
			var refusal *script.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("got error %v, want a *script.Error for:\n%s", err, test.file)
			}
			if refusal.Line != test.line || !strings.Contains(refusal.Problem, test.problem) {
				t.Errorf("got %q, want line %d and %q; file:\n%s", err, test.line, test.problem, test.file)
			}
			if want := "file.yaml:"; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %q, want it to begin with %q", err, want)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	deep := "script: 1\nsteps:\n  - say: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n"
	many := "script: 1\nsteps:\n" + strings.Repeat("  - say: x\n", 1001)
	big := "script: 1\nsteps:\n  - say: " + strings.Repeat("x", 1<<20) + "\n"
	for name, test := range map[string]struct{ file, problem string }{
		"deep": {deep, "nests deeper"}, "many": {many, "more than 1000 entries"}, "big": {big, "bytes"},
	} {
		if _, err := script.New([]byte(test.file), script.Options{}); err == nil || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got error %v, want %q", name, err, test.problem)
		}
	}
}

func TestBuiltins(t *testing.T) {
	for _, name := range []string{"demo", "echo"} {
		if _, err := script.Builtin(name); err != nil {
			t.Errorf("got error %v for the built-in script %s", err, name)
		}
	}
	if _, err := script.Builtin("other"); err == nil {
		t.Error("got no error for an unknown built-in script")
	}
}

// TestDocumentedExample reads every script that docs/script.md shows.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile(filepath.FromSlash("../../../docs/script.md"))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, block := range strings.Split(string(data), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(text, "script: 1") {
			text = "script: 1\nsteps:\n" + text
		} else {
			whole++
		}
		if _, err := script.New([]byte(text), script.Options{Crash: func() {}}); err != nil {
			t.Errorf("got error %v for:\n%s", err, text)
		}
	}
	if whole == 0 {
		t.Error("docs/script.md shows no whole script")
	}
}

// FuzzLoad: no file makes the reader panic or last, and a refusal names a line.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	builtins, err := filepath.Glob("builtin/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range append(files, builtins...) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		text := string(data)
		if _, after, ok := strings.Cut(text, "-- script.yaml --\n"); ok {
			text, _, _ = strings.Cut(after, "-- do --")
		}
		f.Add([]byte(text))
	}
	f.Add([]byte("script: 1\nsteps: [{tool: {name: a, args: {? [a] : b, 0x1F: 1_000, .nan: ~}}}]"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, err := script.New(file, script.Options{})
		var refusal *script.Error
		if err != nil && (!errors.As(err, &refusal) || refusal.Line < 1) {
			t.Errorf("got error %#v, want a *script.Error with a line; file:\n%s", err, file)
		}
	})
}
