// Package harness holds the headless run contract, fak.harness.run/v1: one run as one
// totally ordered log.
package harness
