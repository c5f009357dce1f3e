package journal_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	journaltest.Run(t, journaltest.Engine{
		New: func(testing.TB) journaltest.Open {
			return func(options journal.Options) (journal.Journal, error) { return journal.NewMemory(options) }
		},
		Damage: func(_ testing.TB, j journal.Journal, rows ...journal.Key) { j.(*journal.Memory).Damage(rows...) },
	})
}
