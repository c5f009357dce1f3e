package referencetest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFind(t *testing.T) {
	root := t.TempDir()
	reference := filepath.Join(root, "shared", "reference")
	inside := filepath.Join(root, "clone", "internal", "x")
	other := filepath.Join(root, "other")
	for _, dir := range []string{reference, inside, other} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lonely := t.TempDir()
	for _, tc := range []struct {
		name, named, from string
		want              string
		ok                bool
	}{
		{"beside the repository", "", inside, reference, true},
		{"named", other, inside, other, true},
		{"named and missing", filepath.Join(root, "gone"), inside, filepath.Join(root, "gone"), false},
		{"nowhere", "", lonely, "", false},
	} {
		got, ok := find(tc.named, tc.from)
		if got != tc.want || ok != tc.ok {
			t.Errorf("%s: find(%q, %q) = %q, %v; want %q, %v", tc.name, tc.named, tc.from, got, ok, tc.want, tc.ok)
		}
	}
}

func TestDir(t *testing.T) {
	here := t.TempDir()
	for _, tc := range []struct {
		name, named, required string
		want                  outcome
	}{
		{"there", here, "", outcome{dir: here}},
		{"missing", filepath.Join(here, "gone"), "", outcome{skipped: true}},
		{"missing and required", filepath.Join(here, "gone"), "1", outcome{failed: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(Env, tc.named)
			t.Setenv(RequiredEnv, tc.required)
			double := &double{TB: t}
			dir := Dir(double)
			if got := (outcome{dir, double.skipped, double.failed}); got != tc.want {
				t.Errorf("with %s=%q %s=%q: got %+v, want %+v", Env, tc.named, RequiredEnv, tc.required, got, tc.want)
			}
		})
	}
}

type outcome struct {
	dir             string
	skipped, failed bool
}

// double notes how a test was ended, and lets it go on.
type double struct {
	testing.TB
	skipped, failed bool
}

func (d *double) Skipf(string, ...any)  { d.skipped = true }
func (d *double) Fatalf(string, ...any) { d.failed = true }
