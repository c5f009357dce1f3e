// Package replay makes the state of a session at a sequence out of its facts. It
// is the one reader and writer of control snapshots.
//
// # What it promises
//
// [Replay.Open] and [Replay.At] give control state: open work and the desk, all
// that an owner holds and a projection needs. It is the newest snapshot and the
// facts behind it, so that a session of a million facts costs what a small one
// does. [Replay.Display] gives the whole state, which is made from the first fact
// on, kept for a while, and brought up to date by the facts that came since.
//
// # Invariants
//
//   - A state is a function of the facts: any snapshot and the rest gives what
//     all facts give.
//   - Snapshots are a cache. One that is unreadable, of another version or not
//     what it says it is, is dropped together with those before it; the state is
//     made from the facts, and a new snapshot is kept. A snapshot that the store
//     cannot read, write or drop is logged and costs nothing else.
//   - A fact that cannot be read or must not stand where it stands is damage:
//     [journal.ErrDamaged], with the session and the sequence. Nothing is skipped.
//   - Display states are bounded by their number and by the bytes of their facts.
//
// # Concurrency
//
// All methods may be called by any number of goroutines. A [Control] belongs to
// its caller. A display state is lent to one reader at a time, who may not keep
// it. There are no goroutines.
//
// # What it is not
//
// It guards nothing: what may be appended is decided where it is appended. It
// does not wait for facts to come.
package replay
