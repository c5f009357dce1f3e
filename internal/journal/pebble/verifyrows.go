package pebble

import (
	"bytes"
	"fmt"

	"github.com/mahati-host/mahati/internal/journal"
)

// rows checks every index row: that it can be read, stands under its own key,
// has its side keys, and belongs to a session that lives.
func (c *check) rows() error {
	for _, kind := range journal.Kinds {
		err := c.each([]byte{rowTags[kind]}, func(key, value []byte) {
			row, err := journal.DecodeRow(value)
			if err == nil && !bytes.Equal(key, rowKey(row.Key(), c.sidOf(row.Key().Session))) {
				err = fmt.Errorf("%s stands here", row.Key())
			}
			if err != nil {
				at := c.view.nameOwn(key, kind)
				c.Problem(journal.Problem{Code: journal.ProblemRow, Session: at.Session, Row: at.Key.String(), Detail: err.Error()})
				return
			}
			c.listed(row)
			c.Row(row, func(session string) (uint64, bool) {
				head, alive := c.heads[session]
				return head, alive
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listed checks that a row stands in its lists.
func (c *check) listed(row journal.Row) {
	for _, side := range sideKeys(row, c.sidOf(journal.Owner(row))) {
		if value, err := c.view.get(side.key); err != nil || value == nil {
			c.Problem(journal.Problem{
				Code: journal.ProblemDangling, Session: journal.Owner(row), Row: row.Key().String(), Detail: "is not in its list",
			})
		}
	}
}

// sidOf is the sid of a session, 0 for none.
func (c *check) sidOf(session string) uint64 {
	if session == "" {
		return 0
	}
	s, _ := c.view.stream(session)
	return s.sid
}

// sides checks that every key of a list leads to a row that has it.
func (c *check) sides() error {
	for _, l := range []*listing{openInterrupts(), {lower: keyOf(tagOpenOf), open: openOpenOf, name: nameOpenOf}, timersDue()} {
		err := c.each(l.lower, func(key, value []byte) {
			if _, err := l.open(c.view, key, value); err != nil {
				at := l.name(c.view, key)
				c.Problem(journal.Problem{
					Code: journal.ProblemDangling, Session: at.Session, Row: at.Key.String(), Detail: fmt.Sprintf("from %q: %v", key, err),
				})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sessionOfKey is the session whose sid or name a key holds, "" for a key of no session.
func (c *check) sessionOfKey(key []byte) string {
	for kind, tag := range rowTags {
		if key[0] == tag {
			return c.view.nameOwn(key, kind).Session
		}
	}
	switch key[0] {
	case tagSession:
		return textAt(key, 1)
	case tagSid, tagBatch, tagMark, tagCurrent, tagOpenOf, tagSnapshot:
		session, _ := c.view.sessionOf(numberAt(key, 1))
		return session
	}
	return ""
}
