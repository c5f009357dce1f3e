// Package sessiontest is the second opinion about narad/session: a model of the
// session state machine that is slow and obvious, and traces to try both on.
//
// # What it promises
//
// [Model] judges one line after another and tells the state that follows from the
// lines it accepted. [Trace] makes traces that a host may emit, of every kind of
// record. [Mutate] spoils a trace, and [Wild] makes traces that wander off at every
// step and yet go deep, since they number their events as the model expects them.
//
// # Invariants
//
// The model keeps no state but the list of what it accepted. Every rule is a
// question put to that list, so nothing can be stale; an answer costs a walk over
// the whole history. Traces are a function of the random source alone: a seed that
// once failed fails again.
//
// # Concurrency
//
// A [Model] belongs to one goroutine. The functions keep no state.
//
// # What it is not
//
// It is no decoder: whether one record is sound is asked of package narad. It is
// built for comparison with the real state machine, and shares no code with it.
package sessiontest
