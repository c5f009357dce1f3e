package client

import (
	"fmt"
	"io"
)

// Token is a bearer token. It prints, marshals and logs as a placeholder.
type Token string

const hiddenToken = "[token]"

// Format writes the placeholder for every verb.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hiddenToken) }

// String returns the placeholder.
func (Token) String() string { return hiddenToken }

// MarshalText returns the placeholder, for JSON and for structured logs.
func (Token) MarshalText() ([]byte, error) { return []byte(hiddenToken), nil }
