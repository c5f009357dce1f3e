// Package naryatest judges what a host says against the contract's documents.
//
// # What it promises
//
// [Ours] is our own OpenAPI document, [Published] the contract's. A [Contract] says of a
// frame's data, of a value, or of an answer to an operation whether the document allows it:
// an answer must be one of an operation, with a status and a body that stand there.
//
// # Invariants
//
// Each schema is compiled once.
//
// # Concurrency
//
// A Contract may be used by many goroutines.
//
// # What it is not
//
// It does not judge requests, nor the order of events.
package naryatest
