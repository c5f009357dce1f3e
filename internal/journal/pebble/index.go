package pebble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

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
	// open gives the row of a key, nil when it is not in the list.
	open func(v *view, key, value []byte) (journal.Row, error)
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

// resume starts behind a cursor, which must be a key of the list.
func (l *listing) resume(cursor string) error {
	if cursor == "" {
		return nil
	}
	key, err := hex.DecodeString(cursor)
	if err != nil || bytes.Compare(key, l.lower) < 0 || bytes.Compare(key, l.upper) >= 0 {
		return fmt.Errorf("%w: cursor %.40q", journal.ErrInvalid, cursor)
	}
	if l.backwards {
		l.upper = key
	} else {
		l.lower = append(key, 0)
	}
	return nil
}

func (l *listing) read(ctx context.Context, v *view, page journal.RowPage) (rows journal.Rows, err error) {
	limit := page.Clamped().Limit
	it, err := v.iterate(l.lower, l.upper)
	if err != nil {
		return rows, damaged("", 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var last string
	for valid := l.first(it); valid; valid = l.next(it) {
		value, err := it.ValueAndErr()
		if err != nil {
			return journal.Rows{}, damaged("", 0, err)
		}
		row, err := l.open(v, it.Key(), value)
		if err != nil {
			return journal.Rows{}, err
		}
		if row == nil {
			if err := ctx.Err(); err != nil {
				return journal.Rows{}, err
			}
			continue
		}
		if len(rows.Rows) == limit {
			rows.Next = last
			return rows, nil
		}
		rows.Rows = append(rows.Rows, row)
		last = hex.EncodeToString(it.Key())
	}
	if err := it.Error(); err != nil {
		return journal.Rows{}, damaged("", 0, err)
	}
	return rows, nil
}

func (l *listing) first(it *lsm.Iterator) bool {
	if l.backwards {
		return it.Last()
	}
	return it.First()
}

func (l *listing) next(it *lsm.Iterator) bool {
	if l.backwards {
		return it.Prev()
	}
	return it.Next()
}

func (v *view) listing(list journal.List) (*listing, error) {
	switch list := list.(type) {
	case journal.Sessions:
		l := ownRows([]byte{tagCatalogue})
		l.backwards = list.NewestFirst
		l.open = func(_ *view, _, value []byte) (journal.Row, error) { return openCatalogue(list, value) }
		return l, nil
	case journal.OpenInterrupts:
		if list.Session == "" {
			return ledRows([]byte{tagOpen}, openInterrupt(9)), nil
		}
		s, err := v.stream(list.Session)
		return ledRows(keyOf(tagOpenOf, s.sid), openInterrupt(17)), err
	case journal.OpenWork:
		return ownRows([]byte{tagOpenWork}), nil
	case journal.TimersDue:
		l := ledRows([]byte{tagDue}, openTimer)
		l.upper = after(keyOf(tagDue, dueNumber(list.Until)))
		return l, nil
	case journal.Leases:
		return ownRows([]byte{tagLease}), nil
	case journal.Tokens:
		return ownRows(append(textKey(tagToken, list.Executor), 0)), nil
	case journal.Agents:
		return ownRows([]byte{tagAgent}), nil
	case journal.Materials:
		if list == (journal.Materials{}) {
			return ownRows([]byte{tagMaterial}), nil
		}
		s, err := v.stream(list.Session)
		return ownRows(append(append(keyOf(tagMaterial, s.sid), list.Space...), 0)), err
	default:
		return nil, fmt.Errorf("%w: list %T", journal.ErrInvalid, list)
	}
}

// ownRows lists the rows that stand under a prefix.
func ownRows(prefix []byte) *listing {
	return ledRows(prefix, func(_ *view, key, value []byte) (journal.Row, error) {
		row, err := journal.DecodeRow(value)
		if err != nil {
			return nil, damaged("", 0, fmt.Errorf("row at %x: %w", key, err))
		}
		return row, nil
	})
}

// ledRows lists rows to which the keys under a prefix lead.
func ledRows(prefix []byte, open func(*view, []byte, []byte) (journal.Row, error)) *listing {
	return &listing{lower: prefix, upper: after(prefix), open: open}
}

func openCatalogue(list journal.Sessions, value []byte) (journal.Row, error) {
	row, err := journal.DecodeRow(value)
	if err != nil {
		return nil, damaged("", 0, fmt.Errorf("catalogue: %w", err))
	}
	session, ok := row.(journal.SessionRow)
	if !ok || cmp.Or(list.State, session.State) != session.State || cmp.Or(list.Workspace, session.Workspace) != session.Workspace {
		return nil, nil
	}
	return session, nil
}

// openInterrupt opens the interrupt whose id stands in a key at a place.
func openInterrupt(at int) func(*view, []byte, []byte) (journal.Row, error) {
	return func(v *view, key, _ []byte) (journal.Row, error) {
		return v.led(key, journal.InterruptKey(string(key[at:])), 0)
	}
}

func openTimer(v *view, key, _ []byte) (journal.Row, error) {
	sid, session := numberAt(key, 9), ""
	if sid != 0 {
		var err error
		if session, err = v.sessionOf(sid); err != nil {
			return nil, err
		}
	}
	return v.led(key, journal.TimerKey(session, string(key[17:])), sid)
}

// led opens a row that a side key leads to, which therefore must be there.
func (v *view) led(from []byte, key journal.Key, sid uint64) (journal.Row, error) {
	row, err := v.row(key, sid)
	if err == nil && row == nil {
		err = errors.New("is missing")
	}
	if err != nil {
		return nil, damaged(key.Session, 0, fmt.Errorf("%s, from %x: %w", key, from, err))
	}
	return row, nil
}
