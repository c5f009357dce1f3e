package pebble

import (
	"encoding/binary"
	"maps"

	"github.com/mahati-host/mahati/internal/journal"
)

// A run tree, a workflow and a log are spans of their session: a session runs
// one tree at a time, so the facts of one are close together. They are found by
// marks, not by a key each: a mark leads from a number of the span to the
// session sequence that has it. One is written where a span becomes the current
// one of its kind and then every markEvery numbers; when another span takes its
// place, a last mark (number lastMark) says where reading may stop. A session in
// which spans take turns is served too, it only has more marks.

const (
	markEvery = 256
	lastMark  = ^uint64(0)
)

type spanKind byte

const (
	spanRun      spanKind = 'r'
	spanWorkflow spanKind = 'w'
	spanLog      spanKind = 'h'
)

var spanKinds = [...]spanKind{spanRun, spanWorkflow, spanLog}

type span struct {
	kind spanKind
	id   string
}

// spanEnd is how far a span has come.
type spanEnd struct {
	number uint64 // the last number given
	mark   uint64 // the number of its newest mark
}

// spansOf are the spans that a fact is in, with its first and last number there.
// A log number is not known before the fact is numbered.
func spansOf(r *journal.Record) [3]struct {
	span
	first, last uint64
} {
	type place = struct {
		span
		first, last uint64
	}
	return [3]place{
		{span{spanRun, r.RootRunID}, r.RunSequence, r.RunSequence},
		{span{spanWorkflow, r.WorkflowID}, r.WorkflowSequence, r.WorkflowSequence},
		{span{spanLog, r.LogRun}, r.FirstLog, r.FirstLog + uint64(r.LogCount) - 1},
	}
}

// currents are the current spans of a session by place in spanKinds.
type currents [len(spanKinds)]string

// tracker follows the spans of one session fact by fact and says which marks
// to write. It depends on the facts alone, so that verify can follow again.
type tracker struct {
	sid     uint64
	current currents
	// ends has every span that was touched since the tracker was loaded, the
	// current ones always.
	ends map[span]spanEnd
}

func newTracker(sid uint64) *tracker { return &tracker{sid: sid, ends: map[span]spanEnd{}} }

func (t *tracker) clone() *tracker {
	return &tracker{sid: t.sid, current: t.current, ends: maps.Clone(t.ends)}
}

// prune forgets all but the current spans.
func (t *tracker) prune() {
	maps.DeleteFunc(t.ends, func(s span, _ spanEnd) bool {
		for i, kind := range spanKinds {
			if s.kind == kind && s.id == t.current[i] {
				return false
			}
		}
		return true
	})
}

// observe takes the next fact. The end of each of its spans must be in ends.
func (t *tracker) observe(r *journal.Record, write func(key, value []byte), remove func(key []byte)) {
	switched := false
	for i, place := range spansOf(r) {
		if place.id == "" {
			continue
		}
		end := t.ends[place.span]
		if t.current[i] != place.id {
			if before := (span{place.kind, t.current[i]}); before.id != "" {
				write(markKey(t.sid, before, lastMark), markValue(r.Sequence))
			}
			if end.number > 0 {
				remove(markKey(t.sid, place.span, lastMark))
			}
			t.current[i], switched = place.id, true
			end.mark = 0
		}
		if end.mark == 0 || place.first >= end.mark+markEvery {
			write(markKey(t.sid, place.span, place.first), markValue(r.Sequence))
			end.mark = place.first
		}
		end.number = place.last
		t.ends[place.span] = end
	}
	if switched {
		write(keyOf(tagCurrent, t.sid), t.current.encode())
	}
}

// markPrefix is the start of all marks of a span.
func markPrefix(sid uint64, s span) []byte {
	key := append(keyOf(tagMark, sid), byte(s.kind))
	return append(append(key, s.id...), 0)
}

func markKey(sid uint64, s span, number uint64) []byte {
	return binary.BigEndian.AppendUint64(markPrefix(sid, s), number)
}

func markValue(sequence uint64) []byte { return binary.AppendUvarint(nil, sequence) }

func decodeMark(value []byte) (sequence uint64, err error) {
	d := &decoder{buf: value}
	return d.number(), d.err
}

func (c currents) encode() []byte {
	var buf []byte
	for _, id := range c {
		buf = appendText(buf, id)
	}
	return buf
}

func decodeCurrents(value []byte) (c currents, err error) {
	d := &decoder{buf: value}
	for i := range c {
		c[i] = d.text()
	}
	return c, d.err
}
