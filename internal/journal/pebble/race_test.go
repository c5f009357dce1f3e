//go:build race

package pebble_test

// defaultRounds is less under the race detector, which is ten times slower here.
const defaultRounds = 20
