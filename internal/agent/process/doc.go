// Package process knows process groups across restarts of a host.
//
// # What it promises
//
// [Identify] names a process so that a later host can tell it from another one with
// the same pid: by its start time and the machine's boot. [KillGroup] ends the group of
// a process that was named so, and returns when it is gone; one that is another by now,
// or of another boot, is left alone.
//
// # Invariants
//
// A pid alone is never enough to be killed.
//
// # Concurrency
//
// Functions keep no state.
//
// # What it is not
//
// It starts nothing. Whoever starts a process makes it the leader of a group of its own.
package process
