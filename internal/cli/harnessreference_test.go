package cli_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/cli"
	"github.com/mahati-host/mahati/internal/referencetest"
)

// corpusCase is a run of the public program as it was recorded.
type corpusCase struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Verdict string `json:"contract_verdict"`
	Input   string `json:"input"`
	Views   map[string]struct {
		Exit   int    `json:"exit"`
		Stdout string `json:"stdout"`
	} `json:"views"`
	Args   []string `json:"args"`
	Exit   int      `json:"exit"`
	SHA256 string   `json:"stdout_sha256"`
}

func corpus(t *testing.T) (dir string, cases []corpusCase) {
	dir = filepath.Join(referencetest.Dir(t), "harness", "corpus")
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Cases []corpusCase `json:"cases"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Cases) < 90 {
		t.Fatalf("the corpus has only %d cases", len(manifest.Cases))
	}
	return dir, manifest.Cases
}

// project runs the command without a terminal.
func project(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return mahati(t, append([]string{"harness", "protocol"}, args...)...)
}

func mahati(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, told bytes.Buffer
	code = cli.Main(args, cli.Process{Stdin: os.Stdin, Stdout: &out, Stderr: &told, Getenv: func(string) string { return "" }})
	return code, out.String(), told.String()
}

// departures reads the table of docs/harness.md: what we do where the page asks for
// something else than the public implementation does, by case.
func departures(t *testing.T) map[string]string {
	text, err := os.ReadFile("../../docs/harness.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "## Where we follow the page instead of the public implementation\n")
	if !found {
		t.Fatal("docs/harness.md has no section on where we follow the page")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	list := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(table, -1) {
		list[row[1]] = row[2]
	}
	return list
}

// TestReferenceCorpus: each case of the public implementation's corpus ends as recorded, or
// as docs/harness.md says; every case of which the corpus says that the page decides
// otherwise is in that table, and no other is.
func TestReferenceCorpus(t *testing.T) {
	dir, cases := corpus(t)
	ours := departures(t)
	for _, c := range cases {
		outcome, listed := ours[c.Name]
		delete(ours, c.Name)
		if listed != (c.Verdict != "") {
			t.Errorf("%s: in the table of docs/harness.md: %v, verdict of the corpus: %q", c.Name, listed, c.Verdict)
			continue
		}
		for view, want := range c.Views {
			t.Run(c.Name+"/"+view, func(t *testing.T) {
				input := filepath.Join(dir, c.Input)
				if !listed {
					outcome = "as recorded"
				}
				holdOutcome(t, input, view, outcome, c.Class, want.Exit, want.Stdout)
			})
		}
	}
	for name := range ours {
		t.Errorf("docs/harness.md lists %s, which the corpus does not have", name)
	}
}

// holdOutcome runs a case. The outcomes of the table are: as recorded, nothing more or
// with a note of a class; refused with a class; redacted, of which as much as may be seen
// with --show-private is as recorded, or everything is.
func holdOutcome(t *testing.T, input, view, outcome, class string, exit int, recorded string) {
	t.Helper()
	code, stdout, stderr := project(t, "project", "--input", input, "--view", view)
	kind, detail, _ := strings.Cut(outcome, ": ")
	switch kind {
	case "as recorded", "as recorded, noted":
		if code != exit || stdout != recorded {
			t.Errorf("got exit code %d and\n%s\nwant %d and\n%s\nstderr: %s", code, stdout, exit, recorded, stderr)
		}
		want := map[bool]string{true: "", false: "mahati: " + class + ":"}[exit == 0]
		if kind == "as recorded, noted" {
			want = "note: " + detail + ":"
		}
		if !strings.HasPrefix(stderr, want) || (want == "") != (stderr == "") {
			t.Errorf("got on standard error %q, want %q", stderr, want)
		}
	case "refused":
		if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "mahati: "+detail+":") {
			t.Errorf("got exit code %d, %q and %q; want 1, nothing and the class %s", code, stdout, stderr, detail)
		}
	case "redacted", "redacted, private too":
		if want := reducedWithoutHidden(t, input, view); code != 0 || stdout != want {
			t.Errorf("got exit code %d and\n%s\nwant 0 and\n%s\nstderr: %s", code, stdout, want, stderr)
		}
		code, stdout, _ := project(t, "project", "--input", input, "--view", view, "--show-private")
		if asRecorded := code == 0 && stdout == recorded; asRecorded != (kind == "redacted") {
			t.Errorf("with --show-private: got exit code %d and\n%s\nrecorded was\n%s", code, stdout, recorded)
		}
	default:
		t.Errorf("docs/harness.md: no outcome is called %q", outcome)
	}
}

// reducedWithoutHidden is what the log projects to when every record that is not public
// is of a type that nobody knows: it moves the cursor, and nothing else.
func reducedWithoutHidden(t *testing.T, input, view string) string {
	t.Helper()
	text, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for line := range bytes.Lines(text) {
		var record map[string]any
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		if record["sensitivity"] != "public" {
			record["type"], record["sensitivity"] = "test.hidden", "public"
		}
		if err := json.NewEncoder(&log).Encode(record); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(name, log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := project(t, "project", "--input", name, "--view", view)
	return stdout
}

// TestReferenceCheck: a strict reading refuses whatever the public program refuses, finds
// something in each log of which the corpus says that the page has it otherwise, and takes
// the public fixture.
func TestReferenceCheck(t *testing.T) {
	dir, cases := corpus(t)
	for _, c := range cases {
		if c.Input == "" {
			continue
		}
		code, stdout, stderr := mahati(t, "harness", "check", filepath.Join(dir, c.Input))
		refused := c.Views["json"].Exit != 0 || strings.HasPrefix(c.Verdict, "reject:")
		if refused && code != 1 || code > 1 || stderr != "" {
			t.Errorf("%s: got exit code %d, %q\n%s", c.Name, code, stderr, stdout)
		}
		if asked := strings.Contains(c.Verdict, "flag") || strings.HasPrefix(c.Verdict, "accept (but"); asked && strings.Contains(stdout, " 0 violations, 0 notes") {
			t.Errorf("%s: %s, and got\n%s", c.Name, c.Verdict, stdout)
		}
		if c.Name == "roundtrip-fixture" && (code != 0 || !strings.Contains(stdout, "ok: 16 records, 0 violations, 1 note")) {
			t.Errorf("the public fixture: got exit code %d and\n%s", code, stdout)
		}
	}
}

// TestReferenceArguments: the command line of the public program. Its two files are not
// part of the corpus; what they hold can be told from what was printed.
func TestReferenceArguments(t *testing.T) {
	_, cases := corpus(t)
	t.Chdir(t.TempDir())
	if err := os.Mkdir("in", 0o700); err != nil {
		t.Fatal(err)
	}
	const first = `{"version":"fak.harness.run/v1","run_id":"r1","sequence":1,"event_id":"r1:1","type":"run.started","sensitivity":"public","payload":{"status":"running"}}` + "\n"
	write(t, "in/minimal.jsonl", first)
	write(t, "in/gap.jsonl", first+strings.Replace(first, `"sequence":1`, `"sequence":3`, 1))
	n := 0
	for _, c := range cases {
		if len(c.Args) == 0 {
			continue
		}
		n++
		code, stdout, stderr := project(t, c.Args...)
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(stdout))); code != c.Exit || sum != c.SHA256 {
			t.Errorf("%s: project %q: got exit code %d, stdout %s %q; want %d, %s; stderr %q", c.Name, c.Args, code, sum, stdout, c.Exit, c.SHA256, stderr)
		}
		if (stderr == "") != (code == 0) {
			t.Errorf("%s: got exit code %d and on standard error %q", c.Name, code, stderr)
		}
	}
	if n < 9 {
		t.Errorf("the corpus has only %d cases of arguments", n)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceFixture: the public fixture projects to the two hashes that were published
// with it.
func TestReferenceFixture(t *testing.T) {
	dir, _ := corpus(t)
	for view, want := range map[string]string{
		"cli": "9edeb348e094eb003ce1ebab8fe97f67fe8facc24c721ab1b612291849feec99",
		"tui": "1054c96678326058d2447e6866c5b394d236e0598a39fd4facd2cf829ec92e18",
	} {
		_, stdout, _ := project(t, "project", "--input", filepath.Join(dir, "roundtrip-fixture.jsonl"), "--view", view)
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(stdout))); got != want {
			t.Errorf("%s: got %s, want %s for\n%s", view, got, want, stdout)
		}
	}
}
