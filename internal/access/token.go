package access

import (
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// A Token describes an access token without its secret.
type Token struct {
	ID      string
	Name    string
	Grant   Grant
	Created time.Time
	Expires time.Time // zero: never
	Revoked time.Time // zero: not
}

// Usable returns nil if the token is valid at that time, else an error that is
// ErrUnauthenticated.
func (t Token) Usable(now time.Time) error {
	switch {
	case !t.Revoked.IsZero():
		return fmt.Errorf("token %s is revoked: %w", t.ID, ErrUnauthenticated)
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return fmt.Errorf("token %s has expired: %w", t.ID, ErrUnauthenticated)
	}
	return nil
}

func (t Token) principal() Principal {
	return Principal{id: t.ID, name: t.Name, grant: t.Grant}
}

// A record is a token as it is kept.
type record struct {
	Token
	hash hash
}

// find compares with every record, so that the time it takes tells nothing of
// how close a guess came.
func find(records []record, want hash) (Token, bool) {
	at := -1
	for i := range records {
		if subtle.ConstantTimeCompare(records[i].hash[:], want[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Token{}, false
	}
	return records[at].Token, true
}

const (
	fileVersion = 1
	maxTokens   = 4096
)

// tokensFile and tokenEntry are the form of the file.
type tokensFile struct {
	Version int          `json:"version"`
	Tokens  []tokenEntry `json:"tokens"`
}

type tokenEntry struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	SHA256     string    `json:"sha256"`
	Roles      []Role    `json:"roles"`
	Workspaces []string  `json:"workspaces,omitzero"`
	Executors  []string  `json:"executors,omitzero"`
	Created    time.Time `json:"created"`
	Expires    time.Time `json:"expires,omitzero"`
	Revoked    time.Time `json:"revoked,omitzero"`
}

func encodeRecords(records []record) ([]byte, error) {
	file := tokensFile{Version: fileVersion, Tokens: make([]tokenEntry, len(records))}
	for i, r := range records {
		file.Tokens[i] = tokenEntry{
			ID: r.ID, Name: r.Name, SHA256: hex.EncodeToString(r.hash[:]),
			Roles: r.Grant.Roles, Workspaces: r.Grant.Workspaces, Executors: r.Grant.Executors,
			Created: r.Created, Expires: r.Expires, Revoked: r.Revoked,
		}
	}
	data, err := json.Marshal(file, jsontext.WithIndent("  "))
	return append(data, '\n'), err
}

// decodeRecords is strict: a file with anything in it that this version does not
// know may hold a limit that it would not keep.
func decodeRecords(data []byte) ([]record, error) {
	var file tokensFile
	if err := json.Unmarshal(data, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if file.Version != fileVersion {
		return nil, fmt.Errorf("version %d, this program reads %d", file.Version, fileVersion)
	}
	if len(file.Tokens) > maxTokens {
		return nil, fmt.Errorf("%d tokens, at most %d are allowed", len(file.Tokens), maxTokens)
	}
	records := make([]record, 0, len(file.Tokens))
	seen := make(map[string]bool)
	for i, entry := range file.Tokens {
		r, err := entry.record()
		if err != nil {
			return nil, fmt.Errorf("token %d: %w", i, err)
		}
		if seen[r.ID] || seen[entry.SHA256] {
			return nil, fmt.Errorf("token %d is there twice", i)
		}
		seen[r.ID], seen[entry.SHA256] = true, true
		records = append(records, r)
	}
	return records, nil
}

func (e tokenEntry) record() (record, error) {
	grant := Grant{Roles: e.Roles, Workspaces: e.Workspaces, Executors: e.Executors}
	if _, err := NewPrincipal(e.ID, e.Name, grant); err != nil {
		return record{}, err
	}
	if e.ID == ownerID {
		return record{}, fmt.Errorf("id %q belongs to no token", ownerID)
	}
	r := record{Token: Token{ID: e.ID, Name: e.Name, Grant: grant, Created: e.Created, Expires: e.Expires, Revoked: e.Revoked}}
	// The value stays out of the error: somebody may have put a token there.
	if len(e.SHA256) != hex.EncodedLen(len(r.hash)) {
		return record{}, fmt.Errorf("sha256 has %d digits", len(e.SHA256))
	}
	if _, err := hex.Decode(r.hash[:], []byte(e.SHA256)); err != nil {
		return record{}, fmt.Errorf("sha256 is not hexadecimal")
	}
	if e.Created.IsZero() {
		return record{}, fmt.Errorf("created is missing")
	}
	return r, nil
}

// newTokenID makes a UUIDv7 (R4) from the time and the randomness it is given.
func newTokenID(now time.Time, random io.Reader) (string, error) {
	var id uuid.UUID
	if _, err := io.ReadFull(random, id[6:]); err != nil {
		return "", fmt.Errorf("draw a token id: %w", err)
	}
	ms := now.UnixMilli()
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id.String(), nil
}

// tokensOf copies, so that callers cannot change what the store holds.
func tokensOf(records []record) []Token {
	tokens := make([]Token, len(records))
	for i, r := range records {
		tokens[i] = r.Token
		tokens[i].Grant = r.Grant.clone()
	}
	return tokens
}

// named returns the index of the token with that id, or of the one unrevoked
// token with that name, or -1.
func named(records []record, idOrName string) int {
	if i := slices.IndexFunc(records, func(r record) bool { return r.ID == idOrName }); i >= 0 {
		return i
	}
	return slices.IndexFunc(records, func(r record) bool { return r.Name == idOrName && r.Revoked.IsZero() })
}
