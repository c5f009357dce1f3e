package blob

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// Digest is the SHA-256 digest of a content, which is its name.
type Digest [sha256.Size]byte

const digestPrefix = "sha256:"

// String returns the digest as "sha256:" and 64 hexadecimal digits in lower case.
func (d Digest) String() string { return digestPrefix + hex.EncodeToString(d[:]) }

// ErrNotADigest says that a text is not of the form that [Digest.String] has.
var ErrNotADigest = errors.New("a digest is sha256: and 64 hexadecimal digits in lower case")

// ParseDigest reads what [Digest.String] returns, and nothing else.
func ParseDigest(text string) (Digest, error) {
	digits, found := strings.CutPrefix(text, digestPrefix)
	if !found {
		return Digest{}, ErrNotADigest
	}
	return parseDigits(digits)
}

func parseDigits(digits string) (Digest, error) {
	var d Digest
	if len(digits) != hex.EncodedLen(len(d)) || strings.ToLower(digits) != digits {
		return Digest{}, ErrNotADigest
	}
	if _, err := hex.Decode(d[:], []byte(digits)); err != nil {
		return Digest{}, ErrNotADigest
	}
	return d, nil
}

// path returns where the content lies: one of 256 directories by the first byte, and
// in it a file that has the whole digest as its name.
func (d Digest) path() string { return d.shard() + "/" + hex.EncodeToString(d[:]) }

func (d Digest) shard() string { return hex.EncodeToString(d[:1]) }

// digestsOf returns the digests among the names of a directory, in order.
func digestsOf(names []string, shard string) []Digest {
	slices.Sort(names)
	var digests []Digest
	for _, name := range names {
		if d, err := parseDigits(name); err == nil && d.shard() == shard {
			digests = append(digests, d)
		}
	}
	return digests
}
