package session_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/narad/session"
)

// goldenTraces is where the scenarios stand as records in full, for readers in other
// languages (conformance/traces/README.md describes the form).
const goldenTraces = "../../conformance/traces"

var rewriteTraces = flag.Bool("traces", false, "write the golden traces of package conformance anew from the scenarios")

// TestGoldenTraces holds the golden traces to the scenarios: each scenario file is one
// file of traces, with the records as the short form writes them.
func TestGoldenTraces(t *testing.T) {
	var names []string
	for _, path := range scenarioFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".txt") + ".jsonl"
		names = append(names, name)
		want := tracesOf(t, readScenario(t, path))
		file := filepath.Join(goldenTraces, name)
		if *rewriteTraces {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s says (error: %v): run go test ./narad/session -run TestGoldenTraces -traces", file, path, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(goldenTraces, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !slices.Contains(names, name) {
			t.Errorf("%s comes from no scenario", file)
		}
	}
}

// tracesOf writes the sections of a scenario as traces: one for both readers where they
// read the same records with the same results, else one for each.
func tracesOf(t *testing.T, s *scenario) []byte {
	t.Helper()
	var out bytes.Buffer
	rule := strings.TrimPrefix(s.lines[0].text, "# ")
	var perMode [len(modes)][]trace
	for m := range modes {
		perMode[m] = s.traces(t, m)
	}
	for i, strict := range perMode[0] {
		lenient := perMode[1][i]
		if bytes.Equal(strict.body, lenient.body) {
			strict.write(&out, rule, "both")
			continue
		}
		strict.write(&out, rule, modes[0])
		lenient.write(&out, rule, modes[1])
	}
	return out.Bytes()
}

// trace is one section as one reader meets it.
type trace struct {
	name    string
	options session.Options
	body    []byte
}

func (tr trace) write(out *bytes.Buffer, rule, reader string) {
	if len(tr.body) == 0 {
		return
	}
	head := struct {
		Trace     string   `json:"trace"`
		Rule      string   `json:"rule"`
		Reader    string   `json:"reader"`
		SessionID string   `json:"sessionId,omitempty"`
		Without   []string `json:"without,omitempty"`
	}{tr.name, rule, reader, tr.options.SessionID, tr.options.Without.IDs()}
	out.Write(lineOf(head))
	out.Write(tr.body)
}

// lineOf writes a value as one line, with characters as they are.
func lineOf(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a struct of strings always encodes
	}
	return out.Bytes()
}

// traces plays the file as play does, and writes down each line.
func (s *scenario) traces(t *testing.T, m int) []trace {
	t.Helper()
	file := setting{options: session.Options{Remember: session.RememberAll}}
	now, name := file, ""
	var list []trace
	var body bytes.Buffer
	var p *player
	begun := false
	end := func() {
		if begun {
			list = append(list, trace{name, now.options, bytes.Clone(body.Bytes())})
		}
		body.Reset()
	}
	for i := range s.lines {
		l := &s.lines[i]
		switch {
		case l.kind == lineSection:
			end()
			if !begun && p == nil {
				file = now
			}
			now, p, name, begun = file, nil, strings.TrimSpace(strings.TrimPrefix(l.text, "---")), true
		case l.kind == lineOption:
			if err := now.apply(l); err != nil {
				t.Fatalf("%s: %v", s.at(i), err)
			}
		case l.kind == lineComment || l.kind == lineResult || now.only != "" && now.only != modes[m] || !l.in(modes[m]):
		default:
			begun = true
			if p == nil {
				p = newPlayer(now.options, modes[m] == "strict")
			}
			s.trace(t, p, i, &body)
		}
	}
	end()
	return list
}

// trace writes one line of the scenario down.
func (s *scenario) trace(t *testing.T, p *player, i int, out *bytes.Buffer) {
	t.Helper()
	l := &s.lines[i]
	switch l.kind {
	case lineClear:
		p.state.ClearGap()
		out.WriteString(`{"clearGap":true}` + "\n")
	case lineQuestion:
		answer, err := p.ask(l.name)
		if err != nil {
			t.Fatalf("%s: %v", s.at(i), err)
		}
		path := lineOf(l.name)
		if answer == "absent" {
			answer = ""
		} else {
			answer = `,"is":` + answer
		}
		out.WriteString(`{"state":` + strings.TrimSpace(string(path)) + answer + "}\n")
	default:
		record, err := p.compose(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.text), l.only+" ")))
		if err != nil {
			t.Fatalf("%s: %v", s.at(i), err)
		}
		got := p.apply(record)
		out.WriteString("{" + embedded(record) + `,"result":"` + got.kind + `"`)
		if got.code != "" {
			out.WriteString(`,"code":"` + got.code + `"`)
		}
		out.WriteString("}\n")
	}
}

// embedded is a record as a member of a line: its own bytes where they are strictly JSON,
// otherwise a text. A long run of one letter is told by its length.
func embedded(record []byte) string {
	pad := ""
	if i := bytes.Index(record, bytes.Repeat([]byte("x"), 1000)); i >= 0 {
		rest := bytes.TrimLeft(record[i:], "x")
		n, _ := json.Marshal(len(record) - i - len(rest))
		pad = `,"pad":` + string(n)
		record = slices.Concat(record[:i], []byte("<pad>"), rest)
	}
	if jsontext.Value(record).IsValid() {
		return `"record":` + string(record) + pad
	}
	return `"text":` + strings.TrimSpace(string(lineOf(string(record)))) + pad
}
