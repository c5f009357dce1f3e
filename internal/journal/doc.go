// Package journal is the port to the one store of truth: streams of facts, the
// numbers given to them once, and the index rows written with them.
//
// # What it promises
//
// [Appender.Append] takes the facts of one accepted command in one session
// together with the index rows they change, compares the session's head and
// its owner's term, checks conditions, gives host offsets, event numbers and
// log numbers, and writes all of it or nothing. It returns when the batch is
// durable and visible. Facts are opaque bytes: they come back as they went in.
//
// # Invariants
//
//   - No read of any kind passes the durable mark. An engine commits, syncs,
//     publishes a snapshot, moves the mark, calls every OnDurable function and
//     only then lets Append return; every read uses the published snapshot.
//   - Refused before writing and failed in writing are two things. A refusal
//     ([ErrConflict], [ErrCondition], [ErrStorageFull], [ErrTooLarge],
//     [ErrInvalid], [ErrDeleted], [ErrRefused], [ErrClosed], a context's error)
//     changed nothing. A failed write or sync ([ErrBroken]) is final for the
//     store: nothing is retried, reads stay where they were, the next open
//     finds out what the disk kept.
//   - Sequences of a session are 1, 2, 3, ...; so are the sequences of a run
//     tree, of a workflow and of a log within their session, the host offsets
//     and, from the store's seed on, the event numbers. Numbers become visible
//     in order.
//   - A deleted session leaves a tombstone: its id answers [ErrDeleted] for
//     ever.
//   - Damage costs the sessions it touches and is reported by name
//     ([DamagedError], and [Damage] of a row in a list); nothing is skipped in
//     silence. A row that a batch writes is whole, whatever stood there.
//
// # Concurrency
//
// Every method of a [Journal] may be called by any number of goroutines. One
// goroutine, the committer, writes; it belongs to the engine and Close joins
// it. OnDurable functions run on the committer: they may read, they must not
// block and must not append. Of two batches that expect the same head, one is
// refused.
//
// # What it is not
//
// It knows no Narad, no clock but the one it is given for seeds and free
// space, and no authorisation. It does not decide what may be appended, beyond
// numbers and sizes. It has no read transaction across calls: two reads may see
// two durable marks, the second never the older one.
//
// Files: port.go is the interface, fact.go, batch.go, row.go and query.go its
// values; committer.go, space.go, terms.go, rules.go, filler.go, verifier.go and
// rowwire.go are what engines are built of; memory*.go is the in-memory engine.
// Package journaltest holds the suite that every engine passes.
package journal
