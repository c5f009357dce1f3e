package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/client"
)

func TestPositions(t *testing.T) {
	p := positionsOf(t.TempDir())
	if got := p.last(); got != "" {
		t.Errorf("last of none: got %q", got)
	}
	for n, id := range []string{"a", "..", "b:c.d"} {
		if err := p.keep(client.Position{SessionID: id, Sequence: int64(n), Epoch: "e"}); err != nil {
			t.Fatalf("keep %q: %v", id, err)
		}
		at := time.Unix(int64(1000+n), 0)
		if err := os.Chtimes(p.file(id), at, at); err != nil {
			t.Fatal(err)
		}
		if got, want := p.find(id), (position{id, int64(n), "e"}); got != want {
			t.Errorf("find %q: got %v, want %v", id, got, want)
		}
		if got := p.last(); got != id {
			t.Errorf("last after %q: got %q", id, got)
		}
	}
	for _, id := range []string{"", "../x", "a/b"} {
		if err := p.keep(client.Position{SessionID: id}); err != nil {
			t.Errorf("keep %q: %v", id, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(p.dir), "*", "*")); len(files) != 3 {
		t.Errorf("kept %q, want three files", files)
	}
	if err := os.WriteFile(p.file("a"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := p.find("a"); got != (position{}) {
		t.Errorf("of a damaged file: got %v, want the beginning", got)
	}
}

func TestPositionsAreBounded(t *testing.T) {
	p := positionsOf(t.TempDir())
	for n := range maxPositions + 5 {
		if err := p.keep(client.Position{SessionID: fmt.Sprint("s", n), Sequence: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(p.newestFirst()); got != maxPositions {
		t.Errorf("%d positions are kept, want %d", got, maxPositions)
	}
	if got := p.find(fmt.Sprint("s", maxPositions+4)); got.Sequence != 1 {
		t.Errorf("the last one is gone: %v", got)
	}
}
