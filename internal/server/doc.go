// Package server is the HTTP edge that all bindings share: what happens to a
// request before a binding sees it, and what a binding needs to answer.
//
// # What it promises
//
// A request that reaches a binding came to an allowed Host, from no foreign
// Origin, by an authenticated principal (PrincipalOf), to a host that serves, and
// with a body of at most MaxBody. Everything else is answered here, with RFC 9457
// problem documents that carry a code and no status member (R23). While the host
// recovers, everything but /healthz is 503 with Retry-After, never 401 or 404
// (R17).
//
// Streams.Open begins an event stream: headers and the first flush at once, a
// deadline for the progress of each write, counts per host and principal, and an
// end for all of them when the server drains, with nothing written after it.
//
// # Invariants
//
// No token, cookie, header, query, path or body is logged, and no error says to
// a client more than its code. A handler that panics answers 500, or cuts its
// connection if it had begun to answer. A client is ended when it takes less than
// 32 KiB of what waits for it in a write timeout, which is about 1 KiB/s, and
// never otherwise for being slow; that goes for pages as for streams. Each
// response is written by one goroutine, that of its handler.
//
// # Concurrency
//
// A Server and a Streams may be used by many goroutines, a Stream by its handler
// alone. The goroutines are those of net/http, one a connection. Shutdown returns
// when every handler has.
//
// # What it is not
//
// It holds no routes but health and sign-in, and authorises nothing: host.Do and
// host.Attach do, by the principal. It knows no event-stream syntax; what is
// written to a Stream are whole frames, made by package sse.
package server
