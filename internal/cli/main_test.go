package cli_test

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/cli"
	"github.com/mahati-host/mahati/internal/mcptool/mcptest"
	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program, too, when it is called mahati: by a script, or by a
// demo that starts itself again as a host. And it is the agent of the scripts.
func TestMain(m *testing.M) {
	acptest.Main()
	mcptest.Main()
	// Under the race detector a program waits a second before it exits; there are many.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=10"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"mahati": func() {
			limitFiles(os.Getenv(fileLimit))
			os.Exit(cli.Main(os.Args[1:], cli.Process{
				Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: "v0.0.0-test",
			}))
		},
	})
}

// fileLimit is a variable that says how long the program's files may grow, in bytes: a
// write beyond it fails, as one does on a disk that breaks.
const fileLimit = "MAHATI_TEST_FILE_LIMIT"

func limitFiles(bytes string) {
	if bytes == "" {
		return
	}
	n, err := strconv.ParseUint(bytes, 10, 63)
	if err != nil {
		panic(err)
	}
	signal.Ignore(syscall.SIGXFSZ) // the write shall fail, not the process
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}
