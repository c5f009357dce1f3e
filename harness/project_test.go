package harness_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// placed gives a fact of a run the places that it has in a session.
func placed(f narad.Authority, root, run string) narad.Authority {
	e := f.Envelope()
	e.EventID, e.Timestamp, e.SessionID, e.SessionSequence = "7.aaaaaaaa", "2026-01-02T03:04:05Z", "s", 7
	e.RootRunID, e.RunID = root, run
	if run != "" {
		e.Sequence = 7
	}
	return f
}

// logged is how a log of this mapping stands while its run goes on.
var logged = harness.Standing{Mapping: harness.Mapping}

// R36: a fact that no record can express is none, and never an error.
func TestFactsWithoutRecords(t *testing.T) {
	used := int64(1)
	gate := &narad.RunStarted{ParentRunID: "r"}
	facts.SetGate(&gate.Event)
	gateEnd := &narad.RunFinished{Usage: &narad.Usage{PromptTokens: &used}}
	facts.SetGate(&gateEnd.Event)
	ofPlan := &narad.ProgressRecorded{ProgressID: "p", Category: "plan", Label: "l", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic}
	facts.SetOfPlan(&ofPlan.Event)
	projection := placed(&narad.ToolCallStarted{ToolCallID: "c", ToolName: "t"}, "r", "r")
	projection.Envelope().SourceEventID = "1.bbbbbbbb"
	for _, f := range []narad.Authority{
		placed(gate, "r", "g"), placed(gateEnd, "r", "g"), placed(ofPlan, "r", "r"), projection,
		placed(&narad.RunPaused{WaitID: "w"}, "r", "r"), placed(&narad.RunResumed{WaitID: "w"}, "r", "r"),
		placed(&narad.RunStopRequested{TargetRunID: "n"}, "r", "r"),
		placed(&narad.StateSnapshot{Kind: narad.TypeStateSnapshot}, "r", "r"), placed(&narad.StateDelta{Kind: narad.TypeStateDelta}, "r", "r"),
		placed(&narad.StateCompacted{}, "r", "r"), placed(&narad.Artifact{Kind: narad.TypeArtifactAdded}, "r", "r"),
		placed(&narad.Artifact{Kind: narad.TypeArtifactFailed}, "r", "r"), placed(facts.Run("r", "r", facts.ToolOutput, facts.Output{ToolCallID: "c"}), "r", "r"),
		placed(facts.Run("r", "r", facts.Round, facts.Rounded{}), "r", "r"), placed(facts.Run("r", "r", "its.own", 1), "r", "r"),
		placed(&narad.Opaque{Kind: narad.TypeRunRaw}, "r", "r"), placed(&narad.Tracing{Kind: narad.TypeTraceEvent}, "r", "r"),
		placed(&narad.Skipped{Kind: "x.y"}, "r", "r"), placed(&narad.WorkflowStarted{}, "", ""),
		placed(&narad.MessageRedacted{MessageID: "m"}, "", ""), placed(facts.Session(facts.QueueReleased, facts.Released{}), "", ""),
		placed(&narad.MessageTextDelta{MessageID: "m"}, "", ""),
		placed(facts.Session(facts.InputWithdrawn, facts.Withdrawn{RunID: "r"}), "", ""), // of a host before the contract
	} {
		if run, n := harness.Count(logged, f); run != "" || n != 0 {
			t.Errorf("%s: got %d records in %q, want none", f.Type(), n, run)
		}
	}
}

// The log that counts is the one of the version that its run recorded, and it is silent
// from the stop of its run to the end.
func TestCountByStanding(t *testing.T) {
	delta := placed(&narad.MessageTextDelta{MessageID: "m", Delta: "x"}, "r", "r")
	end := &narad.RunCancelled{}
	facts.SetStoppedBy(&end.Event, facts.Cause{})
	for _, c := range []struct {
		what   string
		before harness.Standing
		fact   narad.Authority
		want   int
	}{
		{"running", logged, delta, 1},
		{"version 0", harness.Standing{}, delta, 0},
		{"a later version", harness.Standing{Mapping: harness.Mapping + 1}, delta, 0},
		{"stopped", harness.Standing{Mapping: harness.Mapping, Stopped: true}, delta, 0},
		{"the end after a stop", harness.Standing{Mapping: harness.Mapping, Stopped: true}, placed(end, "r", "r"), 2},
		{"a nested end after a stop", harness.Standing{Mapping: harness.Mapping, Stopped: true}, placed(&narad.RunCancelled{}, "r", "n"), 0},
		{"a start that records nothing", logged, placed(&narad.RunStarted{}, "r", "r"), 0},
	} {
		if _, n := harness.Count(c.before, c.fact); n != c.want {
			t.Errorf("%s: got %d records, want %d", c.what, n, c.want)
		}
	}
}

// Mixed-up calls are told apart, and give nothing.
func TestProjectRefuses(t *testing.T) {
	run := harness.Run{ID: "r", Mapping: harness.Mapping}
	delta := placed(&narad.MessageTextDelta{MessageID: "m", Delta: "x"}, "r", "r")
	for _, c := range []struct {
		what string
		run  harness.Run
		fact narad.Authority
		n    int
		want error
	}{
		{"another run", harness.Run{ID: "q", Mapping: harness.Mapping}, delta, 1, harness.ErrNotOfRun},
		{"another version", harness.Run{ID: "r", Mapping: harness.Mapping + 1}, delta, 1, harness.ErrMapping},
		{"another count", run, delta, 2, harness.ErrCount},
		{"nothing to say", run, placed(&narad.RunPaused{}, "r", "r"), 1, harness.ErrCount},
		{"no records", run, delta, 0, nil},
	} {
		if events, err := c.run.Project(c.fact, 1, c.n, nil); !errors.Is(err, c.want) || len(events) != 0 {
			t.Errorf("%s: got %d records, %v, want %v", c.what, len(events), err, c.want)
		}
	}
	if _, err := harness.RunOf(delta); !errors.Is(err, harness.ErrNotOfRun) {
		t.Errorf("a run of a fact that begins none: %v", err)
	}
}

// The records of the largest facts fit on a line, and no character is cut (field case 77).
func TestLargestFacts(t *testing.T) {
	run := harness.Run{ID: "r", Mapping: harness.Mapping}
	largest := func(build func(text string) narad.Authority) narad.Authority {
		t.Helper()
		for size := narad.MaxEventBytes; ; size -= 100 {
			f := placed(build(strings.Repeat("é", size/2)), "r", "r")
			if _, err := narad.Encode(f); err == nil {
				return f
			} else if size < narad.MaxEventBytes*9/10 {
				t.Fatalf("no size fits: %v", err)
			}
		}
	}
	object := func(name, text string) narad.Raw {
		return narad.Raw(`{"` + name + `":` + string(narad.Quote(text)) + `}`)
	}
	for _, f := range []narad.Authority{
		largest(func(s string) narad.Authority { return &narad.MessageTextDelta{MessageID: "m", Delta: s} }),
		largest(func(s string) narad.Authority {
			return &narad.ToolCallStarted{ToolCallID: "c", ToolName: "t", Executor: narad.ExecutorBackend, Args: object("a", s)}
		}),
		largest(func(s string) narad.Authority {
			return &narad.InterruptRequested{InterruptID: "i", WaitID: "w", Kind: "k", Actions: []string{"a"}, Input: object("detail", s)}
		}),
		largest(func(s string) narad.Authority {
			return &narad.InterruptRequested{InterruptID: "i", WaitID: "w", Kind: "k", Actions: []string{"a"}, Input: object("resource", s)}
		}),
		largest(func(s string) narad.Authority {
			return &narad.InterruptRequested{
				InterruptID: "i", WaitID: "w", Kind: "question", Actions: []string{"a"},
				Input: narad.Raw(`{"questions":[` + string(object("text", s)) + `]}`),
			}
		}),
		largest(func(s string) narad.Authority { return &narad.RunError{Code: "c", Message: s} }),
	} {
		_, n := harness.Count(logged, f)
		events, err := run.Project(f, 1, n, nil)
		if err != nil || n == 0 {
			t.Fatalf("%s: %d records, %v", f.Type(), n, err)
		}
		for _, e := range events {
			if line, err := harness.Encode(e); err != nil {
				t.Errorf("%s: %d bytes: %v", e.Type, len(line), err)
			} else if strings.Contains(string(line), "\uFFFD") {
				t.Errorf("%s: a character was cut", e.Type)
			}
		}
	}
}

// Values keep their bytes, but for the white space that a line cannot hold.
func TestValuesKeepTheirBytes(t *testing.T) {
	f := placed(&narad.ToolCallStarted{
		ToolCallID: "c", ToolName: "t", Executor: narad.ExecutorBackend,
		Args: narad.Raw("{\"n\":\n 1.10, \"big\": 123456789012345678901234567890, \"e\":\"\\u00e9\\/\"}"),
	}, "r", "r")
	events, err := harness.Run{ID: "r", Mapping: harness.Mapping}.Project(f, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `"args":{"n":1.10,"big":123456789012345678901234567890,"e":"\u00e9\/"}`
	if !strings.Contains(string(events[0].Payload), want) {
		t.Errorf("got %s, want %s in it", events[0].Payload, want)
	}
}

// The table of docs/harness.md names every fact that becomes records, and no other.
func TestTableOfFacts(t *testing.T) {
	doc, err := os.ReadFile("../docs/harness.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## From facts to a log\n")
	if !found {
		t.Fatal("docs/harness.md has no section From facts to a log")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z.]+)`[^|]*\\| ([^|]*) \\|").FindAllStringSubmatch(section, -1) {
		rows[m[1]] += m[2]
	}
	for _, f := range everyFact() {
		_, n := harness.Count(logged, f)
		row, told := rows[string(f.Type())]
		if told != (n > 0) {
			t.Errorf("%s becomes %d records, its row says %q", f.Type(), n, row)
			continue
		}
		events, err := harness.Run{ID: "r", Mapping: harness.Mapping}.Project(f, 1, n, nil)
		if err != nil {
			t.Errorf("%s: %v", f.Type(), err)
		}
		for _, e := range events {
			if !strings.Contains(row, "`"+string(e.Type)+"`") {
				t.Errorf("%s becomes %s, its row says %q", f.Type(), e.Type, row)
			}
		}
	}
}

// everyFact has one fact of each type that can be of a run, as it says most.
func everyFact() []narad.Authority {
	used := int64(1)
	usage := &narad.Usage{PromptTokens: &used}
	start := &narad.RunStarted{}
	facts.SetHarness(&start.Event, harness.Mapping)
	root := func(f narad.Authority) narad.Authority { return placed(f, "r", "r") }
	withdrawn := facts.Session(facts.InputWithdrawn, facts.Withdrawn{RunID: "r"})
	facts.SetHarness(&withdrawn.Event, harness.Mapping)
	return []narad.Authority{
		root(start), placed(&narad.RunStarted{ParentRunID: "r"}, "r", "n"), root(&narad.RunPaused{}), root(&narad.RunResumed{}),
		root(&narad.RunStopRequested{TargetRunID: "r"}), root(&narad.RunFinished{Usage: usage}), placed(&narad.RunFinished{Usage: usage}, "r", "n"),
		root(&narad.RunError{Usage: usage}), placed(&narad.RunError{Usage: usage}, "r", "n"), root(&narad.RunCancelled{Usage: usage}),
		placed(&narad.RunCancelled{}, "r", "n"), root(&narad.InterruptRequested{Kind: "question"}), root(&narad.InterruptResolved{}),
		root(&narad.ToolCallStarted{}), root(&narad.ToolCallFinished{}), root(&narad.MessageUserRecorded{}), root(&narad.MessageTextStarted{}),
		root(&narad.MessageTextDelta{}), root(&narad.MessageTextCompleted{}), root(&narad.MessageRedacted{}), root(&narad.ReasoningStarted{}),
		root(&narad.ReasoningDelta{}), root(&narad.ReasoningCompleted{}), root(&narad.ProgressRecorded{}),
		root(&narad.StateSnapshot{Kind: narad.TypeStateSnapshot}), root(&narad.StateDelta{Kind: narad.TypeStateDelta}),
		root(&narad.StateSnapshot{Kind: narad.TypeUIStateSnapshot}), root(&narad.StateDelta{Kind: narad.TypeUIStateDelta}),
		root(&narad.StateCompacted{}), root(&narad.ViewOpened{}), root(&narad.ViewUpdated{}), root(&narad.ViewClosed{}),
		root(&narad.Artifact{Kind: narad.TypeArtifactAdded}), root(&narad.Artifact{Kind: narad.TypeArtifactReady}),
		root(&narad.Artifact{Kind: narad.TypeArtifactFailed}), root(&narad.Attachment{Kind: narad.TypeAttachmentReady}),
		root(&narad.Custom{Kind: narad.TypeRunCustom, Name: "a.b"}), root(&narad.Opaque{Kind: narad.TypeRunRaw}),
		placed(withdrawn, "", ""), root(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted}), root(&narad.Tracing{Kind: narad.TypeDebugLog}),
	}
}
