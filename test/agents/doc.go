// Package agents runs public coding agents through internal/agent/acp, from a prompt
// through a permission to the end, against a scripted model on loopback.
//
// # What it promises
//
// test/agents/run installs the agents from the npm registry into a directory and runs the
// test here, which prints what it saw of each. No key is needed, and nothing but the
// registry is reached on purpose.
//
// # Invariants
//
// An agent gets a home of its own below the directory, and only what it needs to find the
// model.
//
// # Concurrency
//
// One agent at a time: they are large.
//
// # What it is not
//
// It is no part of `go test ./...`: without the directory the test is skipped. What was
// seen is written down in docs/agents.md.
package agents
