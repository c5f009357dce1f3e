package pebble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// Row implements journal.Index.
func (j *Journal) Row(ctx context.Context, key journal.Key) (journal.Row, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	v, err := j.use(ctx)
	if err != nil {
		return nil, err
	}
	defer v.release()
	var sid uint64
	if key.Session != "" {
		s, err := v.stream(key.Session)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		sid = s.sid
	}
	row, err := v.row(key, sid)
	switch {
	case err != nil:
		return nil, damaged(key.Session, 0, fmt.Errorf("%s: %w", key, err))
	case row == nil:
		return nil, fmt.Errorf("%s: %w", key, journal.ErrNotFound)
	}
	return row, nil
}

// listing is how a list is read: a range of keys, and what each leads to.
type listing struct {
	lower, upper []byte
	backwards    bool
	// open gives the row that a key leads to. What it cannot give is damaged, and name says
	// what the key tells of it.
	open func(v *view, key, value []byte) (journal.Row, error)
	name func(v *view, key []byte) journal.Damage
	// elsewhere tells what stands in a hole.
	elsewhere elsewhere
	// kind is that of the rows; session that of the list, where all are of one.
	kind    journal.Kind
	session string
	// wanted, where it is set, says which rows the list has.
	wanted func(journal.Row) bool
}

// Rows implements journal.Index. Its cursor is the key of the last row.
func (j *Journal) Rows(ctx context.Context, list journal.List, page journal.RowPage) (journal.Rows, error) {
	v, err := j.use(ctx)
	if err != nil {
		return journal.Rows{}, err
	}
	defer v.release()
	l, err := v.listing(list)
	if err != nil {
		if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
			err = nil // a list of no session is empty
		}
		return journal.Rows{}, err
	}
	if err := l.resume(page.Cursor); err != nil {
		return journal.Rows{}, err
	}
	return l.read(ctx, v, page)
}

// resume starts behind a cursor, which must be a key of the list; or at the key, if it says
// so: behind a hole.
func (l *listing) resume(cursor string) error {
	if cursor == "" {
		return nil
	}
	text, at := strings.CutPrefix(cursor, cursorAt)
	key, err := hex.DecodeString(text)
	if err != nil || bytes.Compare(key, l.lower) < 0 || bytes.Compare(key, l.upper) >= 0 {
		return fmt.Errorf("%w: cursor %.40q", journal.ErrInvalid, cursor)
	}
	switch {
	case l.backwards:
		l.upper = key
	case at:
		l.lower = key
	default:
		l.lower = append(key, 0)
	}
	return nil
}

// cursorAt begins a cursor that is the edge of the next page: its first key, or, backwards, the
// one behind its first.
const cursorAt = "at-"

func (l *listing) cursorBehind(h hole) string {
	if l.backwards {
		return cursorAt + hex.EncodeToString(h.from)
	}
	return cursorAt + hex.EncodeToString(h.to)
}

// read gives a page. It goes on behind rows that are damaged, and behind holes.
func (l *listing) read(ctx context.Context, v *view, page journal.RowPage) (rows journal.Rows, err error) {
	limit := page.Clamped().Limit
	last := ""
	add := func(m member, cursor string) bool {
		if m.damage == nil && l.wanted != nil && !l.wanted(m.row) {
			return ctx.Err() == nil
		}
		if len(rows.Rows)+len(rows.Damaged) == limit {
			rows.Next = last
			return false
		}
		if m.damage != nil {
			rows.Damaged = append(rows.Damaged, *m.damage)
		} else {
			rows.Rows = append(rows.Rows, m.row)
		}
		last = cursor
		return true
	}
	err = v.scan(l.lower, l.upper, l.backwards, func(it *lsm.Iterator) (bool, error) {
		row, damage := l.entry(v, it)
		return add(member{row: row, damage: damage}, hex.EncodeToString(it.Key())), nil
	}, func(h hole) (bool, error) {
		more := true
		whole, err := l.elsewhere(ctx, v, l, h, func(m member) bool {
			more = add(m, hex.EncodeToString(m.key))
			return more
		})
		if err == nil && more && !whole {
			more = add(member{damage: l.lostIn(h)}, l.cursorBehind(h))
		}
		return more, err
	})
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return journal.Rows{}, err
	}
	return rows, nil
}

// entry gives the row to which the key leads that the iterator stands on, or says what is
// wrong with it.
func (l *listing) entry(v *view, it *lsm.Iterator) (journal.Row, *journal.Damage) {
	key := it.Key()
	value, err := valueAt(it)
	var row journal.Row
	if err == nil {
		row, err = l.open(v, key, value)
	}
	if err == nil {
		return row, nil
	}
	damage := l.name(v, key)
	damage.Cause = err
	if errors.Is(err, errMoved) {
		damage.Due = time.Time{} // the row tells
	}
	return nil, &damage
}

func (v *view) listing(list journal.List) (*listing, error) {
	switch list := list.(type) {
	case journal.Sessions:
		l := ownRows(keyOf(tagCatalogue), journal.KindSession, rowOfEach)
		l.backwards = list.NewestFirst
		l.wanted = func(row journal.Row) bool {
			session := row.(journal.SessionRow)
			return cmp.Or(list.State, session.State) == session.State && cmp.Or(list.Workspace, session.Workspace) == session.Workspace
		}
		return l, nil
	case journal.OpenInterrupts:
		if list.Session == "" {
			return openInterrupts(), nil
		}
		s, err := v.stream(list.Session)
		return openInterruptsOf(s), err
	case journal.OpenWork:
		return ownRows(keyOf(tagOpenWork), journal.KindOpenWork, rowOfEach), nil
	case journal.TimersDue:
		l := timersDue()
		l.upper = after(keyOf(tagDue, dueNumber(list.Until)))
		return l, nil
	case journal.Leases:
		return ownRows(keyOf(tagLease), journal.KindLease, nowhere), nil
	case journal.Tokens:
		return ownRows(append(textKey(tagToken, list.Executor), 0), journal.KindToken, nowhere), nil
	case journal.Agents:
		return ownRows(keyOf(tagAgent), journal.KindAgent, nowhere), nil
	case journal.Materials:
		if list == (journal.Materials{}) {
			return ownRows(keyOf(tagMaterial), journal.KindMaterial, anyOfEach), nil
		}
		s, err := v.stream(list.Session)
		l := ownRows(append(append(keyOf(tagMaterial, s.sid), list.Space...), 0), journal.KindMaterial, nowhere)
		l.session = list.Session
		return l, err
	case journal.Workflows:
		l := ownRows(keyOf(tagWorkflow), journal.KindWorkflow, nowhere)
		l.backwards = true
		l.wanted = func(row journal.Row) bool {
			w := row.(journal.WorkflowRow)
			return cmp.Or(list.Session, w.Session) == w.Session && cmp.Or(list.State, w.State) == w.State
		}
		return l, nil
	case journal.Decisions:
		l := ownRows(append(textKey(tagDecision, list.Session), 0), journal.KindDecision, nowhere)
		l.session = list.Session
		l.wanted = func(row journal.Row) bool {
			decision := row.(journal.DecisionRow).Decision
			return cmp.Or(list.Decision, decision) == decision
		}
		return l, nil
	default:
		return nil, fmt.Errorf("%w: list %T", journal.ErrInvalid, list)
	}
}

// ownRows lists the rows of a kind, which stand under the keys with a prefix.
func ownRows(prefix []byte, kind journal.Kind, other elsewhere) *listing {
	name := func(v *view, key []byte) journal.Damage { return v.nameOwn(key, kind) }
	return &listing{lower: prefix, upper: after(prefix), kind: kind, open: openOwn, name: name, elsewhere: other}
}

// openOwn opens a row that stands where it is listed, and must be the one of that place.
func openOwn(v *view, key, value []byte) (journal.Row, error) {
	row, err := journal.DecodeRow(value)
	if err != nil {
		return nil, err
	}
	var s stream
	if session := row.Key().Session; session != "" {
		if s, err = v.stream(session); err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(key, rowKey(row.Key(), s.sid)) {
		return nil, fmt.Errorf("%s stands here", row.Key())
	}
	return row, nil
}

// nameOwn says which row stands under a key, of the kinds that keys tell of.
func (v *view) nameOwn(key []byte, kind journal.Kind) journal.Damage {
	switch kind {
	case journal.KindSession, journal.KindOpenWork:
		session, _ := v.sessionOf(numberAt(key, 1))
		return journal.Damage{Session: session, Key: journal.Key{Kind: kind, Session: session}}
	case journal.KindTimer:
		session, _ := v.sessionOf(numberAt(key, 1))
		return journal.Damage{Session: session, Key: journal.TimerKey(session, textAt(key, 9))}
	case journal.KindMaterial:
		session, _ := v.sessionOf(numberAt(key, 1))
		space, id, _ := strings.Cut(textAt(key, 9), "\x00")
		return journal.Damage{Session: session, Key: journal.MaterialKey(session, space, id)}
	case journal.KindCommand:
		session, _ := v.sessionOf(numberAt(key, 1))
		return journal.Damage{Session: session, Key: journal.Key{Kind: kind, Session: session}}
	case journal.KindToken, journal.KindAlias:
		space, id, _ := strings.Cut(textAt(key, 1), "\x00")
		return journal.Damage{Key: journal.Key{Kind: kind, Space: space, ID: id}}
	case journal.KindDecision:
		of, id, _ := strings.Cut(textAt(key, 1), "\x00")
		return journal.Damage{Session: of, Key: journal.DecisionKey(of, id)}
	default:
		return journal.Damage{Key: journal.Key{Kind: kind, ID: textAt(key, 1)}}
	}
}

// The lists of rows to which side keys lead.

func openInterrupts() *listing {
	return ledRows(keyOf(tagOpen), journal.KindInterrupt, openOpen, nameOpen, openBySession)
}

func openInterruptsOf(s stream) *listing {
	l := ledRows(keyOf(tagOpenOf, s.sid), journal.KindInterrupt, openOpenOf, nameOpenOf, fromRows)
	l.session = s.session
	return l
}

func timersDue() *listing {
	return ledRows(keyOf(tagDue), journal.KindTimer, openDue, nameDue, fromRows)
}

func ledRows(
	prefix []byte, kind journal.Kind, open func(*view, []byte, []byte) (journal.Row, error),
	name func(*view, []byte) journal.Damage, other elsewhere,
) *listing {
	return &listing{lower: prefix, upper: after(prefix), kind: kind, open: open, name: name, elsewhere: other}
}

func openOpen(v *view, key, _ []byte) (journal.Row, error) {
	return v.led(key, journal.InterruptKey(textAt(key, 9)), 0)
}

func openOpenOf(v *view, key, _ []byte) (journal.Row, error) {
	row, err := v.led(key, journal.InterruptKey(textAt(key, 17)), numberAt(key, 1))
	if err != nil {
		return nil, err
	}
	if session, err := v.sessionOf(numberAt(key, 1)); err != nil || session != journal.Owner(row) {
		return nil, errMoved
	}
	return row, nil
}

func openDue(v *view, key, _ []byte) (journal.Row, error) {
	sid, session := numberAt(key, 9), ""
	if sid != 0 {
		var err error
		if session, err = v.sessionOf(sid); err != nil {
			return nil, err
		}
	}
	return v.led(key, journal.TimerKey(session, textAt(key, 17)), sid)
}

// errMoved says that a row does not belong where a side key lists it.
var errMoved = errors.New("has left this place of the list")

// led opens a row that a side key of a session leads to: it must be there, and have that
// side key.
func (v *view) led(from []byte, key journal.Key, sid uint64) (journal.Row, error) {
	row, err := v.row(key, sid)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, errors.New("is missing")
	}
	for _, side := range sideKeys(row, sid) {
		if bytes.Equal(side.key, from) {
			return row, nil
		}
	}
	return nil, errMoved
}

// nameOpen says which interrupt a key lists. The fact at its offset tells of whom it is.
func nameOpen(v *view, key []byte) journal.Damage {
	s, _ := v.factAt(numberAt(key, 1))
	return journal.Damage{Session: s.session, Key: journal.InterruptKey(textAt(key, 9))}
}

// nameOpenOf says which interrupt a key of its session lists.
func nameOpenOf(v *view, key []byte) journal.Damage {
	session, _ := v.sessionOf(numberAt(key, 1))
	return journal.Damage{Session: session, Key: journal.InterruptKey(textAt(key, 17))}
}

// nameDue says which timer is due when. That of a session which cannot be told is nobody's.
func nameDue(v *view, key []byte) journal.Damage {
	sid := numberAt(key, 9)
	session, err := v.sessionOf(sid)
	d := journal.Damage{Session: session, Key: journal.TimerKey(session, textAt(key, 17))}
	if err == nil || sid == 0 {
		d.Due = dueTime(numberAt(key, 1))
	}
	return d
}

// factAt finds whose the fact at a host offset is, and its sequence. It gives nothing of
// one that cannot be found.
func (v *view) factAt(offset uint64) (s stream, sequence uint64) {
	it, err := v.iterate(keyOf(tagGroup), keyOf(tagGroup, offset+1))
	if err != nil {
		return stream{}, 0
	}
	defer func() { _ = it.Close() }()
	if !it.Last() {
		return stream{}, 0
	}
	g, err := readGroup(it)
	if err != nil {
		return stream{}, 0
	}
	at := g.firstOffset
	for _, e := range g.entries {
		if offset < at+e.facts {
			session, err := v.sessionOf(e.sid)
			if err != nil {
				return stream{}, 0
			}
			return stream{session, e.sid}, e.firstSequence + offset - at
		}
		at += e.facts
	}
	return stream{}, 0
}

// textAt is the text in a key from a place on.
func textAt(key []byte, at int) string { return string(key[min(at, len(key)):]) }
