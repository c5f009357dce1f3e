// Package harnesstest judges the logs that tests make.
//
// # What it promises
//
// [Faults] finds what breaks the rules of the page or of R36 in a whole log, by looking at
// its records alone: it shares no code with the readers and the projection of package
// harness. [Derive] makes the logs of a session's facts.
//
// # Invariants
//
// Faults of one log do not depend on other logs.
//
// # Concurrency
//
// Functions keep no state.
//
// # What it is not
//
// It is no reader for what others wrote: a log is taken as a list of decoded records.
package harnesstest
