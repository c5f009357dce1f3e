package pebble

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mahati-host/mahati/internal/journal"
)

// planRows plans the index changes with the side keys of old and new rows.
func (j *Journal) planRows(p *plan, changes []journal.Change) error {
	if len(changes) == 0 {
		return nil
	}
	p.rows = make(map[journal.Key]journal.Row, len(changes))
	for i, c := range changes {
		if err := j.planRow(p, c); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
	}
	return nil
}

func (j *Journal) planRow(p *plan, c journal.Change) error {
	switch c := c.(type) {
	case journal.Put:
		return j.planPut(p, c.Row)
	case journal.Remove:
		return j.planRemove(p, c.Key)
	default:
		return fmt.Errorf("%w: change %T", journal.ErrInvalid, c)
	}
}

func (j *Journal) planPut(p *plan, row journal.Row) error {
	rowAt := func(key journal.Key) (journal.Row, error) { return j.plannedRow(p, key) }
	row, err := journal.CompleteRow(row, len(p.receipt.FirstLogs), p.receipt, rowAt)
	if err != nil {
		return err
	}
	key := row.Key()
	if err := j.planSides(p, key); err != nil {
		return err
	}
	sid, err := j.sidOf(p, key.Session)
	if err != nil {
		return err
	}
	p.set(rowKey(key, sid), journal.EncodeRow(row))
	owner, err := j.sidOf(p, journal.Owner(row))
	if err != nil {
		return err
	}
	for _, side := range sideKeys(row, owner) {
		p.set(side.key, side.value)
	}
	p.rows[key] = row
	return nil
}

func (j *Journal) planRemove(p *plan, key journal.Key) error {
	if err := j.planSides(p, key); err != nil {
		return err
	}
	sid, err := j.sidOf(p, key.Session)
	if err != nil {
		return err
	}
	p.remove(rowKey(key, sid))
	p.rows[key] = nil
	return nil
}

// planSides removes the side keys of the row that is there. Only rows of two
// kinds have any, so only those are read.
func (j *Journal) planSides(p *plan, key journal.Key) error {
	if key.Kind != journal.KindInterrupt && key.Kind != journal.KindTimer {
		return nil
	}
	old, err := j.plannedRow(p, key)
	if err != nil {
		return fmt.Errorf("row %s: %w", key, err)
	}
	if old == nil {
		return nil
	}
	owner, err := j.sidOf(p, journal.Owner(old))
	if err != nil {
		return err
	}
	for _, side := range sideKeys(old, owner) {
		p.remove(side.key)
	}
	return nil
}

// sidOf is the sid under which rows of a session are stored, 0 for no session.
func (j *Journal) sidOf(p *plan, session string) (uint64, error) {
	switch session {
	case "":
		return 0, nil
	case p.tail.session:
		return p.tail.sid, nil
	}
	t, err := j.tail(session)
	if err != nil {
		return 0, err
	}
	return t.sid, nil
}

// plannedRow is a row as the batch so far leaves it. A batch may write over a row that
// cannot be read, and makes it whole by that: see lostRow.
func (j *Journal) plannedRow(p *plan, key journal.Key) (journal.Row, error) {
	if row, planned := p.rows[key]; planned {
		return row, nil
	}
	row, err := j.rowAt(key)
	if errors.Is(err, journal.ErrDamaged) {
		switch key.Kind {
		case journal.KindInterrupt, journal.KindTimer:
			return j.current.Load().lostRow(key)
		case journal.KindWorkflow:
			return j.current.Load().lostWorkflow(p.tail.stream, key.ID)
		}
	}
	return row, err
}

// lostWorkflow is what the marks of a session tell of a workflow whose row cannot be read:
// where it began. It is nil where they have none.
func (v *view) lostWorkflow(s stream, id string) (journal.Row, error) {
	number, sequence, found, err := v.markBefore(s, span{spanWorkflow, id}, 2)
	if err != nil || !found || number != 1 {
		return nil, err
	}
	return journal.WorkflowRow{ID: id, Session: s.session, First: sequence}, nil
}

// lostRow is what the lists tell of an interrupt or timer whose row cannot be read: all
// but its value. It is nil where they have none.
func (v *view) lostRow(key journal.Key) (lost journal.Row, err error) {
	find := func(l *listing, row func(journal.Damage, []byte) journal.Row) error {
		return v.each(l.lower, func(at, _ []byte, _ error) error {
			if lost == nil && strings.HasSuffix(string(at), key.ID) { // else it costs too much to name each
				if d := l.name(v, at); d.Key == key {
					lost = row(d, at)
				}
			}
			return nil
		}, func(hole) {}) // what is left there leads to a row that has left
	}
	if key.Kind == journal.KindTimer {
		err = find(timersDue(), func(d journal.Damage, _ []byte) journal.Row {
			return journal.TimerRow{Session: key.Session, ID: key.ID, Due: d.Due}
		})
	} else {
		err = find(openInterrupts(), func(_ journal.Damage, at []byte) journal.Row {
			offset := numberAt(at, 1)
			s, sequence := v.factAt(offset)
			return journal.InterruptRow{ID: key.ID, Session: s.session, Sequence: sequence, Open: true, Offset: offset}
		})
	}
	if err != nil {
		return nil, damaged(key.Session, 0, fmt.Errorf("look for %s: %w", key, err))
	}
	return lost, nil
}

// rowAt is a row as the group so far leaves it.
func (j *Journal) rowAt(key journal.Key) (journal.Row, error) {
	if row, staged := j.staged.rows[key]; staged {
		return row, nil
	}
	var sid uint64
	if key.Session != "" {
		t, err := j.tail(key.Session)
		if err != nil {
			return nil, err
		}
		if !t.exists || t.deleted {
			return nil, nil
		}
		sid = t.sid
	}
	row, err := j.current.Load().row(key, sid)
	if err != nil {
		return nil, damaged(key.Session, 0, fmt.Errorf("%s: %w", key, err))
	}
	return row, nil
}
