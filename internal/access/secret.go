package access

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// A Secret is the text of a token or cookie, kept from being printed by mistake.
type Secret struct{ text string }

const redacted = "[secret]"

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String is a placeholder.
func (Secret) String() string { return redacted }

// GoString is a placeholder, for %#v.
func (Secret) GoString() string { return redacted }

// LogValue is a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Format writes a placeholder whatever the verb: %x would go past String.
func (Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// MarshalText refuses, so that no encoder writes a secret unasked.
func (Secret) MarshalText() ([]byte, error) {
	return nil, errors.New("a secret is not for encoding")
}

const secretBytes = 32

// newSecret draws 256 bits. The prefix lets people and scanners of leaked
// secrets see what a string is.
func newSecret(random io.Reader, prefix string) (Secret, error) {
	var bits [secretBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return Secret{}, fmt.Errorf("draw a secret: %w", err)
	}
	return Secret{text: prefix + base64.RawURLEncoding.EncodeToString(bits[:])}, nil
}

// wellFormed says whether text may be a secret with that prefix, which bounds
// what is hashed.
func wellFormed(text, prefix string) bool {
	return len(text) == len(prefix)+base64.RawURLEncoding.EncodedLen(secretBytes) && text[:len(prefix)] == prefix
}

type hash [sha256.Size]byte

func hashOf(text string) hash { return sha256.Sum256([]byte(text)) }
