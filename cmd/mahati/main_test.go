package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test binary is the program where this variable is set.
const asProgram = "MAHATI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestProgram: arguments go in, and output and exit code come out.
func TestProgram(t *testing.T) {
	for _, c := range []struct {
		args     string
		code     int
		out, err string // parts
	}{
		{"version --json", 0, `"protocol":"narad/v1"`, ""},
		{"ls", 1, "", "no host runs on"},
		{"nonsense", 2, "", "try: mahati --help"},
	} {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), asProgram+"=1", "MAHATI_HOME="+t.TempDir())
		var out, told strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &told
		code := 0
		var exit *exec.ExitError
		if err := cmd.Run(); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(told.String(), c.err) || (c.err == "") != (told.Len() == 0) {
			t.Errorf("mahati %s: got exit code %d, %q and %q; want %d, %q and %q", c.args, code, out.String(), told.String(), c.code, c.out, c.err)
		}
	}
}

// TestReaderIsGone: a view of a log that nobody takes any more ends with exit code 1, and not
// by a signal, of which a shell's pipeline tells nothing.
func TestReaderIsGone(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := exec.Command(program, "harness", "protocol", "project", "--input", os.DevNull)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	var told strings.Builder
	cmd.Stdout, cmd.Stderr = w, &told
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(told.String(), "io: write the view") {
		t.Errorf("got %v and %q", err, told.String())
	}
}
