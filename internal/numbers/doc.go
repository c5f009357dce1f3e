// Package numbers says how many numbers a fact takes in the contracts that number what
// they show (R35, R39).
//
// # What it promises
//
// [Of] is a pure function of the control state before a fact and the fact. The owner of a
// session calls it before it applies the fact; verify calls it again and finds the same.
//
// # Invariants
//
// The numbers of a stored fact never change: a mapping that would give others is another
// version, which what started before it never gets (R1).
//
// # Concurrency
//
// Of keeps nothing. It reads the states it is given, which are the caller's.
//
// # What it is not
//
// It makes no records: package harness does.
package numbers
