// Package acp runs any agent that speaks the Agent Client Protocol, as a subprocess over
// its standard input and output. docs/agents.md says how to configure one.
//
// # What it promises
//
// A prompt is a run. What the agent tells is recorded in the order in which it tells it,
// each line before the next one is read, so a full pipe holds back an agent that is
// faster than the disk. A permission is asked in the order of arrival and then waits
// aside while the run goes on (R10). Whatever the agent does, answers garbage, hangs,
// dies or ignores a stop, a run ends in legal order and the process group is gone when
// Close returns.
//
// # Invariants
//
// Nothing that comes outside a prompt, or between session/load and its answer, is a fact
// (R17). Every tool call that was begun is finished once. Free-form values keep their
// bytes. Nothing of a line is logged; of the agent's own log a bounded part is, without
// the values of the environment. Errors tell in our words what happened, never in the
// agent's.
//
// # Concurrency
//
// A subprocess has five goroutines: one reads, one writes, one reads the agent's log, one
// waits for its end and one cleans up; and one more for each open permission. Lines are
// handled by the reader alone. All are gone when Close returns.
//
// # What it is not
//
// It has no files and no terminals: where [Options] offer any, they are tools of the run's
// executor. Agents have their own besides, and what they do there shows in their tool
// calls. It cannot go on with a turn after a restart (R17).
package acp
