// Package refusal makes problems of what the kernel refuses, for the bindings over HTTP.
//
// # What it promises
//
// [Table.ProblemOf] translates an error by the first row whose error it is. A problem is itself, and
// what stands in no row is returned as it came: the edge translates it, or calls it internal and
// shows nothing of it. [Kernel] has the refusals that mean the same in all contracts which answer
// with problem documents, in the words that these share; a binding puts its own rows before them.
//
// # Invariants
//
// A row says nothing that whoever may call the binding must not know. The problem of a row is never
// given out itself, so that nobody changes it for others.
//
// # Concurrency
//
// Tables are not changed once they were made, and may be used by many goroutines.
//
// # What it is not
//
// It does not write answers, and decides nothing: the kernel has refused before.
package refusal
