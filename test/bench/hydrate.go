package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// hydrateSizes are the facts of the sessions that hydrate records are derived from.
var hydrateSizes = [2]int{100_000, 1_000_000}

// measureHydrate derives hydrate records from short and long sessions: their cost must be
// that of their facts, and no more memory than what they show.
func measureHydrate(b *bench) (lines []line, err error) {
	for _, subject := range []struct {
		name   string
		derive func(*told) (kept any, err error)
	}{
		{"messages.snapshot", deriveMessages},
		{"graph", deriveGraph},
	} {
		var rates [len(hydrateSizes)]float64
		var heap uint64
		for i, size := range hydrateSizes {
			if rates[i], heap, err = rateOf(b, size, subject.derive); err != nil {
				return lines, err
			}
		}
		against := fmt.Sprintf("%d facts: %.0f facts/s, %d facts: %.0f facts/s, heap %d MB", hydrateSizes[0], rates[0], hydrateSizes[1], rates[1], heap>>20)
		lines = append(lines, atLeast(subject.name+", speed of a long session by that of a short one", rates[1]/rates[0], 0.7, against, "decoding JSON"))
	}
	return lines, nil
}

// rateOf is how many facts a second a derivation takes, and what it holds at the end.
func rateOf(b *bench, size int, derive func(*told) (any, error)) (perSecond float64, heap uint64, err error) {
	if b.ctx.Err() != nil {
		return 0, 0, b.ctx.Err()
	}
	before := heapNow()
	begun := time.Now()
	kept, err := derive(&told{left: size})
	if err != nil {
		return 0, 0, err
	}
	perSecond = float64(size) / time.Since(begun).Seconds()
	heap = heapNow() - min(before, heapNow())
	runtime.KeepAlive(kept)
	return perSecond, heap, nil
}

func heapNow() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func deriveMessages(in *told) (any, error) {
	state := session.New(session.Options{})
	for in.next() {
		if got := state.ApplyJSON(in.line, false); got.Kind != session.Applied {
			return nil, fmt.Errorf("fact %d: %s %s", in.sequence, got.Kind, got.Code)
		}
	}
	return [2]any{state, state.Messages()}, nil
}

func deriveGraph(in *told) (any, error) {
	state := graph.New("s", graph.RunTree("r"))
	for in.next() {
		rec, err := narad.Decode(in.line)
		if err != nil {
			return nil, err
		}
		if _, err := state.Apply(rec.(narad.Authority)); err != nil {
			return nil, err
		}
	}
	return [2]any{state, state.Snapshot()}, nil
}

// told is one run that says something and calls a tool, over and over: its facts, one
// after the other.
type told struct {
	left     int
	sequence int
	line     []byte
}

// turnOf are the types of one turn, with the fields of each; %d is the number of the turn.
var turnOf = []string{
	`"type":"message.text.started","messageId":"m%d","role":"assistant","messageScope":"session"`,
	`"type":"message.text.delta","messageId":"m%d","delta":"some words of an answer, "`,
	`"type":"message.text.delta","messageId":"m%d","delta":"and a few more of them, "`,
	`"type":"message.text.delta","messageId":"m%d","delta":"up to the end."`,
	`"type":"message.text.completed","messageId":"m%d"`,
	`"type":"tool.call.started","toolCallId":"t%d","toolName":"read","executor":"backend","args":{"path":"a/file"}`,
	`"type":"progress.recorded","progressId":"p","category":"phase","label":"Reading %d","status":"active","privacy":"public"`,
	`"type":"tool.call.finished","toolCallId":"t%d","outcome":"success","response":{"bytes":4096}`,
}

func (f *told) next() bool {
	if f.sequence == f.left {
		return false
	}
	f.sequence++
	what := `"type":"run.started"`
	if turn := f.sequence - 2; turn >= 0 {
		what = fmt.Sprintf(turnOf[turn%len(turnOf)], turn/len(turnOf))
	}
	f.line = fmt.Appendf(f.line[:0], `{"protocolVersion":"narad/v1","eventId":"%d.abcdefgh","timestamp":"2026-08-05T00:00:00Z","sessionId":"s","sessionSequence":%d,"rootRunId":"r","runId":"r","sequence":%d,%s}`,
		f.sequence, f.sequence, f.sequence, what)
	return true
}
