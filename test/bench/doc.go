// Command bench measures a host against the speed and size it is meant to have, each
// figure as a ratio to something plain that was measured in the same run: a raw log, a
// web server that serves the same bytes from memory, a loop over a slice. `make bench`
// runs it; docs/performance.md says what each line means.
//
// # What it promises
//
// A host under measurement is the real program, `mahati serve`, in a process of its own;
// its clients and what it is compared with are in others. What is compared takes turns of
// a second or so, so that a machine that is busy with something else is as busy for
// both. Each line of the report names its figure, what it is compared with, the goal,
// whether that is met, and what the figure is limited by. What could not be measured is
// a line, too.
//
// # Invariants
//
// It ends every process that it started and leaves no file. A wrong answer of a host is
// an error, not a figure.
//
// # Concurrency
//
// Sections run one after another. What runs at once inside of one is its subject.
//
// # What it is not
//
// It is no test: a goal that is missed is reported and fails nothing.
package main
