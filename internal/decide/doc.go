// Package decide turns accepted commands into facts.
//
// # What it promises
//
// [Decide] is a pure function of a command, the session's state and desk, and an
// [Env]: it proposes facts in the order in which they must stand, and the answer to
// whoever commanded. Commands of clients, records of agents, timers and recovery are
// all commands here, one file each.
//
// # Invariants
//
// A refusal proposes no facts. What is proposed is legal where the state is as given;
// the owner checks each fact again before it appends. Ids and the time come from the
// Env alone.
//
// # Concurrency
//
// Functions keep no state and only read what they are given.
//
// # What it is not
//
// It does not authorise, number, encode or store, and starts no agent: the owner of
// the session reacts to the facts that were stored.
package decide
