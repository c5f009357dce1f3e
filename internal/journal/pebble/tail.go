package pebble

import (
	"errors"

	"github.com/mahati-host/mahati/internal/journal"
)

// tail is what the committer knows of the end of a session.
type tail struct {
	stream
	exists  bool
	deleted bool
	head    uint64
	hash    chainHash
	spans   *tracker
}

// maxTails is how many published tails are kept.
const maxTails = 8_192

func (t *tail) clone() *tail {
	own := *t
	own.spans = t.spans.clone()
	return &own
}

// tail gives the staged end of a session, the committer's own to change. It is
// kept only if the request that asked for it keeps it.
func (j *Journal) tail(session string) (*tail, error) {
	if t := j.staged.tails[session]; t != nil {
		return t.clone(), nil
	}
	if t := j.tails[session]; t != nil {
		return t.clone(), nil
	}
	t, err := loadTail(j.current.Load(), session)
	if err != nil {
		return nil, err
	}
	j.remember(session, t)
	return t.clone(), nil
}

// remember keeps a published tail, and the number of tails in bounds; which are
// forgotten does not matter, they are read again.
func (j *Journal) remember(session string, t *tail) {
	j.tails[session] = t
	for other := range j.tails {
		if len(j.tails) <= maxTails {
			return
		}
		delete(j.tails, other)
	}
}

// loadTail reads the end of a session. Its current spans mostly end in its last
// batch; those that do not are looked for.
func loadTail(v *view, session string) (*tail, error) {
	s, err := v.stream(session)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return &tail{stream: stream{session: session}, spans: newTracker(0)}, nil
	case errors.Is(err, journal.ErrDeleted):
		return &tail{stream: stream{session: session}, exists: true, deleted: true, spans: newTracker(0)}, nil
	case err != nil:
		return nil, err
	}
	t := &tail{stream: s, exists: true, spans: newTracker(s.sid)}
	last, err := v.lastBatch(s)
	if err != nil || last == nil {
		return t, err
	}
	t.head, t.hash = last.last(), last.hash()
	if err = t.loadSpans(v, last); errors.Is(err, journal.ErrDamaged) {
		t.spans, err = v.followAgain(s)
	}
	return t, err
}

// followAgain follows the spans of a session from its first fact on, for when its marks
// cannot be read.
func (v *view) followAgain(s stream) (*tracker, error) {
	spans := newTracker(s.sid)
	err := v.walk(s, 0, func(b *storedBatch) (bool, error) {
		for i := range b.records {
			spans.observe(&b.records[i], func(_, _ []byte) {}, func([]byte) {})
		}
		return true, nil
	})
	return spans, err
}

func (t *tail) loadSpans(v *view, last *storedBatch) error {
	stored, err := v.get(keyOf(tagCurrent, t.sid))
	if err == nil && stored != nil {
		t.spans.current, err = decodeCurrents(stored)
	}
	if err != nil {
		return damaged(t.session, 0, err)
	}
	for i, kind := range spanKinds {
		sp := span{kind, t.spans.current[i]}
		if sp.id == "" {
			continue
		}
		if err := t.loadSpan(v, sp, last); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) loadSpan(v *view, sp span, last *storedBatch) error {
	for i := len(last.records) - 1; i >= 0; i-- {
		for _, place := range spansOf(&last.records[i]) {
			if place.span != sp {
				continue
			}
			mark, _, _, err := v.markBefore(t.stream, sp, lastMark)
			t.spans.ends[sp] = spanEnd{number: place.last, mark: mark}
			return err
		}
	}
	end, err := v.spanEnd(t.stream, sp)
	t.spans.ends[sp] = end
	return err
}

// end is how far a span of the session has come.
func (t *tail) end(v *view, sp span) (spanEnd, error) {
	if end, known := t.spans.ends[sp]; known {
		return end, nil
	}
	if t.head == 0 {
		return spanEnd{}, nil
	}
	end, err := v.spanEnd(t.stream, sp)
	if errors.Is(err, journal.ErrDamaged) {
		var spans *tracker
		if spans, err = v.followAgain(t.stream); err == nil {
			end = spans.ends[sp]
		}
	}
	if err == nil {
		t.spans.ends[sp] = end
	}
	return end, err
}
