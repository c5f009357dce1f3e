package pebble_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

func TestInMemory(t *testing.T) {
	journaltest.Run(t, journaltest.Engine{Reopens: true, Damage: damage, New: func(testing.TB) journaltest.Open {
		fs := vfs.NewCrashableMem()
		return func(options journal.Options) (journal.Journal, error) {
			return opened(pebble.Open("/home/journal", pebble.Options{Options: options, FS: fs, MemTable: 1 << 20}))
		}
	}})
}

func TestOnDisk(t *testing.T) {
	journaltest.Run(t, journaltest.Engine{Reopens: true, Damage: damage, New: func(t testing.TB) journaltest.Open {
		dir := t.TempDir()
		return func(options journal.Options) (journal.Journal, error) {
			return opened(pebble.Open(dir, pebble.Options{Options: options, MemTable: 1 << 20}))
		}
	}})
}

// opened keeps a nil *Journal from becoming a Journal that is not nil.
func opened(j *pebble.Journal, err error) (journal.Journal, error) {
	if err != nil {
		return nil, err
	}
	return j, nil
}

func damage(t testing.TB, j journal.Journal, rows ...journal.Key) {
	t.Helper()
	if err := j.(*pebble.Journal).Damage(rows...); err != nil {
		t.Fatal(err)
	}
}
