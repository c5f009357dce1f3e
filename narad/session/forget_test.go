package session_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad/session"
)

// TestNothingOfAnEndedExecutionIsKept plays one workflow after the other, each with a run
// and with states of both, and holds that a state of open work costs the same behind each.
func TestNothingOfAnEndedExecutionIsKept(t *testing.T) {
	p := newPlayer(session.Options{NoDisplay: true}, true)
	var first string
	for n := range 3 {
		for _, text := range []string{
			"workflow.started wf=w@",
			"state.snapshot scope=workflow wf=w@ rev=1",
			"ui.state.snapshot scope=workflow wf=w@ rev=1",
			"run.started run=r@ wf=w@",
			"state.snapshot scope=run run=r@ wf=w@ rev=1",
			"ui.state.snapshot scope=run run=r@ wf=w@ rev=1",
			"run.finished run=r@ wf=w@",
			"workflow.finished wf=w@",
		} {
			mustPlay(t, p, strings.ReplaceAll(text, "@", strconv.Itoa(n)), "applied")
		}
		place := fmt.Sprintf(`"Last":%d,`, p.state.Last())
		kept := strings.Replace(string(p.state.EncodeControl()), place, "", 1)
		if first == "" {
			first = kept
		}
		if kept != first {
			t.Fatalf("behind workflow %d the open work is\n%s\nbehind the first it was\n%s", n, kept, first)
		}
	}
}

// TestStateDoesNotHoldOnToRecords: what a state keeps of a record is not the whole record,
// of which all its strings are parts.
func TestStateDoesNotHoldOnToRecords(t *testing.T) {
	const states, size = 40, 400_000
	line := []byte(fmt.Sprintf(`{"type":"session.custom","protocolVersion":"narad/v1","eventId":"e2","timestamp":"2026-08-05T00:00:00Z",`+
		`"sessionId":"s1","sessionSequence":2,"name":"a.b","value":"%s"}`, strings.Repeat("x", size)))
	before := heap()
	kept := make([]*session.State, states)
	for i := range kept {
		kept[i] = session.New(session.Options{NoDisplay: true})
		applyAll(t, kept[i], [][]byte{firstLine(), line})
	}
	if grown := int64(heap()) - int64(before); grown > states*size/4 {
		t.Errorf("%d states hold %d bytes behind a record of %d", states, grown, len(line))
	}
	runtime.KeepAlive(kept)
}

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
