// Package harnesshttp speaks the headless run contract, fak.harness.run/v1, over HTTP and
// server-sent events.
//
// # What it promises
//
// A run's log is served as the records that package harness projects from the facts, from
// any cursor that the host gave, the same bytes each time. A cursor that was altered, that is
// of another run or store, or that lies ahead is refused, and nothing is delivered for it.
// An input has one effect, however often it is told: its first answer is looked up after the
// caller was authorised and before anything else is judged (R21).
//
// # Invariants
//
// A stream never gets more records than it was granted: credit belongs to one stream, is
// spent before a record is written and ends with it (R38). Who has no right to observe the
// session gets private payloads redacted, and nobody gets secret ones (R37). Presence of a
// reader changes nothing of a run, and the loss of one is no stop. No cursor, token or
// payload is logged.
//
// # Concurrency
//
// Handlers run in the goroutines of net/http, and start none. The ledgers of open streams are
// shared by the handlers of streams and of inputs, under a lock that is held for no I/O.
//
// # What it is not
//
// It keeps no log and numbers no record: the journal does (R35). It authorises nobody, which
// is the host's. docs/harness.md describes the routes for users.
package harnesshttp
