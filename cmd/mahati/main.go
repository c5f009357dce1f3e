// Command mahati is a durable host for agent sessions, its client and its tools.
package main

import (
	"os"

	"github.com/mahati-host/mahati/internal/cli"
)

// version is set when a release is linked.
var version string

func main() {
	os.Exit(cli.Main(os.Args[1:], cli.Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: version,
	}))
}
