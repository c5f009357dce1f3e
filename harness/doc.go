// Package harness holds the headless run contract, fak.harness.run/v1: one run as one
// totally ordered log.
//
// # What it promises
//
// A log is JSON lines, each an [Event]. [Encode] writes one and [Reader] reads them. A
// [Reducer] folds them, [Project] does so with a whole log, and the result is a [Snapshot]
// for programs or one of the three views of the contract, byte for byte as the public
// implementation writes them. [Check] reads a log strictly and lists all that is wrong with
// it. [DecodeInput] reads what a client tells a run. What a consumer may see is decided by
// [Redact], [RedactClassed] and [Sight].
//
// A log is made of the facts of a session: [Count] says how many records a fact has, so that
// they are numbered as it is appended, and [Run.Project] makes them of the fact alone, the
// same bytes each time. A [Signer] makes and judges the cursors of one store, a [Policy]
// classifies records. A [Converter] makes logs of an export of any host, a [Tracer] makes a
// trace of a log.
//
// The default rules are those of the public implementation, but where the page asks for
// something else (docs/harness.md lists where).
//
// # Invariants
//
// What a mapping from facts to records gives never changes: testdata holds what it gave. A
// fact that no record can express is none, and never an error.
//
// Reading a log takes time that grows with its bytes, and memory for one line and for what
// the log says, however long it is. A record that is refused changes nothing. Every refusal
// is an [*Error] with a class, the line, the record's sequence and id, and the rule that was
// broken; its text holds no payload. What encoding/json would say of a line is what is said
// here (R38): a faster scanner takes only what leaves no doubt.
//
// # Concurrency
//
// Functions keep no state. A Reader and a Reducer belong to one goroutine. Nothing here
// locks, starts goroutines, reads a clock or draws random numbers.
//
// # What it is not
//
// It keeps no log and answers no client: the host does. It does not look into payloads of
// types that v1 does not have.
package harness
