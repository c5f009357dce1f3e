package session_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// rounds is how many traces of each kind are compared. MAHATI_MODEL_ROUNDS raises it.
func rounds(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv("MAHATI_MODEL_ROUNDS")
	if text == "" {
		return 40
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("MAHATI_MODEL_ROUNDS = %q: %v", text, err)
	}
	return n
}

// profileSets are the profiles that some client has not negotiated.
var profileSets = []narad.Profile{
	0, 0, 0,
	narad.Conversation | narad.Graph,
	narad.Workflow,
	narad.Workflow | narad.Extensions,
	narad.AllProfiles,
	narad.Progress | narad.StateProfile | narad.Workspace,
}

func TestStateAgreesWithModel(t *testing.T) {
	kinds := []struct {
		name  string
		trace func(*rand.Rand, *sessiontest.Model) [][]byte
	}{
		{"valid", func(r *rand.Rand, _ *sessiontest.Model) [][]byte { return sessiontest.Trace(r, 80) }},
		{"mutated", func(r *rand.Rand, _ *sessiontest.Model) [][]byte {
			return sessiontest.Mutate(r, sessiontest.Trace(r, 80))
		}},
		{"wild", func(r *rand.Rand, m *sessiontest.Model) [][]byte { return sessiontest.Wild(r, m, 60) }},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			for seed := range rounds(t) {
				for _, strict := range []bool{true, false} {
					rng := rand.New(rand.NewSource(seed))
					without := profileSets[rng.Intn(len(profileSets))]
					id := []string{"", "s-1"}[rng.Intn(2)]
					lines := kind.trace(rng, sessiontest.NewModel(strict, without, id))
					c := comparison{strict, without, id}
					if d := c.run(lines); d != "" {
						t.Fatalf("%s: seed %d, strict %v, without %v, session %q: %s", kind.name, seed, strict, without.IDs(), id, d)
					}
				}
			}
		})
	}
}

// comparison is one pair of readers.
type comparison struct {
	strict    bool
	without   narad.Profile
	sessionID string
}

func (c comparison) state() *session.State {
	return session.New(session.Options{SessionID: c.sessionID, Without: c.without, Remember: session.RememberAll})
}

// run puts lines to both and returns the first difference. Snapshots are compared at
// the end, and the line that parted them is found by comparing earlier ones.
func (c comparison) run(lines [][]byte) string {
	model, state := sessiontest.NewModel(c.strict, c.without, c.sessionID), c.state()
	for i, line := range lines {
		want := model.Apply(line)
		r := state.ApplyJSON(line, c.strict)
		got := sessiontest.Verdict{Result: r.Kind.String(), Code: string(r.Code)}
		if got != want {
			return fmt.Sprintf("line %d: got %v (%s), want %v\n%s", i+1, got, r.Detail, want, story(lines[:i+1]))
		}
	}
	d := difference(state.SnapshotJSON(), model)
	if d == "" {
		return ""
	}
	for i := range lines {
		if d := c.snapshotAfter(lines[:i]); d != "" {
			return fmt.Sprintf("after line %d: snapshot %s\n%s", i, d, story(lines[:i]))
		}
	}
	return fmt.Sprintf("after the last line: snapshot %s\n%s", d, story(lines))
}

func (c comparison) snapshotAfter(lines [][]byte) string {
	model, state := sessiontest.NewModel(c.strict, c.without, c.sessionID), c.state()
	for _, line := range lines {
		model.Apply(line)
		state.ApplyJSON(line, c.strict)
	}
	return difference(state.SnapshotJSON(), model)
}

// difference compares a snapshot with the model's.
func difference(snapshot []byte, model *sessiontest.Model) string {
	v, err := sessiontest.Parse(snapshot)
	if err != nil {
		return fmt.Sprintf("is no JSON: %v\n%s", err, snapshot)
	}
	got, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprintf("is no object: %s", snapshot)
	}
	return sessiontest.Diff(got, model.Snapshot())
}

// story returns the last lines of a trace.
func story(lines [][]byte) string {
	const enough = 400
	if len(lines) > enough {
		lines = lines[len(lines)-enough:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// What a host may append is never refused, whatever a reader has not negotiated: a rule
// about something that the reader cannot know is not kept by it.
func TestNoProfileIsMissed(t *testing.T) {
	for seed := range 12 * rounds(t) {
		rng := rand.New(rand.NewSource(seed))
		without := narad.Profile(1 << (seed % 12))
		if seed >= 12 {
			without |= narad.Profile(rng.Intn(int(narad.AllProfiles) + 1))
		}
		lines := sessiontest.Trace(rng, 80)
		if bytes.Contains(lines[0], []byte(`"messages.snapshot"`)) {
			without &^= narad.Conversation // who does not see what the snapshot covers has a gap there
		}
		for _, strict := range []bool{true, false} {
			state := comparison{strict: strict, without: without}.state()
			for i, line := range lines {
				if r := state.ApplyJSON(line, strict); r.Refused() {
					t.Fatalf("seed %d, strict %v, without %v, line %d: got %v %s (%s), want no refusal\n%s",
						seed, strict, without.IDs(), i+1, r.Kind, r.Code, r.Detail, story(lines[:i+1]))
				}
			}
		}
	}
}

// A state that has applied a beginning and then the rest, with its snapshot taken in
// between, is the state that has applied everything at once.
func TestPrefixAndRestAreTheWhole(t *testing.T) {
	for seed := range rounds(t) {
		rng := rand.New(rand.NewSource(seed))
		lines := sessiontest.Mutate(rng, sessiontest.Trace(rng, 100))
		for _, strict := range []bool{true, false} {
			c := comparison{strict: strict}
			whole := c.state()
			for _, line := range lines {
				whole.ApplyJSON(line, strict)
			}
			k := rng.Intn(len(lines) + 1)
			parts := c.state()
			for i, line := range lines {
				if i == k {
					parts.SnapshotJSON()
				}
				parts.ApplyJSON(line, strict)
			}
			if got, want := parts.SnapshotJSON(), whole.SnapshotJSON(); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, strict %v, split at %d:\ngot  %s\nwant %s\n%s", seed, strict, k, got, want, story(lines))
			}
		}
	}
}
