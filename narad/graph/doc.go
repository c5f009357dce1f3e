// Package graph derives graphs from the facts of a session and applies the records
// that carry them (specification §9.7, R29).
//
// # What it promises
//
// A [State] is the graph of one run tree, or of one workflow, as its facts tell it:
// runs, tool calls and interrupts, or nodes and the paths between them, with how each
// stands. Each fact that changes it yields a [Change], which is a graph.delta;
// [State.Snapshot] is the whole as graph.snapshot, and [State.Record] what a host
// sends. [Graphs] does this for a session's run trees one after another. A [View]
// is the client's half: it applies snapshots and deltas of any host, holds back those
// that are ahead of the authority, and says when it needs a snapshot.
//
// # Invariants
//
//   - Graph, revision, cursor and bytes are a function of the facts: derived whole, or
//     resumed from [State.Encode] at any fact, or rebuilt from the records sent, the
//     canonical form ([State.Canonical], [View.Canonical]) is the same.
//   - The revision is the number of facts that changed the graph, the cursor the place
//     of the last of them. A delta is never empty and touches /nodes/i and /edges/i
//     alone. Nodes stand in the order of their first facts, edges by from, to, kind.
//   - Gate runs are folded: what they ask hangs at what they ask for (R10).
//   - A fact costs the same in a large graph as in a small one, but for the logarithm
//     and the few bytes that finding an edge's place takes.
//   - A View never shows a graph that its authority does not cover, and keeps at most
//     256 records and 4 MiB for each graph while it waits.
//
// # Concurrency
//
// A State, a Graphs and a View belong to one goroutine each. They use no clock,
// randomness, lock or I/O.
//
// # What it is not
//
// A graph decides nothing: authority alone says what is. The package does not check
// that facts may follow one another, which package narad/session does, and it fetches
// nothing.
package graph
