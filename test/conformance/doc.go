// Package conformance runs the conformance kit against this host, and against the same
// host spoiled on the way in one respect for each check.
//
// # What it promises
//
// The host passes every check, and every check can fail: under its own sabotage it does,
// for the reason that it names.
//
// # Invariants
//
// A sabotage stands between the kit and the host and changes one behaviour, as a host
// that has just this fault would show it. Each check has one, and each sabotage names
// its check.
//
// # Concurrency
//
// One host for all tests; each test has a proxy of its own in front of it.
//
// # What it is not
//
// It does not look into the host: what is wrong must show from outside.
package conformance
