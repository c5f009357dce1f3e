package harness

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Why a cursor is refused. Nothing is delivered for one.
var (
	// ErrCursorVersion: it is of another version of the protocol.
	ErrCursorVersion = errors.New("the cursor is of another version")
	// ErrCursorRun: it is of another run.
	ErrCursorRun = errors.New("the cursor belongs to another run")
	// ErrCursorForged: its token is not one that this store gave for its position.
	ErrCursorForged = errors.New("the cursor's checkpoint is not one of this store")
	// ErrCursorAhead: the log is not as long.
	ErrCursorAhead = errors.New("the cursor is beyond the end of the log")
	// ErrCursorMalformed: the text is no cursor.
	ErrCursorMalformed = errors.New("malformed cursor")
)

// IsZero reports whether the cursor is the start of a log.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Token returns the whole cursor as one text for ids and queries (R38), "" for the start.
func (c Cursor) Token() string {
	if c.IsZero() {
		return ""
	}
	data, _ := json.Marshal(c, json.Deterministic(true)) // texts and a number
	return base64.RawURLEncoding.EncodeToString(data)
}

// maxToken bounds the text of a cursor.
const maxToken = 1_024

// ParseToken reads what Token wrote, and nothing else: each cursor has one text.
func ParseToken(token string) (Cursor, error) {
	if token == "" {
		return Cursor{}, nil
	}
	if len(token) > maxToken {
		return Cursor{}, ErrCursorMalformed
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return Cursor{}, ErrCursorMalformed
	}
	var c Cursor
	if err := json.Unmarshal(data, &c); err != nil || c.Token() != token {
		return Cursor{}, ErrCursorMalformed
	}
	return c, nil
}

// Signer makes and judges the cursors of one store (R35). It may be used by any goroutine.
type Signer struct {
	key   [32]byte
	epoch string
}

// NewSigner returns the signer of a store, by its key and its epoch.
func NewSigner(key [32]byte, epoch string) *Signer { return &Signer{key, epoch} }

// Cursor returns the cursor of a position: everything through sequence was applied.
func (s *Signer) Cursor(run string, sequence uint64) Cursor {
	return Cursor{Version: Version, RunID: run, Sequence: sequence, Checkpoint: s.checkpoint(run, sequence)}
}

// Verify accepts the cursors of a run that this store gave, up to the head of its log, and
// the zero cursor.
func (s *Signer) Verify(c Cursor, run string, head uint64) error {
	switch {
	case c.IsZero():
		return nil
	case c.Version != Version:
		return ErrCursorVersion
	case c.RunID != run:
		return ErrCursorRun
	case !hmac.Equal([]byte(c.Checkpoint), []byte(s.checkpoint(run, c.Sequence))):
		return ErrCursorForged
	case c.Sequence > head:
		return fmt.Errorf("%w: %d, the last record is %d", ErrCursorAhead, c.Sequence, head)
	}
	return nil
}

// purpose keeps these tokens apart from whatever else the key may sign.
const purpose = "mahati.harness.cursor/1"

// checkpoint is the token of a position. Each part has its length before it, so that no
// two positions are the same bytes.
func (s *Signer) checkpoint(run string, sequence uint64) string {
	mac := hmac.New(sha256.New, s.key[:])
	var length, position [8]byte
	binary.BigEndian.PutUint64(position[:], sequence)
	for _, part := range []string{purpose, s.epoch, Version, run, string(position[:])} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
