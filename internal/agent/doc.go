// Package agent is the port between the host and what performs its runs.
//
// # What it promises
//
// An [Agent] performs the runs of one session, one after another, through a
// [Handle] that records facts. A method of the handle returns when what it
// recorded is durable; text and output alone wait a moment for more, within a bound.
// Order is kept: what an agent tells first stands first.
//
// # Invariants
//
// A handle records only what the specification allows at that point; the rest is
// refused with an error and changes nothing. After a stop nothing new starts
// ([ErrStopped]); after the end of a run nothing is recorded ([ErrEnded]). The host,
// not the agent, writes a run's terminal, from the [Ending] that the agent returns.
//
// # Concurrency
//
// A handle may be used by several goroutines, for parallel tools and nested runs; one
// record is in flight at a time. An agent's Run is called for one run at a time.
//
// # What it is not
//
// It knows no wire format, no client and no policy: whether a permission is asked of
// a person, or allowed or denied by a rule, is the host's decision.
package agent
