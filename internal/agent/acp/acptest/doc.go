// Package acptest is an agent for tests: a program that speaks the Agent Client Protocol
// and does what its prompts say.
//
// # What it promises
//
// A test binary becomes the agent when its first argument is [Arg], if its TestMain calls
// [Main] first; [Command] returns the command line. A prompt is a script, a step a line;
// the steps are listed at [Main]. What it writes it writes by hand, so that it is a second
// opinion on the protocol.
//
// # Invariants
//
// Steps happen in their order. It ends when its input ends, if it was not told otherwise.
//
// # Concurrency
//
// One goroutine reads, one performs the prompt.
//
// # What it is not
//
// It is no agent to learn from: most of what it can do no agent should.
package acptest
