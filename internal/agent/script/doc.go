// Package script is an agent that does what a file says: it needs no model and no
// network. docs/script.md describes the file.
//
// # What it promises
//
// A file is read strictly: what is not understood is refused with its line. The same
// file and the same answers give the same facts. A run goes on after a restart of the
// host: what its facts tell is not told or done again, a tool call that began is never
// begun again whatever became of it, an open question is awaited, and text that was
// cut goes on with exactly the missing rest (R17).
//
// # Invariants
//
// Each step has a path, such as "2/branch1/0", by which its facts name it (agentId,
// R4). Steps that are told apart by nothing but their order in a run (its messages and
// its reasoning) are in one order: of parallel branches at most one speaks in the run
// itself, and none asks or ends the run. Commands of a file run in a process group of
// their own, which is gone when their step ends or the run is stopped.
//
// # Concurrency
//
// An agent performs one run at a time; Steer and Close may come at any time. A run
// starts one goroutine for each parallel branch and two for each command, and has
// joined them all when it returns.
//
// # What it is not
//
// It expresses no running workflows, state, views, attachments,
// artifacts, traces or debug facts.
package script
