package pebble

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
)

// TestTailsAreBounded asks for terms of ever new sessions, none of which is ever written:
// what is known of them stays in its bound all the same.
func TestTailsAreBounded(t *testing.T) {
	j := openTest(t, vfs.NewMem(), journal.Options{})
	for i := range maxTails + 100 {
		session := fmt.Sprintf("s%d", i)
		term, err := j.AcquireTerm(context.Background(), session)
		if err != nil {
			t.Fatal(err)
		}
		j.ReleaseTerm(session, term)
	}
	if got := len(j.tails); got > maxTails {
		t.Errorf("%d tails are kept after as many terms and no write, want at most %d", got, maxTails)
	}
}
