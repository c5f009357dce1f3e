package harness_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"pgregory.net/rapid"
)

const runA, runB = "0190-a", "0190-b"

// R35: a cursor is good for its store, version, run and sequence, and for nothing else.
func TestCursors(t *testing.T) {
	signer := harness.NewSigner([32]byte{1}, "epoch")
	good := signer.Cursor(runA, 7)
	with := func(change func(*harness.Cursor)) harness.Cursor {
		c := good
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		cursor harness.Cursor
		want   error
	}{
		"its own":             {good, nil},
		"the start":           {harness.Cursor{}, nil},
		"a signed start":      {signer.Cursor(runA, 0), nil},
		"another sequence":    {with(func(c *harness.Cursor) { c.Sequence = 6 }), harness.ErrCursorForged},
		"beyond the end":      {signer.Cursor(runA, 8), harness.ErrCursorAhead},
		"far beyond":          {signer.Cursor(runA, 1<<64-1), harness.ErrCursorAhead},
		"another run":         {signer.Cursor(runB, 7), harness.ErrCursorRun},
		"its run changed":     {with(func(c *harness.Cursor) { c.RunID = runB }), harness.ErrCursorRun},
		"no run":              {with(func(c *harness.Cursor) { c.RunID = "" }), harness.ErrCursorRun},
		"another version":     {with(func(c *harness.Cursor) { c.Version += ".1" }), harness.ErrCursorVersion},
		"no version":          {with(func(c *harness.Cursor) { c.Version = "" }), harness.ErrCursorVersion},
		"no token":            {with(func(c *harness.Cursor) { c.Checkpoint = "" }), harness.ErrCursorForged},
		"upper case":          {with(func(c *harness.Cursor) { c.Checkpoint = strings.ToUpper(c.Checkpoint) }), harness.ErrCursorForged},
		"a space":             {with(func(c *harness.Cursor) { c.Checkpoint += " " }), harness.ErrCursorForged},
		"a start of no token": {with(func(c *harness.Cursor) { c.Sequence, c.Checkpoint = 0, "" }), harness.ErrCursorForged},
		"another key":         {harness.NewSigner([32]byte{2}, "epoch").Cursor(runA, 7), harness.ErrCursorForged},
		"another epoch":       {harness.NewSigner([32]byte{1}, "epoch2").Cursor(runA, 7), harness.ErrCursorForged},
		// Parts that stand together as the same bytes.
		"parts that moved": {harness.NewSigner([32]byte{1}, "epoch"+harness.Version).Cursor(runA, 7), harness.ErrCursorForged},
	} {
		if err := signer.Verify(c.cursor, runA, 7); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v (%+v)", name, err, c.want, c.cursor)
		}
	}
}

// Clients keep cursors, and logs hold them: what a store gave it gives for ever.
func TestCursorsAreForEver(t *testing.T) {
	const want = "eyJ2ZXJzaW9uIjoiZmFrLmhhcm5lc3MucnVuL3YxIiwicnVuX2lkIjoiMDE5MC1hIiwic2VxdWVuY2UiOjcsImNoZWNrcG9pbnQiOiIwMWRkOGRhMDQwZGU1YmJmODM5MGQ4NWFiZmFlZjlkZWY5NDIyYjkxYmUwZDEzMTJmNDZmNmZiMmQwOGM1NGNiIn0"
	if got := harness.NewSigner([32]byte{1, 2, 3}, "epoch").Cursor(runA, 7).Token(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever bit of a cursor's text is flipped, it is refused.
func TestNoBitOfACursorCanBeFlipped(t *testing.T) {
	signer := harness.NewSigner([32]byte{1}, "epoch")
	token := signer.Cursor(runA, 1234).Token()
	for at := range len(token) * 8 {
		flipped := []byte(token)
		flipped[at/8] ^= 1 << (at % 8)
		if c, err := harness.ParseToken(string(flipped)); err == nil && signer.Verify(c, runA, 1<<62) == nil {
			t.Errorf("bit %d: %q is taken as %+v", at, flipped, c)
		}
	}
	// The same of the bytes inside the text, where a flip is often another cursor.
	inner, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(inner) * 8 {
		flipped := append([]byte{}, inner...)
		flipped[at/8] ^= 1 << (at % 8)
		c, err := harness.ParseToken(base64.RawURLEncoding.EncodeToString(flipped))
		if err == nil && signer.Verify(c, runA, 1<<62) == nil {
			t.Errorf("bit %d: %q is taken as %+v", at, flipped, c)
		}
	}
}

// A cursor's text is read back, and no other text is the same cursor.
func TestTokens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := harness.NewSigner([32]byte{1}, "e").Cursor(rapid.StringMatching(`[A-Za-z0-9._:-]{1,128}`).Draw(rt, "run"), rapid.Uint64().Draw(rt, "sequence"))
		if got, err := harness.ParseToken(c.Token()); got != c || err != nil {
			rt.Fatalf("got %+v %v, want %+v", got, err, c)
		}
	})
	if c, err := harness.ParseToken(""); !c.IsZero() || err != nil || c.Token() != "" {
		t.Errorf("the start: %+v %v %q", c, err, c.Token())
	}
	text := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, bad := range []string{
		"!", "a", text("{}"), text("null"), text("[]"), text(`{"version":"v"}`),
		text(`{"version":"v","run_id":"r","sequence":1,"checkpoint":"c","more":1}`),
		text(`{"version":"v","run_id":"r","sequence":1.0,"checkpoint":"c"}`),
		text(`{"version":"v","run_id":"r","sequence":-1,"checkpoint":"c"}`),
		text(`{"version":"v","run_id":"r","sequence":1,"checkpoint":"c"} `),
		text(`{"run_id":"r","version":"v","sequence":1,"checkpoint":"c"}`),
		text(`{"version":"v","run_id":"r","sequence":1,"checkpoint":"c"}`) + "=",
		strings.Repeat("A", 1<<20),
	} {
		if c, err := harness.ParseToken(bad); !errors.Is(err, harness.ErrCursorMalformed) {
			t.Errorf("%.60q: got %+v %v", bad, c, err)
		}
	}
}
