// Package facts holds the names and payloads of Mahati's own facts: what a session is
// beyond Narad's own types.
//
// # What it promises
//
// Each name under "mahati." has one payload type, listed in docs/facts.md. [Session]
// and [Run] make the custom facts that carry one; [Read] reads it back. Optional
// fields that Mahati adds to Narad's own facts (R1) have one accessor each.
//
// # Invariants
//
// Payloads only grow: a field is never removed or given another meaning, and unknown
// fields are ignored. Stored facts stay readable for ever.
//
// # Concurrency
//
// Functions keep no state.
//
// # What it is not
//
// It is no reducer: package internal/desk says what the facts add up to.
package facts
