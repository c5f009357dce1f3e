// Package archtest holds this module to the rules it was designed by.
//
// # What it promises
//
// Each rule is one small function from the parsed sources to a list of
// violations, and one small test that runs it over the whole module and gives
// the reason in its message. The import table is imports.txt, the table of
// goroutines is the one in ARCHITECTURE.md: both are read as they stand, so the
// documents cannot say something other than the code.
//
// # Invariants
//
// Sources are read and parsed in this process, whatever their build tags. No
// command is run: the test cache knows which files a test opened, but not which
// files a command it started did, and would report a violation as passed.
//
// Every rule is itself tested on a small fixture, so that it has been seen to
// fail.
//
// # Concurrency
//
// A loaded module is read-only; rules may run at the same time.
//
// # What it is not
//
// It has no types, only syntax. A rule that would need types (which method of
// which interface is called) is left to review, vet and staticcheck.
package archtest
