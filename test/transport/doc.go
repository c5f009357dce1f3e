// Package transport runs the JavaScript transport of docs/examples with Node against a
// host, as the public TypeScript client would use it (R45).
//
// # What it promises
//
// The transport in the documentation works: over a history that grows while it is read,
// beyond the places that the client has for what is live, and over a stream that breaks.
//
// # Invariants
//
// consumer.mjs does what the attach coordinator of that client was seen to do, with the
// same bounds, and nothing of its code.
//
// # Concurrency
//
// One host, one proxy in front of it, one Node process.
//
// # What it is not
//
// It is no test of the public client itself, which is not needed for it.
package transport
