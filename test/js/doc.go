// Package js runs a client in JavaScript against the program: one that was written from
// the protocol and the documentation alone, over fetch and the semantics of EventSource.
//
// # What it promises
//
// Such a client attaches, follows, resumes where it was cut off, decides an interrupt and
// executes a tool, and what it has seen is what the Go client sees.
//
// # Invariants
//
// The JavaScript has no dependency and shares nothing with the rest of the repository. Its
// own assertions are in scenario.mjs; this package starts the host and compares.
//
// # Concurrency
//
// One host and one Node process.
//
// # What it is not
//
// It is no library: docs/examples has the transport for the public TypeScript client.
package js
