//go:build !race

package pebble_test

// The rounds of both crash suites in every run of the tests.
const (
	defaultRounds = 100
	defaultKills  = 10
)
