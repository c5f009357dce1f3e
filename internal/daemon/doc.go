// Package daemon is the composition root: it opens what a host is made of, wires it by
// hand, drains it and closes it, in the one right order.
//
// # What it promises
//
// [Start] returns when the host serves: the home is locked, the store is open, what a
// dead host left open is repaired. While it repairs, requests get 503. [Daemon.Close]
// ends streams at a frame boundary, leaves runs to be recovered by the next start, and
// flushes the store.
//
// # Invariants
//
// One daemon a home, decided by an operating system lock before any data is touched.
// Nothing listens beyond loopback without TLS or a proxy that ends it. The socket of the
// home is reached by its owner alone from its first appearance on; what is no socket of a
// dead host is left alone, and at the end only the daemon's own file is removed.
//
// # Concurrency
//
// Start and Close own every goroutine that is not of a part; Close joins all of them
// and may be called twice.
//
// # What it is not
//
// It has no logic of its own.
package daemon
