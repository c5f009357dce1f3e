// Package naryahttp speaks the Narya host API, version 1, over HTTP and server-sent events.
//
// # What it promises
//
// GET /v1/events is the one stream of the host: each event once, in the order of its number,
// from any number that is kept, the same bytes each time (R39). A session's own stream is a
// part of it and nothing else. Every other operation answers at once; what comes of it is on
// the stream. A refusal is one envelope with a code of narya.Catalogue, given before anything
// else was written, and nothing was done.
//
// # Invariants
//
// Ids are UUIDs on the wire and ours inside (R5): what a path names is looked up, and what
// cannot be found, is not reached by the caller, or began before this contract was served
// (R1) is not there (NRY-0002). A reader holds up nobody: it is a cursor, and one that falls
// too far behind is dropped, to come back where it was. No id of an event that was not sent
// is lost by the end of a stream.
//
// # Concurrency
//
// Handlers run in the goroutines of net/http, and start none.
//
// # What it is not
//
// It keeps no state but that of open streams, and makes no event: package narya does, of
// facts. It authorises nobody, which is the host's. docs/narya.md describes the operations
// for users.
package naryahttp
