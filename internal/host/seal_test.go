package host_test

import (
	"errors"
	"testing"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
)

// unstarted is a host over a store of its own.
func unstarted(t *testing.T) *host.Host {
	t.Helper()
	j, err := journal.NewMemory(journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := feed.New(j, feed.Options{})
	h := host.New(j, f, nil, host.Options{})
	t.Cleanup(func() {
		_ = h.Close()
		f.Close()
		_ = j.Close()
	})
	return h
}

// A sealed place opens in its store and its scope, and nowhere else.
func TestSealedPlaces(t *testing.T) {
	h, other := unstarted(t), unstarted(t)
	const place = "row of session-x"
	sealed := h.Seal(place, "list", "a", "bc")
	if got, err := h.Unseal(sealed, "list", "a", "bc"); err != nil || got != place {
		t.Errorf("got %q, %v, want %q", got, err, place)
	}
	for _, scope := range [][]string{nil, {"list"}, {"list", "a"}, {"list", "ab", "c"}, {"list", "a", "bc", ""}, {"a", "list", "bc"}, {"listabc"}} {
		if got, err := h.Unseal(sealed, scope...); !errors.Is(err, host.ErrInvalid) || got != "" {
			t.Errorf("scope %q: got %q, %v, want ErrInvalid", scope, got, err)
		}
	}
	if got, err := other.Unseal(sealed, "list", "a", "bc"); !errors.Is(err, host.ErrInvalid) || got != "" {
		t.Errorf("another store: got %q, %v, want ErrInvalid", got, err)
	}
	if h.Seal(place, "list") == h.Seal(place, "lisT") || h.Seal("1", "list") == h.Seal("2", "list") {
		t.Error("two places or scopes look alike")
	}
	if got, err := h.Unseal("", "list"); h.Seal("", "list") != "" || got != "" || err != nil {
		t.Errorf("no place: got %q, %v", got, err)
	}
}
