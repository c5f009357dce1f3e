//go:build !race

package pebble_test

// defaultRounds is the number of power losses in every run of the tests.
const defaultRounds = 100
