// Package executor keeps the leases of client executors, mints the tokens by which
// they run tool calls, and hands each call to one connection (specification §11).
//
// # What it promises
//
// An executor has one lease at a time. [Executors.Attach] draws a new one, durably,
// and from then on nothing is begun under the one before. [Executors.Renew] moves its
// end; it is not stored, so after a restart the newest lease of each executor holds
// for one more lease time, and no longer.
//
// A call is given by [Executors.Issue] to the lease that has a connection now, and
// handed by [Executors.Deliver] to that connection alone. It never goes to another
// lease. A reconnect under the same lease gets its unfinished calls again, the same
// bytes, as long as the process lives (R32). A call that no connection took is told to
// [Options.Undelivered] once.
//
// [Judge] says what a finish means to the stored row of its token (R33).
//
// # Invariants
//
//   - Lease ids and tokens are 256 random bits. The store holds their hashes alone, and
//     they are compared in constant time. They stand in the records of one connection
//     and in the answers to its owner, never in an error or a log.
//   - A token is bound to the principal, the executor, the lease and the tool call that
//     it was made for, and to its expiry.
//   - What is held in memory is bounded: a seat for each executor with a live lease, a
//     connection or an unfinished call.
//
// # Concurrency
//
// All methods of [Executors] may be called by any number of goroutines. A [Connection]
// belongs to one goroutine; a newer one of the same executor ends it from outside.
// Attaches of one executor wait for one another. Arrived and Undelivered are called
// without a lock held, from whichever goroutine found out; they must not block.
//
// # What it is not
//
// It decides nothing about runs and appends no fact: the owner of the session writes
// the row of a token in the batch of the facts that go with it, and judges a finish
// there. It knows no HTTP. It trusts its caller to have authenticated the principal,
// and asks itself whether the principal may be that executor.
package executor
