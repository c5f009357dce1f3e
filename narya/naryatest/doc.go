// Package naryatest judges what a host says against the contract.
//
// # What it promises
//
// [Ours] is our own OpenAPI document, [Published] the contract's. A [Contract] says of a
// frame's data, of a value, or of an answer to an operation whether the document allows it:
// an answer must be one of an operation, with a status and a body that stand there.
//
// A [Judge] that has seen a whole stream from the creation of its sessions on has held each
// event to what docs/narya.md says of its type, and names the promise that is broken.
//
// # Invariants
//
// Each schema is compiled once. A judge knows nothing but the events: what a client can see.
//
// # Concurrency
//
// A Contract may be used by many goroutines, a Judge by one.
//
// # What it is not
//
// It does not judge requests, nor which events a fact should cause: that is for the tests of
// package narya.
package naryatest
