package journal

import (
	"strconv"
	"strings"
	"time"
)

// HostStream is the session name of the stream for facts that belong to no
// session. No chosen session id can be equal to it.
const HostStream = "~host"

// RowStream is the session name of batches that only change rows of no session. Nobody
// owns it and it never has a fact, so that such batches may come from anywhere.
const RowStream = "~rows"

// Fact is one fact as its owner encoded and numbered it.
type Fact struct {
	// EventID is "<session sequence>.<suffix>" (R3), so that an id is found
	// without a search.
	EventID string
	// Bytes are final: they are stored and served as they are.
	Bytes []byte

	// RootRunID and RunSequence place the fact in a run tree; both are empty
	// for a fact outside of every run.
	RootRunID   string
	RunSequence uint64
	// WorkflowID and WorkflowSequence place it in a workflow; both may be empty.
	WorkflowID       string
	WorkflowSequence uint64

	// EventCount is how many event numbers the fact takes (R39), often none.
	EventCount uint32
	// LogRun names the log that LogCount records of the fact belong to (R35).
	LogRun   string
	LogCount uint32
}

// Numbers are how many numbers a fact takes in the orders of other contracts: event
// numbers (R39), and places in the log of one run (R35).
type Numbers struct {
	Events uint32
	LogRun string
	Logs   uint32
}

// Take gives the fact its numbers.
func (f *Fact) Take(n Numbers) { f.EventCount, f.LogRun, f.LogCount = n.Events, n.LogRun, n.Logs }

// Numbers returns how many numbers the fact has.
func (f *Fact) Numbers() Numbers { return Numbers{f.EventCount, f.LogRun, f.LogCount} }

// Record is a stored fact with the numbers that it was given.
type Record struct {
	Fact

	// Session is the stream the fact is in, HostStream included.
	Session string
	// Sequence is its place in the stream, from 1.
	Sequence uint64
	// Offset is its place among all facts of the store, from 1.
	Offset uint64
	// FirstEvent is the first of its EventCount event numbers, 0 without any.
	FirstEvent uint64
	// FirstLog is the first of its LogCount log numbers, 0 without any.
	FirstLog uint64
	// Time is the time of its batch, to the microsecond, in UTC.
	Time time.Time
}

// Receipt tells what a batch was given. It is returned after the batch became
// durable and visible.
type Receipt struct {
	// FirstSequence and FirstOffset are those of the first fact; the others
	// follow it without a gap. Both are 0 for a batch without facts.
	FirstSequence uint64
	FirstOffset   uint64
	// FirstEvent is the first event number of the batch, 0 when it has none.
	FirstEvent uint64
	// FirstLogs has the first log number of each fact, 0 for a fact without.
	FirstLogs []uint64
	// UpTo is a durable mark that covers the batch.
	UpTo Mark
}

// Mark is how far the store is durable, and so visible.
type Mark struct {
	// Offset is the highest host offset given, 0 in an empty store.
	Offset uint64
	// Event is the highest event number given. In a store that gave none it is
	// one less than the store's seed.
	Event uint64
}

// SequenceOfEventID reads the session sequence out of an event id. It reports
// false for a text that no fact can have as its id.
func SequenceOfEventID(id string) (uint64, bool) {
	digits, suffix, found := strings.Cut(id, ".")
	if !found || suffix == "" || len(id) > MaxID || digits == "" || digits[0] == '0' || digits[0] == '+' {
		return 0, false
	}
	sequence, err := strconv.ParseUint(digits, 10, 64)
	return sequence, err == nil
}
