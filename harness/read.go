package harness

import (
	"bytes"
	"io"
	"strconv"
)

// Reader reads a log, record by record, as the public implementation does: what it takes
// and what it refuses are the same, in memory that does not grow with the log. It does not
// look at payloads; a [Reducer] does.
type Reader struct {
	in    *parser
	order order
	err   error
}

// NewReader returns a reader of a log of JSON lines.
func NewReader(in io.Reader) *Reader { return &Reader{in: newParser(in)} }

// Next returns the next record, whose envelope is valid and which is the next of its run,
// or io.EOF after the last one. After an error it returns only that error.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	event, refusal := r.in.next()
	if refusal == nil {
		if refusal = r.order.take(event); refusal != nil {
			refusal.Line = r.in.lines.n
		}
	}
	switch {
	case refusal == endOfLog:
		r.err = io.EOF
	case refusal != nil:
		r.err = refusal
	default:
		whole := *event
		whole.Payload = bytes.Clone(event.Payload)
		return whole, nil
	}
	return Event{}, r.err
}

// Line returns the number of the line that was read last, from 1.
func (r *Reader) Line() int { return r.in.lines.n }

// parser reads the envelopes of a log without judging them.
type parser struct {
	lines *lines
	decoder
}

func newParser(in io.Reader) *parser { return &parser{lines: newLines(in)} }

// next returns the next envelope, valid until the following call, or endOfLog.
func (p *parser) next() (*Event, *Error) {
	line, refusal := p.lines.next()
	if refusal != nil {
		return nil, refusal
	}
	event, refusal := p.event(line)
	if refusal != nil {
		refusal.Line = p.lines.n
	}
	return event, refusal
}

// order holds the records of a log to one run and to sequences from 1 without a gap.
type order struct {
	run  string
	last uint64
}

// take accepts a record if it is sound and the next one.
func (o *order) take(event *Event) *Error {
	if refusal := event.validate(); refusal != nil {
		return refusal
	}
	if o.last > 0 && event.RunID != o.run {
		return (&Error{Code: CodeOrder, Field: "run_id", Expected: o.run, Rule: "a log has the records of one run"}).of(event)
	}
	if event.Sequence != o.last+1 {
		return (&Error{
			Code: CodeOrder, Field: "sequence", Expected: strconv.FormatUint(o.last+1, 10), Rule: "sequences count from 1 without a gap",
		}).of(event)
	}
	o.run, o.last = event.RunID, event.Sequence
	return nil
}

// Project reads a whole log and reduces it. As in the public implementation a line that
// cannot be read is told before a record that cannot be applied, wherever they stand: after
// such a record the rest is read for its lines alone.
func Project(in io.Reader, sight Sight) (*Reducer, error) {
	p, r := newParser(in), NewReducer(sight)
	var broken *Error
	for {
		event, refusal := p.next()
		switch {
		case refusal == endOfLog && broken != nil:
			return nil, broken
		case refusal == endOfLog:
			return r, nil
		case refusal != nil:
			return nil, refusal
		case broken != nil:
			continue
		}
		r.line = p.lines.n
		if broken = r.apply(event); broken != nil {
			broken.Line = p.lines.n
			r = nil
		}
	}
}
