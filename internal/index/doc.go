// Package index says which index rows a fact changes.
//
// # What it promises
//
// [Changes] is a pure function of the state and desk before a fact, and the fact. The
// owner of a session calls it as it appends, and verify calls it again, by way of
// [Deriver], over the stored facts: the derived rows of a store are exactly these.
//
// # Invariants
//
// The catalogue row changes with what moves the session as a whole ([desk.State]) and with
// the mark that somebody saw it, and of a message only the fact that begins it has a row, so
// that streaming text touches none. A timer's row is written with
// the fact that sets it and removed with the one that settles it.
//
// # Concurrency
//
// Functions keep no state and only read what they are given.
//
// # What it is not
//
// It does not write, and it knows nothing of rows that batches carry themselves:
// command answers, leases, agents' owner records.
package index
