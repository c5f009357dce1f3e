package cli_test

import (
	"os"
	"testing"

	"github.com/mahati-host/mahati/internal/cli"
	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program, too, when it is called mahati: by a script, or by a
// demo that starts itself again as a host.
func TestMain(m *testing.M) {
	// Under the race detector a program waits a second before it exits; there are many.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=10"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"mahati": func() {
			os.Exit(cli.Main(os.Args[1:], cli.Process{
				Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: "v0.0.0-test",
			}))
		},
	})
}
