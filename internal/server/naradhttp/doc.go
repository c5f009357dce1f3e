// Package naradhttp speaks Narad over HTTP and server-sent events.
//
// # What it promises
//
// Each route translates a request for the host and the host's answer for the client,
// and nothing else. Facts are served as the bytes that were stored. A stream begins at
// once, carries one record a frame, and shows everything after its cursor without a
// hole or a repeat. Commands answer with the protocol's eight words; everything else
// that goes wrong is a problem document with a code.
//
// # Invariants
//
// Authority is never filtered by profile: a hole in the sequence would look like a
// loss (R25). What is derived from it, hydrate records and watch events, comes behind the
// facts it was derived from, only to who asked, and is a function of them (R28, R29).
// Frames of facts and of watch events alone carry an id, and it is the event's. Every
// input is bounded and checked before the host sees it.
//
// # Concurrency
//
// Handlers run in the goroutines of net/http, and start none.
//
// # What it is not
//
// It authenticates nobody, which is the edge's, and authorises nobody, which is the
// host's. docs/http.md describes the routes for users.
package naradhttp
