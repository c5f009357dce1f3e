package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad/client"
)

// Damaged entries of a list are told of, and are no failure of the command.
func TestDamagedEntriesAreTold(t *testing.T) {
	var told bytes.Buffer
	a := &app{Process: Process{Stderr: &told}}
	err := a.damaged(&client.DamageError{Entries: []client.DamagedEntry{{SessionID: "s\x1b1", InterruptID: "i"}, {ArtifactID: "a"}}})
	if err != nil || strings.Contains(told.String(), "\x1b") {
		t.Errorf("got %v and %q, want no error and no control character", err, told.String())
	}
	for _, want := range []string{"interrupt i\n", "artifact a\n", "mahati verify"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("told %q, want %q in it", told.String(), want)
		}
	}
	if other := errors.New("other"); a.damaged(other) != other {
		t.Error("another error is taken for damage")
	}
}
