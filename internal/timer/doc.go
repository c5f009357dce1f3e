// Package timer fires the journal's durable timers when they are due.
//
// # What it promises
//
// Every timer row whose time has come is handed to the function that [New] was
// given, in the order of due times within a session, until its owner has
// removed the row. Firing is at least once: a timer may fire late, and again
// after a restart or while its owner is about to remove it. Owners take a late
// or second firing for nothing.
//
// # Invariants
//
//   - The rows are the only truth. What is kept here is how long to leave a
//     timer alone that fired and is still there.
//   - Time is the wall clock, looked at anew at least every [Options.MaxSleep]:
//     a clock that jumps forward fires late by no more than that, one that jumps
//     back puts timers off and loses none.
//   - A timer whose row is damaged fires when its place in the list says so, with its
//     session and id alone, and is reported ([Options.Damaged]). One of which not even
//     that is known is reported only. It delays no other.
//   - A timer whose firing fails delays no other; it is tried again later, at
//     growing intervals. One that hangs delays those of other sessions by no more
//     than [Options.FireTimeout].
//
// # Concurrency
//
// All methods may be called by any number of goroutines. [Timers.Start] starts
// one goroutine, which sleeps; while timers fire there are a few more, which it
// waits for. [Timers.Close] joins it. The function that fires is called by
// several goroutines, for one session by one at a time.
//
// # What it is not
//
// It does not know what a timer means, and it writes nothing: owners set and
// remove rows in the batches that cause it.
package timer
