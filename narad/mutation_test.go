package narad

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutations changes the example of a type and compares what becomes of it with
// testdata/invalid. A file holds types at the start of a line and below each, one a
// line, changes and what they lead to:
//
//	run.paused
//		-waitId                    invalid_record /waitId
//		message=7                  invalid_record /message | client: taken
//		-a; b=1                    several changes
//
// The part after the bar stands where a client judges otherwise than a host does.
// -rewrite writes the right-hand sides anew.
func TestMutations(t *testing.T) {
	names, err := filepath.Glob("testdata/invalid/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no files: %v", err)
	}
	seen := map[Type]bool{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		var kind Type
		for line := range strings.Lines(string(data)) {
			line = strings.TrimRight(line, "\n")
			change, isChange := strings.CutPrefix(line, "\t")
			if !isChange {
				if line != "" && line[0] != '#' {
					kind, seen[Type(line)] = Type(line), true
				}
				out.WriteString(line + "\n")
				continue
			}
			change, want, _ := strings.Cut(change, "  ")
			text := mutate(t, example(t, kind), change).text()
			got := verdicts(text)
			if want = strings.TrimSpace(want); got != want && !*rewrite {
				t.Errorf("%s: %s, %s\n got %s\nwant %s\n%s", name, kind, change, got, want, text)
			}
			fmt.Fprintf(&out, "\t%-44s  %s\n", change, got)
		}
		if *rewrite {
			if err := os.WriteFile(name, []byte(out.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range shapes {
		if !seen[s.kind] {
			t.Errorf("testdata/invalid says nothing of %s", s.kind)
		}
	}
}

// mutate applies changes such as "-waitId; scope="run"".
func mutate(t *testing.T, o object, changes string) object {
	t.Helper()
	for change := range strings.SplitSeq(changes, "; ") {
		if name, ok := strings.CutPrefix(change, "-"); ok {
			o = o.without(name)
			continue
		}
		name, value, ok := strings.Cut(change, "=")
		if !ok {
			t.Fatalf("no change: %q", change)
		}
		o = o.with(name, value)
	}
	return o
}

// verdicts says what a host and a client make of a record.
func verdicts(text string) string {
	_, err := DecodeStrict([]byte(text))
	host := verdict(err)
	_, err = Decode([]byte(text))
	if client := verdict(err); client != host {
		return host + " | client: " + client
	}
	return host
}

func verdict(err error) string {
	if err == nil {
		return "taken"
	}
	refusal := refusalOf(err)
	return strings.TrimSpace(string(refusal.Code) + " " + refusal.Path)
}

// TestClientsTakeMore: what a host may emit, a client takes.
func TestClientsTakeMore(t *testing.T) {
	for _, s := range shapes {
		o := example(t, s.kind)
		for _, f := range s.fields {
			for _, value := range append(f.wrong(), `"2026-01-01T00:00:00Z"`, `1`, `[]`, `{"x":[]}`, `"run"`) {
				text := o.with(f.name, value).text()
				if _, err := DecodeStrict([]byte(text)); err != nil {
					continue
				}
				if _, err := Decode([]byte(text)); err != nil {
					t.Errorf("a client refuses what a host may emit: %v\n%s", err, text)
				}
			}
		}
	}
}
