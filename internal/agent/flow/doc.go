// Package flow is the workflows of docs/workflow.md (R19): a file of named nodes that run
// agents, ask people, keep data and choose where to go on.
//
// # What it promises
//
// [Read] makes a [Definition] of a file, or says what is wrong with it and where. A
// [Progress] is made of the facts of one workflow alone, and [Progress.Next] says what
// comes next: the same facts always give the same answer, so a host that dies between
// any two of them goes on where it was. [Progress.Kind] makes the agent of a step.
//
// # Invariants
//
// A definition that was read is whole: each edge leads to a node of the file, each
// choice has a path for the case that no condition holds, and conditions and templates
// end for every data. Text of a person or an agent is data, never a template. The
// script of a node runs no commands: whoever may start a workflow is not who configures
// the host.
//
// # Concurrency
//
// A Definition may be shared. A Progress belongs to one goroutine. The agent of a node
// with parallel branches starts one goroutine a branch and waits for all of them.
//
// # What it is not
//
// It records nothing and knows no clock: the host decides, appends, and tells it what
// was appended. Conditions are no programming language.
package flow
