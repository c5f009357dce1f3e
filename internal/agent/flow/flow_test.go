package flow

import (
	"os"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

func TestExampleIsRead(t *testing.T) {
	file, err := os.ReadFile("../../../docs/examples/review.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(file, "review.yaml")
	if err != nil || d.Start != "write" || d.Nodes() != 7 || strings.Join(d.Agents(), " ") != "echo" {
		t.Errorf("got %+v, %v", d, err)
	}
}

// A fault is told with its line; nothing of a file with one is used.
func TestFaultsOfFiles(t *testing.T) {
	const head = "workflow: 1\nnodes:\n  end: {end: completed}\n"
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "f:1: the file is empty"},
		{"no version", "nodes: {end: {end: completed}}", "f:1: the file must say workflow: 1"},
		{"two documents", head + "---\nx: 1\n", "f:1: the file must be one YAML document"},
		{"no nodes", "workflow: 1", "f:1: the file must have nodes"},
		{"alias", head + "  a: &x {end: completed}\n", "f:4: anchors and aliases"},
		{"unknown key", head + "  a: {set: {x: 1}, next: end, if: y}\n", `f:4: the node a: unknown key "if"`},
		{"two kinds", head + "  a: {agent: x, set: {x: 1}, prompt: y, next: end}\n", "f:4: the node a must have exactly one of"},
		{"bad name", head + "  A: {end: completed}\n", "f:4: a name in nodes must be a word"},
		{"twice", head + "  end: {end: completed}\n", `f:4: nodes: "end" stands twice`},
		{"no next", head + "  a: {set: {x: 1}}\n", "f:4: the node a: next is missing"},
		{"nowhere", head + "  a: {set: {x: 1}, next: b}\n", `f:4: the node a leads to "b", which is no node`},
		{"failure nowhere", head + "  a: {agent: x, prompt: y, next: end, on_failure: b}\n", `f:4: on_failure of the node a leads to "b"`},
		{"a choice leads nowhere", head + "  a:\n    set: {x: 1}\n    next:\n      - {when: {pointer: /x, op: exists}, to: end}\n      - {to: b}\n", `f:8: the node a leads to "b"`},
		{"no YAML", head + "  a: {set: [}\n", "f:3: did not find"},
		{"start nowhere", "workflow: 1\nstart: x\nnodes: {end: {end: completed}}", `f:2: start leads to "x"`},
		{"no default", head + "  a: {set: {x: 1}, next: [{when: {pointer: /x, op: exists}, to: end}]}\n", "the last path must have no when"},
		{"early default", head + "  a: {set: {x: 1}, next: [{to: end}, {to: end}]}\n", "only the last path may have no when"},
		{"bad pointer", head + "  a: {set: {x: 1}, next: [{when: {pointer: x, op: exists}, to: end}, {to: end}]}\n", "pointer must be one into the data"},
		{"bad op", head + "  a: {set: {x: 1}, next: [{when: {pointer: /x, op: like, value: 1}, to: end}, {to: end}]}\n", "op must be one of"},
		{"no number", head + "  a: {set: {x: 1}, next: [{when: {pointer: /x, op: less, value: y}, to: end}, {to: end}]}\n", "less needs a number"},
		{"bad regexp", head + "  a: {set: {x: 1}, next: [{when: {pointer: /x, op: matches, value: '('}, to: end}, {to: end}]}\n", "no regular expression"},
		{"bad template", head + "  a: {agent: x, prompt: '{{x}}', next: end}\n", "what stands after {{ is no pointer"},
		{"no prompt", head + "  a: {agent: x, next: end}\n", "f:4: the node a needs a prompt"},
		{"too many attempts", head + "  a: {agent: x, prompt: y, attempts: 21, next: end}\n", "attempts must be a number from 1 to 20"},
		{"attempts of a person", head + "  a: {approval: {title: y}, attempts: 2, next: end}\n", `unknown key "attempts"`},
		{"script", head + "  a: {script: [{sing: x}], prompt: y, next: end}\n", `f:4: the node a: script: unknown step "sing"`},
		{"script with a command", head + "  a: {script: [{tool: {name: x, run: 'rm -rf /'}}], prompt: y, next: end}\n", "this script runs no commands"},
		{"script that crashes", head + "  a: {script: [{crash: ''}], prompt: y, next: end}\n", "f:4: the node a: script:"},
		{"no branches", head + "  a: {parallel: {}, next: end}\n", "parallel needs branches"},
		{"no option", head + "  a: {question: {text: x, recommended: 0}, next: end}\n", "recommended is the place of an option"},
		{"number", head + "  a: {set: {x: .inf}, next: end}\n", "no number of JSON"},
	} {
		d, err := Read([]byte(c.file), "f")
		if err == nil || d != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q\n%s", c.name, err, c.want, c.file)
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	const head = "workflow: 1\nnodes:\n  end: {end: completed}\n"
	for _, c := range []struct{ name, file, want string }{
		{"bytes", head + "#" + strings.Repeat("x", MaxFile), "bytes"},
		{"bytes as text in a fact", head + "#" + strings.Repeat("\\", MaxFile-1_000), "bytes"},
		{"depth", head + "data: {x: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + "}", "deeper"},
		{"values", head + "data: {x: [" + strings.Repeat("1,", maxValues) + "1]}", "values"},
		{"nodes", head + many(maxNodes, "  n%: {end: completed}\n"), "more than 200 entries"},
		{"branches", head + "  a:\n    next: a\n    parallel:\n" + many(maxBranches+1, "      n%: {agent: x, prompt: y}\n"), "more than 32 entries"},
	} {
		if _, err := Read([]byte(c.file), "f"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func many(n int, line string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(line, "%", strings.Repeat("a", i%50+1)+string(rune('a'+i/50))))
	}
	return b.String()
}

var shelf = data{
	"n": narad.Raw("1.50"), "s": narad.Raw(`"say \"hi\" {{/n}}"`), "t": narad.Raw("true"), "z": narad.Raw("null"),
	"o": narad.Raw(`{"a/b":[1,{"x~y":"deep"}],"":2}`), "l": narad.Raw(`["a",2,{"k":1}]`),
}

func TestPointers(t *testing.T) {
	for pointer, want := range map[string]string{
		"/n": "1.50", "/o/a~1b/1/x~0y": `"deep"`, "/o/": "2", "/l/0": `"a"`, "/z": "null",
		"/m": "", "/n/x": "", "/l/3": "", "/l/00": "", "/l/-": "", "/l/-1": "", "/o/a": "",
	} {
		if got := string(shelf.at(pointer)); got != want {
			t.Errorf("%s: got %s, want %s", pointer, got, want)
		}
	}
	for _, wrong := range []string{"x", "/~2", "/a~"} {
		if isPointer(wrong) {
			t.Errorf("%q counts as a pointer", wrong)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		pointer, op, value string
		want               bool
	}{
		{"/n", opEquals, "1.5", true}, {"/n", opEquals, `"1.5"`, false}, {"/m", opEquals, "null", false},
		{"/z", opEquals, "null", true}, {"/l/2", opEquals, `{ "k": 1.0 }`, true},
		{"/n", opNotEquals, "1.5", false}, {"/m", opNotEquals, "1", true},
		{"/n", opLess, "2", true}, {"/n", opLess, "1.5", false}, {"/s", opLess, "9", false}, {"/m", opLess, "9", false},
		{"/n", opGreater, "1", true}, {"/n", opAtMost, "1.5", true}, {"/n", opAtLeast, "1.6", false},
		{"/s", opContains, `"hi"`, true}, {"/s", opContains, "1", false}, {"/l", opContains, "2.0", true},
		{"/l", opContains, `"b"`, false}, {"/o", opContains, `"a/b"`, false},
		{"/t", opExists, "", true}, {"/z", opExists, "", true}, {"/m", opExists, "", false}, {"/m", opMissing, "", true},
	} {
		is := &condition{pointer: c.pointer, op: c.op, value: narad.Raw(c.value)}
		if got := is.holds(shelf); got != c.want {
			t.Errorf("%s %s %s: got %v, want %v", c.pointer, c.op, c.value, got, c.want)
		}
	}
}

// What agents and people say is data: it is filled in and never read as a template.
func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "{{/n}} and {{ /t }}": "1.50 and true", "{{/s}}": `say "hi" {{/n}}`,
		"{{/l}}": `["a",2,{"k":1}]`, "{ {/n}": "{ {/n}",
	} {
		is, ok := parseTemplate(text)
		got, err := is.fill(shelf)
		if !ok || err != nil || got != want {
			t.Errorf("%s: got %q %v %v, want %q", text, got, ok, err, want)
		}
	}
	is, _ := parseTemplate("{{/m}}")
	if _, err := is.fill(shelf); err == nil || codeOf(err) != "data_missing" {
		t.Errorf("a missing value: %v", err)
	}
	long, _ := parseTemplate(strings.Repeat("{{/big}}", 5))
	if _, err := long.fill(data{"big": narad.Quote(strings.Repeat("x", 64<<10))}); err == nil || codeOf(err) != "data_too_large" {
		t.Errorf("a text that is too long: %v", err)
	}
}

func TestResultsOfAgents(t *testing.T) {
	for said, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, " 7 ": "7", "Here:\n```json\n{\"a\": 1}\n```\nDone.": `{"a": 1}`,
		"```\n1\n```\nor\n```json\n2\n```": "2", "```json\n1\n``` and ```": "1",
		"no": "", "": "", "```json\n{\n```": "",
	} {
		v := &voice{text: []byte(said)}
		got, failure := (&work{json: true}).result(v)
		if string(got) != want || (failure == nil) != (want != "") {
			t.Errorf("%q: got %s %v, want %s", said, got, failure, want)
		}
	}
	v := &voice{}
	for range 100 {
		v.say(strings.Repeat("é", 4<<10))
	}
	v.say("end")
	got, _ := (&work{}).result(v)
	if text, _ := got.IsString(); len(text) > maxResult || !strings.HasSuffix(text, "éend") || strings.Contains(text, "\uFFFD") {
		t.Errorf("a long result has %d bytes and ends with %q", len(text), text[max(len(text)-8, 0):])
	}
	for text, want := range map[string]string{"abc": "ab", "aé": "a", "éa": "é"} {
		if got := clip(text, 2); got != want {
			t.Errorf("clip(%q, 2): got %q, want %q", text, got, want)
		}
	}
}
