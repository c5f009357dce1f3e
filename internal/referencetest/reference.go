// Package referencetest finds the reference folder: the contracts' own texts,
// schemas and traces, which are not part of this repository.
//
// # What it promises
//
// [Dir] gives the path of the folder, or ends the test that asked: skipped with
// one line where the folder is missing, failed where it was required.
//
// # Invariants
//
// A test that reads the folder is named TestReference..., so that
// `make reference` can run all of them and let none of them skip.
//
// # Concurrency
//
// Dir may be called from any test goroutine that may call t.Fatal.
//
// # What it is not
//
// It does not read or check what is in the folder.
package referencetest

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	// Env names the folder, where it is not beside the repository.
	Env = "MAHATI_REFERENCE"
	// RequiredEnv, set to 1, makes a missing folder a failure.
	RequiredEnv = "MAHATI_REFERENCE_REQUIRED"
)

// Dir gives the absolute path of the reference folder. A test without it skips,
// or fails where [RequiredEnv] is 1.
func Dir(t testing.TB) string {
	t.Helper()
	from, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the reference folder: %v", err)
	}
	dir, ok := find(os.Getenv(Env), from)
	switch {
	case ok:
		return dir
	case os.Getenv(RequiredEnv) == "1":
		t.Fatalf("the reference folder is required and missing: set %s (now %q) or put it at shared/reference beside the repository", Env, os.Getenv(Env))
	default:
		t.Skipf("no reference folder; set %s to run this test", Env)
	}
	return ""
}

// Find gives the absolute path of the folder, for tests that judge more where it is there
// and lack nothing where it is not.
func Find() (dir string, ok bool) {
	from, err := os.Getwd()
	if err != nil {
		return "", false
	}
	return find(os.Getenv(Env), from)
}

// find gives the folder that was named or, where none was, the nearest
// shared/reference at or above from. A named folder that is missing is not
// replaced by another.
func find(named, from string) (dir string, ok bool) {
	if named != "" {
		dir, err := filepath.Abs(named)
		return dir, err == nil && isDir(dir)
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		if candidate := filepath.Join(dir, "shared", "reference"); isDir(candidate) {
			return candidate, true
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
	}
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
