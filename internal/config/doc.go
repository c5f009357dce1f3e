// Package config reads Mahati's configuration: one documented file in the home,
// the environment and flags.
//
// # What it promises
//
// Load returns a Config in which every value is valid: flags win over the
// environment, the environment over the file, the file over the defaults. What
// is wrong is told all at once, each Error with its place (file and line,
// variable or flag), the key, the value and the rule. A key that is not known is
// an error, so that a misspelt limit is not a missing one. Example is the
// documented file with every setting at its default.
//
// # Invariants
//
// One table (settings.go) holds all settings: key, text, rule and place in
// Config. The file, the environment, flags and Example are read off it, so none
// can know a setting that another does not. No secret is configured: agents get
// theirs by naming variables of the environment to pass on.
//
// # Concurrency
//
// Everything is a value. Load reads the file once; a Config is not to be changed
// once it is shared.
//
// # What it is not
//
// It opens no port and starts no agent. The sizes of ids, messages, bodies and
// events are part of the contract and cannot be configured.
package config
