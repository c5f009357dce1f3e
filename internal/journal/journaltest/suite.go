package journaltest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Engine is what an engine's test hands to the suite.
type Engine struct {
	// New prepares a place for one store and gives the function that opens it.
	// What it needs to clean up it registers with t.
	New func(t testing.TB) Open
	// Reopens says that a store can be closed and opened again.
	Reopens bool
	// Damage makes stored rows unreadable, which an engine may show from its next commit
	// on.
	Damage func(t testing.TB, j journal.Journal, rows ...journal.Key)
}

// Open opens a store, the same one each time.
type Open func(journal.Options) (journal.Journal, error)

// Run runs the suite.
func Run(t *testing.T, engine Engine) {
	tests := []struct {
		name string
		run  func(*testing.T, Engine)
	}{
		{"numbers", testNumbers},
		{"receipt", testReceipt},
		{"first event number", testSeed},
		{"identity", testIdentity},
		{"bytes are the caller's", testBytesAreCopied},
		{"invalid batches", testInvalidBatches},
		{"sizes", testSizes},
		{"heads", testHeads},
		{"same head twice", testSameHeadTwice},
		{"terms", testTerms},
		{"sequences of runs and workflows", testSpanSequences},
		{"conditions", testConditions},
		{"conditions within a group", testConditionsWithinGroup},
		{"order of a commit", testCommitOrder},
		{"nothing before the sync", testHeldSync},
		{"refused group", testRefusedGroup},
		{"broken at every stage", testBroken},
		{"groups", testGroups},
		{"context", testContext},
		{"close while appends wait", testCloseWhileWaiting},
		{"reads during close", testReadsDuringClose},
		{"closed", testClosed},
		{"OnDurable", testOnDurable},
		{"OnDurable panics", testOnDurablePanics},
		{"orders and pages", testOrders},
		{"runs that alternate", testAlternatingRuns},
		{"long runs", testLongRuns},
		{"logs", testLogs},
		{"what is kept of a page", testPagesAreKept},
		{"scan", testScan},
		{"find", testFind},
		{"rows", testRows},
		{"workflow rows", testWorkflowKeepsItsBeginning},
		{"rows are owned", testRowOwnership},
		{"lists", testLists},
		{"timers", testTimers},
		{"interrupts", testInterrupts},
		{"damaged rows", testDamagedRows},
		{"damaged rows, told", testDamagedEach},
		{"damaged rows, written", testDamagedRowsAreWritten},
		{"damaged rows, found", testDamagedRowsAreFound},
		{"damaged rows, deleted", testDamagedRowsAreDeleted},
		{"damaged workflow", testDamagedWorkflow},
		{"snapshots", testSnapshots},
		{"delete", testDelete},
		{"space", testSpace},
		{"space at open", testSpaceAtOpen},
		{"verify", testVerify},
		{"verify derived rows", testVerifyDerived},
		{"random commands", testRandomCommands},
		{"concurrent appenders", testConcurrentAppenders},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, engine) })
	}
	if engine.Reopens {
		t.Run("reopen", func(t *testing.T) { testReopen(t, engine) })
		t.Run("reopen after every stage", func(t *testing.T) { testReopenAfterStage(t, engine) })
	}
}

// open opens a fresh store with room on its disk and closes it at the end.
func open(t testing.TB, engine Engine, options journal.Options) journal.Journal {
	t.Helper()
	return reopen(t, engine.New(t), options)
}

func reopen(t testing.TB, open Open, options journal.Options) journal.Journal {
	t.Helper()
	if options.Free == nil {
		options.Free = func() (uint64, error) { return math.MaxUint64, nil }
	}
	j, err := open(options)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { closeJournal(t, j) })
	return j
}

func closeJournal(t testing.TB, j journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func mustAppend(t testing.TB, j journal.Appender, batch journal.Batch) journal.Receipt {
	t.Helper()
	receipt, err := j.Append(context.Background(), batch)
	if err != nil {
		t.Fatalf("append %d facts and %d changes to %q at %d: %v",
			len(batch.Facts), len(batch.Changes), batch.Session, batch.ExpectHead, err)
	}
	return receipt
}

func wantError(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

func mustRead(t testing.TB, j journal.Reader, order journal.Order, page journal.Page) journal.Chunk {
	t.Helper()
	chunk, err := j.Read(context.Background(), order, page)
	if err != nil {
		t.Fatalf("read %+v: %v", order, err)
	}
	return chunk
}

func sequences(records []journal.Record) []uint64 {
	var all []uint64
	for _, r := range records {
		all = append(all, r.Sequence)
	}
	return all
}

func wantSequences(t testing.TB, what string, chunk journal.Chunk, more bool, want ...uint64) {
	t.Helper()
	if got := sequences(chunk.Records); !slices.Equal(got, want) || chunk.More != more {
		t.Errorf("%s: got sequences %v, more %t; want %v, more %t", what, got, chunk.More, want, more)
	}
}

// row builders, with little in them.

func sessionRow(session, state string) journal.SessionRow {
	return journal.SessionRow{Session: session, Workspace: "w1", State: state, Value: []byte("title of " + session)}
}

func timerRow(session, id string, after time.Duration) journal.TimerRow {
	return journal.TimerRow{Session: session, ID: id, Due: Start.Add(after), Value: []byte(id)}
}

func put(row journal.Row) journal.Change    { return journal.Put{Row: row} }
func remove(key journal.Key) journal.Change { return journal.Remove{Key: key} }
