//go:build race

package pebble_test

// Fewer rounds under the race detector, which is ten times slower here.
const (
	defaultRounds = 20
	defaultKills  = 4
)
