// Package field judges a host by what goes wrong in the field: faults that people
// reported about systems of this kind, each with the outcome its users are owed.
//
// # What it promises
//
// Each case of docs/field-cases.md that names a test of this package has one here, under
// its number. As far as a case can be seen from outside, it runs against the program
// itself, in a process of its own, over HTTP, with kill -9 where the case has a crash.
//
// # Invariants
//
// A case tells what is owed in its own comment, and nothing of how the host does it.
// Facts that a case collects are judged as strictly as a host is before it appends them.
//
// # Concurrency
//
// Cases run in parallel; each has a home of its own.
//
// # What it is not
//
// It is no load test and no benchmark. What only the fault hooks of a package can show is
// tested in that package; docs/field-cases.md says where.
package field
