package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mahati-host/mahati/harness"
)

type harnessCommands struct {
	Check    harnessCheckCommand     `cmd:"" help:"Judge a run log strictly, and list all that is wrong with it."`
	Convert  harnessConvertCommand   `cmd:"" help:"Make a run log of an export, or a Narad trace of a run log."`
	Run      harnessRunCommand       `cmd:"" help:"Run a prompt headless, and print what comes."`
	Tail     harnessTailCommand      `cmd:"" help:"Print the log of a run, and follow it."`
	Protocol harnessProtocolCommands `cmd:"" help:"Tools for logs of fak.harness.run/v1."`
}

func (harnessCommands) Help() string { return "Example: mahati harness check run.jsonl" }

type harnessProtocolCommands struct {
	Project projectCommand `cmd:"" passthrough:"" help:"Show what a run log says."`
}

func (harnessProtocolCommands) Help() string { return projectExample }

// projectCommand reads its flags itself, by the rules of the public program that it agrees
// with: one or two dashes, the last of a repeated flag, nothing after the first argument
// that is no flag.
type projectCommand struct {
	Args []string `arg:"" optional:"" help:"See mahati harness protocol project --help."`
}

const projectExample = "Example: mahati harness protocol project --input run.jsonl --view cli"

// Help is for the command's parents: the command itself prints projectUsage.
func (projectCommand) Help() string { return projectExample }

const projectUsage = `Usage: mahati harness protocol project --input FILE|- [flags]

Show what a run log says, after all of it was read without an error. Payloads of the class
secret are never shown, private ones when you ask for them.

  --input FILE       A log of JSON lines, or - for standard input.
  --view VIEW        cli, tui or json; json where it is not given.
  --show-private     Show payloads of the class private, and of records without a class.

The exit code is 0 when the log was read, 1 when it could not be or is not sound, and 2 when
the command was called wrongly. Then nothing is on standard output.

Example:

    mahati harness protocol project --input run.jsonl --view cli
`

// Run performs the command.
func (c projectCommand) Run(a *app) error {
	flags := flag.NewFlagSet("project", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	input := flags.String("input", "", "")
	view := flags.String("view", string(harness.ViewJSON), "")
	private := flags.Bool("show-private", false, "")
	help := flags.Bool("help", false, "")
	err := flags.Parse(c.Args)
	switch {
	case errors.Is(err, flag.ErrHelp): // -h, as the public program has it
		_, err = io.WriteString(a.Stderr, projectUsage)
		return errors.Join(err, &fault{code: exitUsage})
	case err != nil:
		return usage(projectHelp, "%w", err)
	case *help:
		_, err = io.WriteString(a.Stdout, projectUsage)
		return err
	case *input == "":
		return usage(projectHelp, "--input is required")
	}
	return a.project(*input, harness.View(*view), *private)
}

const projectHelp = "mahati harness protocol project --help"

// project shows the log of a file. Whether the view is known is asked last.
func (a *app) project(name string, view harness.View, private bool) error {
	in, err := a.openLog(name)
	if err != nil {
		return &fault{err: fmt.Errorf("io: %w", err), code: exitFailed}
	}
	defer in.Close()
	sight := harness.SeePublic
	if private {
		sight = harness.SeePrivate
	}
	log, err := harness.Project(in, sight)
	if err != nil {
		return &fault{err: err, code: exitFailed}
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error like any other
	err = a.writeView(log, view)
	if errors.Is(err, harness.CodeInput) {
		return usage(projectHelp, "--view must be cli, tui, or json")
	}
	if err != nil {
		return &fault{err: fmt.Errorf("io: write the view: %w", err), code: exitFailed}
	}
	a.tellFindings(log.Findings())
	return nil
}

// writeView writes a view as it is, and to a terminal so that nothing in it acts there.
func (a *app) writeView(log *harness.Reducer, view harness.View) error {
	switch {
	case !a.out.terminal:
		return log.WriteView(a.out, view, nil)
	case view != harness.ViewJSON:
		return log.WriteView(a.out, view, visible)
	}
	var text strings.Builder
	if err := log.WriteView(&text, view, nil); err != nil {
		return err
	}
	_, err := io.WriteString(a.out, visibleJSON(text.String()))
	return err
}

// tellFindings says what is worth a look in a log that was read.
func (a *app) tellFindings(first []harness.Finding, all uint64) {
	for _, found := range first {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.err.yellow("note:"), oneLine(found.Error.Error()))
	}
	if more := all - uint64(len(first)); more > 0 {
		fmt.Fprintf(a.Stderr, "%s and %d more\n", a.err.yellow("note:"), more)
	}
}

// openLog opens a file, or standard input for "-".
func (a *app) openLog(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(name)
}

// visible is escape for text that must stay on its line.
func visible(text string) string {
	return escape(lineEnds.Replace(text))
}

var lineEnds = strings.NewReplacer("\n", `\n`, "\r", `\r`)

// visibleJSON is visible for JSON text, which stays the same JSON: what acts on a terminal
// can only stand in its strings.
func visibleJSON(text string) string {
	if !strings.ContainsFunc(text, harmful) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !harmful(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
