package pebble

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// TestCursorOfAnotherList gives each list the cursors of places before and behind it: a
// reader must not come by the keys of something else.
func TestCursorOfAnotherList(t *testing.T) {
	disk := vfs.NewMem()
	fill(t, disk)
	j := openTest(t, disk, journal.Options{})
	for _, list := range []journal.List{
		journal.Sessions{}, journal.Sessions{NewestFirst: true}, journal.OpenInterrupts{}, journal.OpenInterrupts{Session: "a"},
		journal.OpenWork{}, journal.TimersDue{Until: journaltest.Start}, journal.Leases{}, journal.Tokens{Executor: "e"}, journal.Agents{},
		journal.Decisions{}, journal.Decisions{Session: "a"},
	} {
		for _, key := range []string{"A", "zz", "\xff"} {
			cursor := hex.EncodeToString([]byte(key))
			rows, err := j.Rows(context.Background(), list, journal.RowPage{Cursor: cursor})
			if !errors.Is(err, journal.ErrInvalid) {
				t.Errorf("%T%+v behind cursor %q: got %+v, %v; want ErrInvalid", list, list, cursor, rows, err)
			}
		}
	}
}
