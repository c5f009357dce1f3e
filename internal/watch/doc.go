// Package watch derives watch events: short notes that something changed, for
// clients that catch up by reading the authority (specification §8, R28).
//
// # What it promises
//
// [Session] gives the events of one fact on the stream of its session, [Workspace]
// the one on the stream of its workspace. [Coalesce] and [CoalesceWorkspace] give
// the least of them for facts that wait together: for each key the event of the
// greatest revision. [Parse] reads where the id of a watch event stands, and [Rest]
// what follows it among the events of its fact, so that a stream goes on after any
// id that it sent.
//
// # Invariants
//
//   - An event is a function of the one fact it covers, and for a workspace of the
//     fact's host offset. Nothing is stored, and every replay gives the same bytes.
//   - Coalescing leaves events out and changes none.
//   - On one stream revisions never fall. Within one revision the order is node,
//     workflow, run, session, so that the session's event ends what its fact yields.
//   - The cursor of an event is the place of its fact, so it covers all that events
//     left out before it would have told.
//   - A key has one event at most for each revision, and an id names one event.
//
// # Concurrency
//
// Functions keep no state.
//
// # What it is not
//
// It does not decide when an event is sent: that is after the authority it covers,
// and never because somebody connected. It does not know which workspace a session
// is in.
package watch
