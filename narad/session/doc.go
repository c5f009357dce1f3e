// Package session is the deterministic state machine of a Narad session.
//
// # What it promises
//
// A [State] takes the records of one session in any order in which they arrive and
// says of each what it is: applied, a duplicate, to be ignored, a sign of a gap, or
// refused with a code. The host guards its journal with it and a client follows a
// host with it: the very same function on both sides.
//
// There are two strictnesses. [State.Apply] keeps the state sound and goes on where
// a careful client should (R20). [State.Check] demands everything that the
// specification demands of a host; [State.Admit] is Check and then Apply.
//
// # Invariants
//
// The state is a function of the records applied, so any prefix and the rest give
// the state of the whole. A record that is not applied changes nothing but what its
// result says: a gap latches until [State.ClearGap], an ignored event of a profile
// that was not negotiated moves the cursor. Applying costs the same at the end of a
// million events as at the start. With [Options.NoDisplay] the state holds open
// work and nothing else.
//
// # Concurrency
//
// A State belongs to one goroutine. It uses no clock, randomness, lock or I/O.
//
// # What it is not
//
// It does not fetch what is missing, decide anything or know commands. Graph
// records it hands to the [Graphs] that it was given, behind the facts that they follow.
package session
