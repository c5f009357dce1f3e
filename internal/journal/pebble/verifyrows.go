package pebble

import (
	"bytes"

	"github.com/mahati-host/mahati/internal/journal"
)

// rows checks every index row: that it can be read, stands under its own key,
// has its side keys, and belongs to a session that lives.
func (c *check) rows() error {
	for _, kind := range journal.Kinds {
		err := c.each([]byte{rowTags[kind]}, func(key, value []byte) {
			row, err := journal.DecodeRow(value)
			if err != nil {
				c.found(journal.ProblemRow, "", 0, "%s at %q: %v", kind, key, err)
				return
			}
			c.place(row, key)
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

func (c *check) place(row journal.Row, key []byte) {
	report := func(code journal.ProblemCode, detail string) {
		c.Problem(journal.Problem{Code: code, Session: journal.Owner(row), Row: row.Key().String(), Detail: detail})
	}
	if !bytes.Equal(key, rowKey(row.Key(), c.sidOf(row.Key().Session))) {
		report(journal.ProblemRow, "stands under another key")
		return
	}
	for _, side := range sideKeys(row, c.sidOf(journal.Owner(row))) {
		if value, err := c.view.get(side.key); err != nil || value == nil {
			report(journal.ProblemDangling, "is not in its list")
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
	opens := map[byte]func(*view, []byte, []byte) (journal.Row, error){
		tagOpen: openInterrupt(9), tagOpenOf: openInterrupt(17), tagDue: openTimer,
	}
	for tag, open := range opens {
		err := c.each([]byte{tag}, func(key, value []byte) {
			row, err := open(c.view, key, value)
			if err != nil {
				c.found(journal.ProblemDangling, "", 0, "%v", err)
				return
			}
			for _, side := range sideKeys(row, c.sidOf(journal.Owner(row))) {
				if bytes.Equal(side.key, key) {
					return
				}
			}
			c.found(journal.ProblemDangling, journal.Owner(row), 0, "%s has left the list of %q", row.Key(), key)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
