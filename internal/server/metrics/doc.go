// Package metrics shows the figures of a host to Prometheus (DESIGN §10).
//
// # What it promises
//
// [Metrics.Handler] answers in the text format: how long appends and commits take, how
// large commit groups are, what waits, who follows and how far behind, agents, free
// space, requests, and what recovery took. docs/http.md lists each name with its meaning.
//
// # Invariants
//
// It is the one package that knows Prometheus: the others count, and it reads. Labels
// are a route, a status, a version: no text of a client, no id and nothing without a
// bound. Names begin with mahati_ and end in their unit.
//
// # Concurrency
//
// A Metrics may be used by many goroutines once it was given its sources. What observes
// takes no lock that a scrape holds for long. A scrape reads the sources one after the
// other, so its figures are of about one time.
//
// # What it is not
//
// It lets nobody in and keeps nobody out: package server does, for whom the policy
// allows to read the metrics of the whole host.
package metrics
