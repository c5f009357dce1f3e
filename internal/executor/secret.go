package executor

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
)

// secretBytes makes 256 bits: nobody guesses one.
const secretBytes = 32

// draw makes a secret. The prefix tells people and scanners of leaked secrets what a
// string is.
func draw(random io.Reader, prefix string) (string, error) {
	var bits [secretBytes]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return "", fmt.Errorf("draw a secret: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(bits[:]), nil
}

// maxSecret bounds what is hashed for a caller.
const maxSecret = 128

// hash is what is stored of a secret, in hexadecimal. The zero hash is that of none.
type hash string

func hashOf(secret string) hash {
	sum := sha256.Sum256([]byte(secret))
	return hash(hex.EncodeToString(sum[:]))
}

// fits reports whether the hash is that of a secret, in a time that tells nothing
// of it.
func (h hash) fits(secret string) bool {
	if h == "" || len(secret) > maxSecret {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(h), []byte(hashOf(secret))) == 1
}
