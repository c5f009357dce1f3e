package config_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mahati-host/mahati/internal/config"
)

func TestExampleSaysTheDefaults(t *testing.T) {
	example := config.Example()
	if diff := cmp.Diff(defaults(), load(t, example, env())); diff != "" {
		t.Errorf("as it is (-want +got):\n%s", diff)
	}

	got := load(t, uncommented(example), env())
	if len(got.Agents.Named) != 2 || len(got.Policy) != 3 || len(got.Harness.Classify) != 2 {
		t.Errorf("the agents and rules shown are %v, %v and %v", got.Agents.Named, got.Policy, got.Harness.Classify)
	}
	if got.Narya.Styles["brief"] == "" {
		t.Errorf("the styles shown are %v", got.Narya.Styles)
	}
	got.Agents.Named, got.Policy, got.Harness.Classify, got.Narya.Styles = nil, nil, nil, nil
	want := defaults()
	want.AllowedHosts, want.CORSOrigins = []string{}, []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("with every line taken in (-want +got):\n%s", diff)
	}
}

// uncommented takes in every line that sets something: prose has a space after
// its #.
func uncommented(example string) string {
	return regexp.MustCompile(`(?m)^#([^ \n])`).ReplaceAllString(example, "$1")
}

// Every field of Config can be set by a line of the example, and every key has
// words about it.
func TestExampleDocumentsEveryField(t *testing.T) {
	example := config.Example()
	fields := 0
	countFields(reflect.TypeFor[config.Config](), &fields)
	// Home is not set in the file; agents, policy, harness.classify and narya.styles are tables, shown by examples.
	const elsewhere = 5
	settings := regexp.MustCompile(`(?m)^(#.*\n)(#[a-z_]+ = .*)$`).FindAllStringSubmatch(example[:strings.Index(example, "#[[policy]]")], -1)
	documented := 0
	for _, match := range settings {
		if strings.HasPrefix(match[1], "# ") {
			documented++
		}
	}
	if documented != fields-elsewhere {
		t.Errorf("%d settings have words about them, Config has %d fields to set; in:\n%s", documented, fields-elsewhere, example)
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[config.Agent](), reflect.TypeFor[config.MCPServer](), reflect.TypeFor[config.Rule](),
		reflect.TypeFor[config.Classification](),
	} {
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			if !strings.HasSuffix(name, "ss") {
				name = strings.TrimSuffix(name, "s")
			}
			key := strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(name, "${1}_$2"))
			if !strings.Contains(example, "\n#"+key+" = ") && !strings.Contains(example, "."+key+".") && !strings.Contains(example, "."+key+"s]\n") &&
				!strings.Contains(example, "\n#"+key+"s = ") {
				t.Errorf("%s.%s is not shown", typ.Name(), typ.Field(i).Name)
			}
		}
	}
}

func countFields(typ reflect.Type, n *int) {
	for i := range typ.NumField() {
		if field := typ.Field(i).Type; field.Kind() == reflect.Struct {
			countFields(field, n)
			continue
		}
		*n++
	}
}

func TestSplitCommand(t *testing.T) {
	tests := []struct {
		line string
		want []string
		ok   bool
	}{
		{"", nil, true},
		{"  \t ", nil, true},
		{"npx opencode-ai  acp", []string{"npx", "opencode-ai", "acp"}, true},
		{`a 'b c' "d e"`, []string{"a", "b c", "d e"}, true},
		{`a '' ""`, []string{"a", "", ""}, true},
		{`--x="y z"'w'`, []string{"--x=y zw"}, true},
		{`a\ b \"c\"`, []string{"a b", `"c"`}, true},
		{`"a\"b\\c\d"`, []string{`a"b\c\d`}, true},
		{`'a\b'`, []string{`a\b`}, true},
		{`$HOME *`, []string{"$HOME", "*"}, true},
		{`a 'b`, nil, false},
		{`a "b`, nil, false},
		{`a \`, nil, false},
	}
	for _, tt := range tests {
		got, err := config.SplitCommand(tt.line)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.ok {
			t.Errorf("SplitCommand(%q) = %q, %v; want %q", tt.line, got, err, tt.want)
		}
	}
}

func TestAddAgent(t *testing.T) {
	var c config.Config
	first := config.Agent{Kind: config.KindACP, Command: []string{"a"}}
	if err := c.AddAgent("flag", first); err != nil {
		t.Fatal(err)
	}
	copied := c
	if err := c.AddAgent("flag", config.Agent{Kind: config.KindScript, File: "/f"}); err != nil {
		t.Fatal(err)
	}
	if c.Agents.Named["flag"].Kind != config.KindScript || copied.Agents.Named["flag"].Kind != config.KindACP {
		t.Errorf("now %v, the copy %v", c.Agents.Named, copied.Agents.Named)
	}
	for name, a := range map[string]config.Agent{
		"Flag":     first,
		"relative": {Kind: config.KindScript, File: "f"},
		"cwd":      {Kind: config.KindACP, Command: []string{"a"}, CWD: "here"},
		"nul":      {Kind: config.KindACP, Command: []string{"a\x00"}},
		"none":     {},
	} {
		if err := c.AddAgent(name, a); err == nil {
			t.Errorf("%q: %+v is taken", name, a)
		}
	}
}
