package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/mahati-host/mahati/internal/journal"
)

// A list with a hole asks elsewhere what stands there: session by session where its keys say
// whose they are, or at the rows themselves to which its keys lead.

// member is what a list has at a key: a row, or a damage.
type member struct {
	key    []byte
	row    journal.Row
	damage *journal.Damage
}

// elsewhere gives what a list has in a hole, in its order, until yield says that it is
// enough. It reports false where it cannot tell whether that is all.
type elsewhere func(ctx context.Context, v *view, l *listing, h hole, yield func(member) bool) (whole bool, err error)

// lastInSession ends the keys of a session in a list, and stands for them.
const lastInSession = "\xff"

// rowOfEach asks for the one row that each session may have in the list. A row that is newer
// than the hole, and a session that has none, can be told.
func rowOfEach(ctx context.Context, v *view, l *listing, h hole, yield func(member) bool) (bool, error) {
	return true, v.sessionsIn(ctx, h, l.lower[:1], "", l.backwards, func(key []byte) bool {
		value, err := v.get(key)
		if err == nil && value == nil {
			return true
		}
		var row journal.Row
		if err == nil {
			row, err = l.open(v, key, value)
		}
		if err == nil {
			return yield(member{key: key, row: row})
		}
		return v.gone(numberAt(key, 1)) || yield(l.lostAt(v, key, err))
	})
}

// anyOfEach says of each session that its rows in the list cannot be told.
func anyOfEach(ctx context.Context, v *view, l *listing, h hole, yield func(member) bool) (bool, error) {
	return true, v.sessionsIn(ctx, h, l.lower[:1], lastInSession, l.backwards, func(key []byte) bool {
		if v.gone(numberAt(key, 1)) {
			return true
		}
		m := l.lostAt(v, key, h.err())
		m.damage.Key.Space, m.damage.Key.ID = "", ""
		return yield(m)
	})
}

func (l *listing) lostAt(v *view, key []byte, cause error) member {
	d := l.name(v, key)
	d.Cause = cause
	return member{key: key, damage: &d}
}

// sessionsIn visits, for each sid whose keys with a tag may lie in a hole, its key with a
// suffix.
func (v *view) sessionsIn(ctx context.Context, h hole, tag []byte, suffix string, backwards bool, visit func(key []byte) bool) error {
	next, err := v.nextSid()
	if err != nil {
		return err
	}
	first, end := sidAt(h.from, tag), min(sidAt(h.to, tag), next)
	if bytes.Compare(keyOf(tag[0], end), h.to) < 0 {
		end = min(end+1, next)
	}
	for n := range end - min(first, end) {
		sid := first + n
		if backwards {
			sid = end - 1 - n
		}
		key := append(keyOf(tag[0], sid), suffix...)
		if bytes.Compare(key, h.from) < 0 {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !visit(key) {
			return nil
		}
	}
	return nil
}

// sidAt is the sid in a key with a tag, whatever the length of the key; past all for a key
// behind the tag.
func sidAt(key, tag []byte) uint64 {
	rest, ok := bytes.CutPrefix(key, tag)
	if !ok {
		return ^uint64(0)
	}
	return binary.BigEndian.Uint64(append(slices.Clip(rest), make([]byte, 8)...))
}

// gone reports whether a sid has no session any more.
func (v *view) gone(sid uint64) bool {
	session, err := v.sessionOf(sid)
	if err == nil {
		_, err = v.stream(session)
	}
	return errors.Is(err, errNoSession) || errors.Is(err, journal.ErrDeleted)
}

// fromRows looks for the keys in a hole that the rows say they have to which the list leads.
func fromRows(ctx context.Context, v *view, l *listing, h hole, yield func(member) bool) (bool, error) {
	var keys [][]byte
	whole := true
	err := v.each([]byte{rowTags[l.kind]}, func(_, value []byte, unreadable error) error {
		row, err := journal.DecodeRow(value)
		if unreadable != nil || err != nil {
			whole = false
			return ctx.Err()
		}
		if len(sideKeys(row, 0)) == 0 {
			return ctx.Err()
		}
		var s stream
		if owner := journal.Owner(row); owner != "" {
			if s, err = v.stream(owner); err != nil {
				whole = whole && !errors.Is(err, journal.ErrDamaged) // else it is gone
				return ctx.Err()
			}
		}
		for _, side := range sideKeys(row, s.sid) {
			if h.has(side.key) {
				keys = append(keys, side.key)
			}
		}
		return ctx.Err()
	}, func(hole) { whole = false })
	return whole && err == nil, errors.Join(err, l.ledTo(v, keys, yield))
}

// nowhere is for a list whose keys stand in no other place.
func nowhere(context.Context, *view, *listing, hole, func(member) bool) (bool, error) {
	return false, nil
}

// openBySession looks for the open interrupts in a hole where they stand by session; where
// that cannot be read either, at their rows.
func openBySession(ctx context.Context, v *view, l *listing, h hole, yield func(member) bool) (bool, error) {
	var keys [][]byte
	whole := true
	err := v.each([]byte{tagOpenOf}, func(key, _ []byte, _ error) error {
		if len(key) >= 17 {
			if open := append([]byte{tagOpen}, key[9:]...); h.has(open) {
				keys = append(keys, open)
			}
		}
		return ctx.Err()
	}, func(hole) { whole = false })
	if err != nil || whole {
		return true, errors.Join(err, l.ledTo(v, keys, yield))
	}
	return fromRows(ctx, v, l, h, yield)
}

// ledTo gives what keys of the list lead to.
func (l *listing) ledTo(v *view, keys [][]byte, yield func(member) bool) error {
	slices.SortFunc(keys, bytes.Compare)
	for _, key := range keys {
		m := member{key: key}
		var err error
		if m.row, err = l.open(v, key, nil); err != nil {
			m = l.lostAt(v, key, err)
		}
		if !yield(m) {
			return nil
		}
	}
	return nil
}

// lostIn is the damage of a hole of which the list cannot tell what stood there.
func (l *listing) lostIn(h hole) *journal.Damage {
	return &journal.Damage{Session: l.session, Key: journal.Key{Kind: l.kind}, Cause: h.err()}
}
