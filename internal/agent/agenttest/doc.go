// Package agenttest performs the runs of an agent without a host: it keeps a session
// in memory and records what the agent tells, as a host would.
//
// # What it promises
//
// [Session] implements the whole of [agent.Handle] over the state machine of package
// session with a host's strictness: every fact is numbered, encoded and admitted, or
// refused. A test answers questions by a function or by hand, steers, stops, and can
// cut the session off between any two batches, as a killed host would be. What is open
// then is closed as recovery does (R17), and the run goes on with its past.
//
// # Invariants
//
// A batch is recorded whole or not at all. After a cut nothing is recorded, and what
// the session knows is built again from the recorded bytes alone. Ids are counted, so
// the same agent in a synctest bubble tells the same story every time.
//
// # Concurrency
//
// All methods may be called from several goroutines. Inside a synctest bubble every
// wait is on the bubble's time.
//
// # What it is not
//
// It keeps no policy, no queue and no commands: those are the host's own, and tested
// there.
package agenttest
