package session_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios give now into testdata")

// modes are the two strictnesses, in the order in which a scenario names them.
var modes = [...]string{"strict", "lenient"}

// perMode holds one text for each of modes.
type perMode [len(modes)]string

// A scenario is one file of testdata, line by line.
type scenario struct {
	path  string
	lines []line
}

// A line is one line of a scenario.
type line struct {
	text string
	kind lineKind
	// only limits the line to one mode; "" means both.
	only string
	// name and value are the two sides of a question, the value alone of a result,
	// or an option.
	name, value string
	// got is what the line gave in each mode: an event's outcome, a question's answer.
	got perMode
}

type lineKind uint8

const (
	lineComment lineKind = iota
	lineSection          // --- begins a fresh session
	lineOption
	lineClear // cleargap
	lineEvent
	lineResult
	lineQuestion
)

func (l *line) in(mode string) bool { return l.only == "" || l.only == mode }

// TestScenarios plays every scenario file. With -rewrite it writes the results and
// answers of now into the files, for a person to read the difference.
func TestScenarios(t *testing.T) {
	produced, played := map[session.Code]bool{}, 0
	paths := scenarioFiles(t)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			s := readScenario(t, path)
			for m := range modes {
				s.play(t, m, produced)
			}
			played++
			if *rewrite {
				s.rewrite(t)
				return
			}
			s.compare(t)
		})
	}
	if played < len(paths) {
		return // some were left out by -run, or could not be played
	}
	for _, code := range session.Codes() {
		if !produced[code] {
			t.Errorf("no scenario is answered with the code %s", code)
		}
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files in testdata (error: %v)", err)
	}
	return paths
}

func readScenario(t *testing.T, path string) *scenario {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(content), "# ") {
		t.Fatalf("%s: the first line must state the rule and its source after #", path)
	}
	s := &scenario{path: path}
	for _, text := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		s.lines = append(s.lines, parseLine(text))
	}
	return s
}

func parseLine(text string) line {
	l := line{text: text}
	body := strings.TrimSpace(text)
	for _, mode := range modes {
		if rest, ok := strings.CutPrefix(body, mode+" "); ok {
			l.only, body = mode, strings.TrimSpace(rest)
		}
	}
	word, rest, _ := strings.Cut(body, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "", "#":
		l.kind = lineComment
	case "---":
		l.kind, l.name = lineSection, rest
	case "session", "without", "mode":
		l.kind, l.name, l.value = lineOption, word, rest
	case "cleargap":
		l.kind = lineClear
	case "=":
		l.kind, l.value = lineResult, rest
	case "?":
		l.kind = lineQuestion
		name, value, _ := strings.Cut(rest, "=")
		l.name, l.value = strings.TrimSpace(name), strings.TrimSpace(value)
	default:
		l.kind = lineEvent
	}
	return l
}

// setting is what the option lines have said so far.
type setting struct {
	options session.Options
	only    string
}

func (s *setting) apply(l *line) error {
	switch l.name {
	case "session":
		s.options.SessionID = l.value
	case "mode":
		s.only = l.value
	default:
		for _, name := range strings.Split(l.value, ",") {
			p, ok := narad.ParseProfile(strings.TrimSpace(name))
			if !ok {
				return fmt.Errorf("no profile %q", name)
			}
			s.options.Without |= p
		}
	}
	return nil
}

// play plays the file in one mode. Options before the first --- hold for the whole
// file, those after one for its section.
func (s *scenario) play(t *testing.T, m int, produced map[session.Code]bool) {
	t.Helper()
	file := setting{options: session.Options{Remember: session.RememberAll}}
	now, sections := file, 0
	var p *player
	for i := range s.lines {
		l := &s.lines[i]
		switch {
		case l.kind == lineComment || l.kind == lineResult:
			continue
		case l.kind == lineSection:
			if sections == 0 && p == nil {
				file = now
			}
			now, p, sections = file, nil, sections+1
			continue
		case l.kind == lineOption:
			if err := now.apply(l); err != nil || p != nil {
				t.Fatalf("%s: options come before the first event (error: %v)", s.at(i), err)
			}
			continue
		case now.only != "" && now.only != modes[m] || !l.in(modes[m]):
			continue
		}
		if p == nil {
			p = newPlayer(now.options, modes[m] == "strict")
		}
		s.playLine(t, p, i, m, produced)
	}
}

func (s *scenario) playLine(t *testing.T, p *player, i, m int, produced map[session.Code]bool) {
	t.Helper()
	l := &s.lines[i]
	switch l.kind {
	case lineClear:
		p.state.ClearGap()
	case lineEvent:
		o, err := p.play(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.text), l.only+" ")))
		if err != nil {
			t.Fatalf("%s: %v", s.at(i), err)
		}
		if o.kind != "applied" {
			produced[session.Code(o.code)] = true
		}
		l.got[m] = o.String()
	case lineQuestion:
		answer, err := p.ask(l.name)
		if err != nil {
			t.Fatalf("%s: %v", s.at(i), err)
		}
		l.got[m] = answer
	}
}

func (s *scenario) at(i int) string { return s.path + ":" + strconv.Itoa(i+1) }

// compare fails the test for each line whose outcome is not the expected one.
func (s *scenario) compare(t *testing.T) {
	t.Helper()
	for i := range s.lines {
		l := &s.lines[i]
		want := s.wanted(i)
		for m, mode := range modes {
			if l.got[m] != "" && !sameText(l.got[m], want[m]) {
				t.Errorf("%s: %s\n%s got  %s\n%s want %s", s.at(i), l.text, mode, l.got[m], mode, want[m])
			}
		}
	}
}

// wanted returns what the file expects of a line.
func (s *scenario) wanted(i int) perMode {
	l := &s.lines[i]
	if l.kind == lineQuestion {
		return perMode{l.value, l.value}
	}
	want := perMode{"applied", "applied"}
	for _, r := range s.lines[i+1:] {
		if r.kind != lineResult {
			break
		}
		for m, mode := range modes {
			if r.in(mode) {
				want[m] = r.value
			}
		}
	}
	return want
}

// sameText compares answers as JSON values, and all else as text.
func sameText(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil {
		return reflect.DeepEqual(x, y)
	}
	return a == b
}

// rewrite writes the file with what its lines gave.
func (s *scenario) rewrite(t *testing.T) {
	t.Helper()
	var out []string
	for i := range s.lines {
		switch l := &s.lines[i]; l.kind {
		case lineResult:
		case lineEvent:
			out = append(append(out, l.text), results(l.got)...)
		case lineQuestion:
			out = append(out, answers(l)...)
		default:
			out = append(out, l.text)
		}
	}
	if err := os.WriteFile(s.path, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// results are the expectation lines of an event. A mode in which it was not played
// has none.
func results(got perMode) []string {
	strict, lenient := got[0], got[1]
	switch {
	case (strict == "applied" || strict == "") && (lenient == "applied" || lenient == ""):
		return nil
	case strict == lenient || lenient == "":
		return []string{"= " + strict}
	case strict == "":
		return []string{"= " + lenient}
	}
	return []string{"strict = " + strict, "lenient = " + lenient}
}

// answers are the lines of a question: the one that stands, if it still holds.
func answers(l *line) []string {
	strict, lenient := l.got[0], l.got[1]
	holds := func(got string) bool { return got == "" || sameText(got, l.value) }
	switch {
	case holds(strict) && holds(lenient):
		return []string{l.text}
	case l.only != "":
		return []string{l.only + " ? " + l.name + " = " + strict + lenient}
	case strict == "" || lenient == "" || sameText(strict, lenient):
		return []string{"? " + l.name + " = " + max(strict, lenient)}
	}
	return []string{"strict ? " + l.name + " = " + strict, "lenient ? " + l.name + " = " + lenient}
}

// ask answers a question: the value at a path of the snapshot, or "absent". The
// parts of a path are member names and array indexes, joined by dots.
func (p *player) ask(path string) (string, error) {
	var snapshot any
	d := json.NewDecoder(strings.NewReader(string(p.state.SnapshotJSON())))
	d.UseNumber()
	if err := d.Decode(&snapshot); err != nil {
		return "", fmt.Errorf("read the snapshot: %w", err)
	}
	value := snapshot
	for _, part := range strings.Split(path, ".") {
		var ok bool
		if value, ok = child(value, part); !ok {
			return "absent", nil
		}
	}
	answer, err := json.Marshal(value)
	return string(answer), err
}

func child(value any, part string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		inner, ok := v[part]
		return inner, ok
	case []any:
		if i, err := strconv.Atoi(part); err == nil && 0 <= i && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}
