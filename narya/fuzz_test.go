package narya

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzDecode: nothing panics, a refusal is an Invalid that says why, and what was read is
// written and read again as the same event, in the same bytes.
func FuzzDecode(f *testing.F) {
	for _, text := range examples(f) {
		f.Add([]byte(text))
	}
	for _, text := range []string{
		"", "null", "{}", `{"id":"1","type":"x"}`, `{"id":"1","id":"1"}`, "\ufeff{}", "{\"id\":\"\xff\"}",
		`{"id":"1","type":"context-pruned","timestamp":"2026-11-30T00:00:00Z","payload":{"count":1e400}}`,
		`{"id":"1","type":"ladder-changed","timestamp":"2026-11-30T00:00:00Z","payload":{"notices":["\ud83e",7]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		input := bytes.Clone(data)
		e, err := Decode(data)
		if !bytes.Equal(data, input) {
			t.Fatal("decoding changed its input")
		}
		if err != nil {
			var refusal *Invalid
			if !errors.As(err, &refusal) || refusal.Code == "" || refusal.Rule == "" {
				t.Fatalf("a refusal that does not say why: %v", err)
			}
			return
		}
		written, err := Encode(e)
		if err != nil {
			var refusal *Invalid
			if errors.As(err, &refusal) && refusal.Code == TooLarge {
				return // numbers and texts can be written longer than they were
			}
			t.Fatalf("what was read cannot be written: %v\n%s", err, data)
		}
		again := mustDecode(t, string(written))
		if !cmp.Equal(again, e) {
			t.Fatalf("read as another event: %s\n%s", cmp.Diff(e, again), written)
		}
		if twice := mustEncode(t, again); twice != string(written) {
			t.Fatalf("written in two ways\n%s\n%s", written, twice)
		}
	})
}
