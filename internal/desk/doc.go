// Package desk is what a session is beyond Narad: its queue, title, agent, posture and
// the votes that are not yet a decision.
//
// # What it promises
//
// [State.Apply] adds up Mahati's own facts, and the few of Narad's that move the queue,
// in the order of the session. The same facts give the same desk.
//
// # Invariants
//
// The desk holds what is open, so its size does not depend on the session's length. It
// takes what package narad/session has accepted and never refuses a fact.
//
// # Concurrency
//
// A State belongs to one goroutine. It uses no clock, randomness, lock or I/O.
//
// # What it is not
//
// It decides nothing: package internal/decide does, from a desk and a session state.
package desk
