// Package harnesstest judges the logs that tests make.
//
// # What it promises
//
// [Faults] finds what breaks the rules of the page or of R36 in a whole log: by rules of its
// own, which share no code with the readers and the projection of package harness, and by
// the strict reading of that package. [Derive] makes the logs of a session's facts.
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
