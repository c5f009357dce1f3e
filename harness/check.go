package harness

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strconv"
)

// Summary is what a strict reading found.
type Summary struct {
	// Lines were read, Records of them could be.
	Lines   uint64 `json:"lines"`
	Records uint64 `json:"records"`
	// Sequence is the highest that was read.
	Sequence   uint64 `json:"sequence"`
	Violations uint64 `json:"violations"`
	Notes      uint64 `json:"notes"`
}

// Check reads a log by the rules of the page and, where it is silent, by ours, all of which
// docs/harness.md lists. It calls found with each violation and note, in the order of the
// lines, and goes on after it. Its error is found's, which ends the reading, or of the class
// CodeIO.
//
// Beside one line it keeps 16 bytes of each event_id, and the ids of messages, calls and
// approvals.
func Check(in io.Reader, found func(Finding) error) (Summary, error) {
	c := &checker{lines: newLines(in), found: found, ids: map[[16]byte]struct{}{}}
	for c.stopped == nil {
		line, refusal := c.lines.next()
		switch {
		case refusal == endOfLog:
			c.end()
			return c.summary, c.stopped
		case refusal != nil && refusal.Code == CodeIO:
			return c.summary, refusal
		}
		c.summary.Lines++
		if refusal != nil {
			c.unread++
			c.violation(refusal)
			continue
		}
		c.line(line)
	}
	return c.summary, c.stopped
}

// checker is the state of a strict reading.
type checker struct {
	lines *lines
	decoder
	found   func(Finding) error
	stopped error // what found said last
	summary Summary

	event  *Event // the record that is judged
	run    string
	unread uint64 // lines since the last record that could not be read
	ids    map[[16]byte]struct{}

	phase      phase
	last       Type // of the record before
	canceledBy Type // the record before run.canceled
	messages   map[string]progress
	tools      map[string]progress
	approvals  map[string]*asked
	hiddenAsks int      // approvals whose request was redacted
	lacking    []string // required fields that the payload which is judged lacks
}

// phase is how far a run is.
type phase int

const (
	expected phase = iota
	running
	completed
	canceled
)

// progress is how far a message or a tool call is.
type progress int

const (
	open progress = iota + 1
	closed
)

// asked is an approval.
type asked struct {
	scope   string
	pending bool
}

// violation reports a broken rule of the record that is judged.
func (c *checker) violation(what *Error) {
	c.summary.Violations++
	c.report(Finding{Error: what})
}

func (c *checker) note(what *Error) {
	c.summary.Notes++
	c.report(Finding{Note: true, Error: what})
}

func (c *checker) report(f Finding) {
	if c.stopped != nil {
		return
	}
	if c.event != nil {
		f.of(c.event)
	}
	if f.Line == 0 {
		f.Line = c.lines.n
	}
	c.stopped = c.found(f)
}

// line judges one line.
func (c *checker) line(line []byte) {
	c.event = nil
	if !c.text(line) {
		c.unread++
		return
	}
	event, refusal := c.decoder.event(line)
	if refusal != nil {
		c.unread++
		c.violation(refusal)
		return
	}
	c.event = event
	if c.slow {
		c.folded("", line, eventFields)
	}
	c.summary.Records++
	if c.envelope() && c.position() {
		c.lifecycle()
		c.payload()
		c.last = event.Type
	}
	c.event = nil
}

// envelope judges the fields of the record by themselves. Without its run, sequence and
// type there is nothing more to judge.
func (c *checker) envelope() bool {
	e := c.event
	for _, rule := range envelopeRules {
		if rule.broken(e) {
			c.violation(rule.refusal(e))
		}
	}
	if e.RunID == "" || e.Sequence == 0 || e.Type == "" {
		c.unread++
		return false
	}
	if e.Sensitivity != Public && e.Sensitivity != Private && e.Sensitivity != Secret {
		c.violation(&Error{Code: CodeSensitivity, Field: "sensitivity", Rule: "a record is public, private or secret"})
	}
	return true
}

// position judges the record's place in the log. Records of other runs, and ones that come
// again, are judged no further.
func (c *checker) position() bool {
	e := c.event
	if c.run == "" {
		c.run = e.RunID
	}
	if e.RunID != c.run {
		c.violation(&Error{Code: CodeOrder, Field: "run_id", Expected: c.run, Rule: "a log has the records of one run"})
		return false
	}
	next := c.summary.Sequence + 1
	missing := e.Sequence - next // lines that could not be read may have held these
	if e.Sequence < next || missing > c.unread {
		c.violation(&Error{Code: CodeOrder, Field: "sequence", Expected: strconv.FormatUint(next, 10), Rule: "sequences count from 1 without a gap"})
	}
	c.unread = 0
	if e.EventID != "" {
		c.unique(e.EventID)
	}
	if e.Sequence < next {
		return false
	}
	c.summary.Sequence = e.Sequence
	return true
}

// unique judges an event_id by a part of its hash: of a billion ids one pair in 10^20 logs
// has it in common.
func (c *checker) unique(id string) {
	sum := sha256.Sum256([]byte(id))
	key := [16]byte(sum[:16])
	if _, known := c.ids[key]; known {
		c.violation(&Error{Code: CodeEventID, Field: "event_id", Rule: "an event_id is unique in its run"})
	}
	c.ids[key] = struct{}{}
}

// lifecycle judges whether a record of this type may stand here.
func (c *checker) lifecycle() {
	kind := c.event.Type
	wrong := func(code Code, rule string) { c.violation(&Error{Code: code, Field: "type", Rule: rule}) }
	switch {
	case c.phase == canceled && kind == RunCanceled:
		wrong(CodeLifecycle, "a run is canceled once")
	case c.phase == canceled && kind != Checkpointed:
		wrong(CodeCanceled, "after run.canceled only a checkpoint may follow")
	case c.phase == completed && kind != Checkpointed:
		wrong(CodeLifecycle, "after run.completed only a checkpoint may follow")
	case c.phase == running && kind == RunStarted:
		wrong(CodeLifecycle, "a run starts once")
	case c.phase == expected && kind != RunStarted && kind != RunCanceled && c.summary.Sequence == 1:
		wrong(CodeLifecycle, "a log begins with run.started, or with run.canceled where the run never started")
	}
	switch {
	case c.phase >= completed:
	case kind == RunCompleted:
		c.phase = completed
	case kind == RunCanceled:
		c.phase, c.canceledBy = canceled, c.last
	default:
		c.phase = running
	}
}

// end judges how the log ends.
func (c *checker) end() {
	switch {
	case c.phase == canceled && c.last != Checkpointed && c.canceledBy == Checkpointed:
		c.note(&Error{Code: CodeTerminal, Rule: "the final checkpoint stands before run.canceled; the page has it after"})
	case c.phase == canceled && c.last != Checkpointed:
		c.violation(&Error{Code: CodeTerminal, Rule: "a canceled run ends with a checkpoint"})
	case c.phase < completed:
		c.note(&Error{Code: CodeTerminal, Rule: "the log ends before its run does"})
	}
	if c.phase < completed {
		return
	}
	for _, left := range []struct {
		n    int
		what string
	}{
		{waiting(c.approvals, func(a *asked) bool { return a.pending }), "approvals wait for a decision"},
		{waiting(c.messages, func(p progress) bool { return p == open }), "messages are not completed"},
		{waiting(c.tools, func(p progress) bool { return p == open }), "tool calls are not completed"},
	} {
		if left.n > 0 {
			c.note(&Error{Code: CodeLifecycle, Rule: "the run has ended and " + strconv.Itoa(left.n) + " of its " + left.what})
		}
	}
}

func waiting[T any](all map[string]T, is func(T) bool) (n int) {
	for _, value := range all {
		if is(value) {
			n++
		}
	}
	return n
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
