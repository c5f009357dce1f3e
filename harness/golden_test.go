package harness_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/harness/harnesstest"
	"github.com/mahati-host/mahati/narad"
)

// writeGolden writes the logs of facts that have none yet. One that is there is for ever:
// other bytes are another mapping, in a directory of its own (R1, R35).
var writeGolden = flag.Bool("golden", false, "write the golden logs that are missing")

// The facts of mapping 1 become the logs that they became when it was made.
func TestGoldenLogs(t *testing.T) {
	files, err := filepath.Glob("testdata/mapping1/*.facts.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden facts: %v", err)
	}
	covered := map[harness.Type]bool{}
	for _, file := range files {
		got := deriveFile(t, file, covered)
		golden := strings.TrimSuffix(file, ".facts.jsonl") + ".log.jsonl"
		want, err := os.ReadFile(golden)
		if os.IsNotExist(err) && *writeGolden {
			want, err = got, os.WriteFile(golden, got, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", golden, got, want)
		}
	}
	for _, kind := range []harness.Type{
		harness.RunStarted, harness.RunCompleted, harness.MessageStarted, harness.MessageDelta, harness.MessageCompleted,
		harness.UIBlock, harness.ToolStarted, harness.ToolCompleted, harness.PlanUpdated, harness.ApprovalRequested,
		harness.ApprovalResolved, harness.ArtifactPublished, harness.ErrorReported, harness.UsageReported, harness.RunCanceled,
		harness.Checkpointed, harness.SubrunStarted, harness.SubrunCompleted, harness.ReasoningStarted,
		harness.ReasoningDelta, harness.ReasoningCompleted,
	} {
		if !covered[kind] {
			t.Errorf("no golden log has a record of %s", kind)
		}
	}
}

// deriveFile makes the logs of a file of facts, one after another in the order of their
// beginnings.
func deriveFile(t *testing.T, file string, covered map[harness.Type]bool) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []narad.Authority
	for line := range bytes.Lines(data) {
		rec, err := narad.Decode(line)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, line)
		}
		list = append(list, rec.(narad.Authority))
	}
	signer := harness.NewSigner([32]byte{1, 2, 3}, "golden")
	logs, err := harnesstest.Derive(list, signer.Cursor)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var lines []byte
	for _, fact := range list {
		run, err := harness.RunOf(fact)
		if err != nil || logs[run.ID] == nil {
			continue
		}
		for _, e := range logs[run.ID] {
			covered[e.Type] = true
			line, err := harness.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, line...), '\n')
		}
		if faults := harnesstest.Faults(run.ID, logs[run.ID], true); len(faults) > 0 {
			t.Errorf("%s, run %s: %s", file, run.ID, strings.Join(faults, "\n"))
		}
		delete(logs, run.ID)
	}
	return lines
}
