// Package conformance shows whether a host keeps to narad/v1, over HTTP and from outside.
//
// # What it promises
//
// [Run] performs independent checks against a running host and reports of each whether
// it passed, failed and how, or was skipped and why. Each check cites the section of the
// specification or the ruling that it stands for. [Traces] are golden traces: records
// with what a strict and a lenient reader make of each, for those who write a reader of
// their own. [Agent] is a script for Mahati's scripted agent that does what the checks
// ask of an agent; docs/conformance.md says the same in words, for other hosts.
//
// # Invariants
//
// A check looks at what any client may see and knows nothing of the host's inside. It
// makes its own sessions, whose ids begin with "conformance-", and touches no other. It
// ends at its first failure. A report has no token, lease or other secret in it.
//
// # Concurrency
//
// Run keeps nothing and may be called by many at once. Checks are performed one after
// another, since a host under load may be slow and is still right.
//
// # What it is not
//
// It is no load test, and it cannot see what a host does in a crash. A host that passes
// may still be wrong where no check looks.
package conformance
