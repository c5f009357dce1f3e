// Package journaltest is what a journal means, as a suite that every engine
// passes.
//
// # What it promises
//
// [Run] exercises every method of the port on a store that the engine's test
// opens: numbers, conditions, terms, groups, visibility, failures, space,
// deletion, paging, reopening, verify. [Model] is a naive second opinion that
// answers the same questions from one list of facts, [Everything] writes down
// all that a journal answers so that two of them can be compared as text, and
// [Story] writes facts with right numbers. The crash suites of engines use
// these three too.
//
// # Invariants
//
// The suite knows the port alone. What a test waits for is a channel, or a
// bubble of testing/synctest: nothing sleeps.
//
// # Concurrency
//
// A Story and a Model belong to one goroutine.
//
// # What it is not
//
// It is no test of speed, and no test of what an engine does to its files:
// those are with the engines.
package journaltest
