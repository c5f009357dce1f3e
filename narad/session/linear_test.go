package session_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad/session"
)

// work is what one turn of the linear histories opens and closes again; @ is the
// number of the turn.
var work = []string{
	"tool.call.started run=r1 tool=t@",
	"message.text.started run=r1 msg=m@",
	"message.text.delta run=r1 msg=m@ text=hello",
	"message.text.completed run=r1 msg=m@",
	"reasoning.started run=r1 reasoning=g@",
	"reasoning.delta run=r1 reasoning=g@",
	"reasoning.completed run=r1 reasoning=g@",
	"progress.recorded run=r1 progress=p@",
	"progress.recorded run=r1 progress=p@ status=completed",
	"run.started run=c@ root=r1 parent=r1 parentTool=t@",
	"tool.call.started run=c@ root=r1 tool=u@",
	"interrupt.requested run=c@ root=r1 int=i@ wait=w@",
	"run.paused run=c@ root=r1 int=i@ wait=w@",
	"interrupt.resolved run=c@ root=r1 int=i@ wait=w@",
	"run.resumed run=c@ root=r1 wait=w@",
	"tool.call.finished run=c@ root=r1 tool=u@",
	"run.finished run=c@ root=r1",
	"tool.call.finished run=r1 tool=t@",
	"session.custom",
	"session.revision rev=999999999",
}

// Stand-ins for numbers: of the session, of the run tree, of the turn.
const (
	anySequence = 777777777
	anyTree     = 888888888
	anyTurn     = 999999999
)

// A writer makes the turns of a history in which everything is accepted, without
// looking at any state. It composes each line of work once, since what is to be
// measured is not the writing.
type writer struct {
	templates  []string
	last, tree int // of what is written
}

// newWriter returns a writer that has written firstLine.
func newWriter(t *testing.T) *writer {
	t.Helper()
	w := &writer{last: 1, tree: 1}
	p := newPlayer(session.Options{}, true)
	p.last, p.trees["r1"] = anySequence-1, anyTree-1
	for i, text := range work {
		line, err := p.compose(text + " id=e@." + strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		w.templates = append(w.templates, string(line))
	}
	return w
}

// turn returns the lines of the n-th turn.
func (w *writer) turn(n int) [][]byte {
	lines := make([][]byte, len(w.templates))
	for i, template := range w.templates {
		if strings.Contains(template, strconv.Itoa(anySequence)) {
			w.last++
		}
		if strings.Contains(template, strconv.Itoa(anyTree)) {
			w.tree++
		}
		lines[i] = []byte(strings.NewReplacer("@", strconv.Itoa(n), strconv.Itoa(anyTurn), strconv.Itoa(n),
			strconv.Itoa(anySequence), strconv.Itoa(w.last), strconv.Itoa(anyTree), strconv.Itoa(w.tree)).Replace(template))
	}
	return lines
}

// TestCostDoesNotGrow plays a long history of work that is all closed again, and
// holds that its end costs what its beginning did: as many allocations an event,
// and, where the display is off, the same state.
func TestCostDoesNotGrow(t *testing.T) {
	events := 100_000
	if os.Getenv("MAHATI_LONG") == "1" {
		events = 1_000_000
	}
	for _, c := range []struct {
		name    string
		options session.Options
		turns   int
	}{
		{"control", session.Options{NoDisplay: true}, events / len(work)},
		{"display", session.Options{}, events / len(work) / 4},
	} {
		t.Run(c.name, func(t *testing.T) { playTurns(t, c.options, c.turns) })
	}
}

// measure is what the state costs at one place of the history.
type measure struct {
	allocations float64 // of one turn
	snapshot    int     // bytes
	heap        uint64  // bytes, after a collection
}

func playTurns(t *testing.T, o session.Options, turns int) {
	t.Helper()
	s, w := session.New(o), newWriter(t)
	applyAll(t, s, [][]byte{firstLine()})
	var early, late measure
	for n := 1; n <= turns; n++ {
		switch n {
		case turns / 10:
			early, n = takeMeasure(t, s, w, n)
		case turns - turns/10:
			late, n = takeMeasure(t, s, w, n)
		}
		applyAll(t, s, w.turn(n))
	}
	t.Logf("an early turn of %d events: %+v; a late one: %+v", len(work), early, late)
	if late.allocations > early.allocations*1.1+2 {
		t.Errorf("a late turn allocates %.0f times, an early one %.0f", late.allocations, early.allocations)
	}
	if !o.NoDisplay {
		return
	}
	// Only the digits of the sequences may have grown.
	if late.snapshot > early.snapshot+64 {
		t.Errorf("the snapshot grew from %d to %d bytes though all work is closed", early.snapshot, late.snapshot)
	}
	if late.heap > early.heap+256<<10 {
		t.Errorf("the heap grew from %d to %d bytes though all work is closed", early.heap, late.heap)
	}
	runtime.KeepAlive(s)
}

func firstLine() []byte {
	return []byte(`{"type":"run.started","protocolVersion":"narad/v1","eventId":"e0","timestamp":"2026-08-05T00:00:00Z",` +
		`"sessionId":"s1","sessionSequence":1,"rootRunId":"r1","runId":"r1","sequence":1}`)
}

// takeMeasure plays some turns from the n-th on, and returns the next one's number.
func takeMeasure(t *testing.T, s *session.State, w *writer, n int) (measure, int) {
	t.Helper()
	const runs = 50
	turns := make([][][]byte, runs+1) // AllocsPerRun has one more, to warm up
	for i := range turns {
		turns[i] = w.turn(n + i)
	}
	next := 0
	allocations := testing.AllocsPerRun(runs, func() {
		for _, line := range turns[next] {
			s.ApplyJSON(line, true)
		}
		next++
	})
	m := measure{allocations: allocations, snapshot: len(s.SnapshotJSON())}
	turns = nil
	m.heap = heap()
	return m, n + runs + 1
}

func applyAll(t *testing.T, s *session.State, lines [][]byte) {
	t.Helper()
	for _, line := range lines {
		if r := s.ApplyJSON(line, true); r.Kind.String() != "applied" {
			t.Fatalf("%s\ngot %s", line, fmt.Sprint(r))
		}
	}
}
