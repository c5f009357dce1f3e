package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
)

// Process is what the command line has of the world around it.
type Process struct {
	Stdin          *os.File
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Version is what the program calls itself, empty for what the build says.
	Version string
}

// commands is the grammar.
type commands struct {
	Serve    serveCommand     `cmd:"" group:"host" help:"Run the host."`
	Verify   verifyCommand    `cmd:"" group:"host" help:"Check the store of a home that no host uses."`
	Token    tokenCommands    `cmd:"" group:"host" help:"Make, list and revoke access tokens."`
	Config   configCommands   `cmd:"" group:"host" help:"Check the configuration, or print a documented one."`
	Run      runCommand       `cmd:"" group:"session" help:"Create a session, send it a prompt and follow it."`
	Attach   attachCommand    `cmd:"" group:"session" help:"Follow a session from where you left it."`
	Ls       lsCommand        `cmd:"" group:"session" help:"List sessions."`
	Show     showCommand      `cmd:"" group:"session" help:"Show what happened in a session, and who decided it."`
	Send     sendCommand      `cmd:"" group:"session" help:"Send a message to a session."`
	Stop     stopCommand      `cmd:"" group:"session" help:"Stop the active run of a session."`
	Session  sessionCommands  `cmd:"" group:"session" help:"Set a session up anew, branch it, put it away."`
	Workflow workflowCommands `cmd:"" group:"session" help:"Run a workflow, or check its file."`
	Inbox    inboxCommand     `cmd:"" group:"session" help:"List what waits for a decision, in all sessions."`
	Resolve  resolveCommand   `cmd:"" group:"session" help:"Decide what waits for a decision."`
	Export   exportCommand    `cmd:"" group:"session" help:"Write the facts of a session as JSON lines."`
	Artifact artifactCommands `cmd:"" group:"session" help:"List and read what came out of a session."`
	Executor executorCommand  `cmd:"" group:"other" help:"Run tools for a host elsewhere on this machine."`
	Demo     demoCommands     `cmd:"" group:"other" help:"Show it live, without key or network."`
	Narad    naradCommands    `cmd:"" group:"other" help:"Tools for the Narad protocol."`
	Narya    naryaCommands    `cmd:"" group:"other" help:"Tools for the Narya host API."`
	Harness  harnessCommands  `cmd:"" group:"other" help:"Tools for the headless run contract."`
	Conform  conformCommand   `cmd:"" name:"conformance" group:"other" help:"Check a host against narad/v1, from outside."`
	Version  versionCommand   `cmd:"" group:"other" help:"Print the version."`
}

const description = `A durable host for agent sessions.

Exit codes: 0 done, 1 failed, 2 called wrongly, 4 the store of a host broke,
130 a run was left with Ctrl-C.

Example: mahati demo --yes`

// app is what commands share.
type app struct {
	Process
	out, err console
}

// Main performs the command that args name and returns the exit code.
func Main(args []string, p Process) int {
	a := &app{Process: p, out: newConsole(p.Stdout, p.Getenv), err: newConsole(p.Stderr, p.Getenv)}
	command, code := a.parse(args)
	if command == nil {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	return a.report(command.Run(a))
}

// parse reads the command line. Without a command there is nothing left to do but to
// exit with the code.
func (a *app) parse(args []string) (*kong.Context, int) {
	helped := false
	parser, err := newParser(a.Process, func(int) { helped = true })
	if err != nil {
		return nil, a.report(fmt.Errorf("build the command line: %w", err))
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil, exitOK
	case err != nil:
		return nil, a.report(&fault{err: err, code: exitUsage, hint: helpFor(err)})
	}
	return command, exitOK
}

// newParser makes the grammar. Exit is called after help was printed.
func newParser(p Process, exit func(int)) (*kong.Kong, error) {
	return kong.New(&commands{},
		kong.Name("mahati"), kong.Description(description), kong.Writers(p.Stdout, p.Stderr), kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.PostBuild(setOffExamples),
		kong.ExplicitGroups([]kong.Group{
			{Key: "session", Title: "Sessions"}, {Key: "host", Title: "Host"}, {Key: "other", Title: "Other"},
		}),
	)
}

// helpFor is the command that explains what was called wrongly. A command that is meant where none is
// named is not what was called.
func helpFor(err error) string {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) || wrong.Context == nil || wrong.Context.Selected() == nil {
		return "mahati --help"
	}
	called := wrong.Context.Selected()
	if called.Parent != nil && called.Parent.DefaultCmd == called && !slices.Contains(wrong.Context.Args, called.Name) {
		called = called.Parent
	}
	return called.FullPath() + " --help"
}

// report tells a person what went wrong, and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	f := explain(err)
	if f.err != nil {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.err.red("mahati:"), oneLine(f.err.Error()))
	}
	if f.hint != "" {
		fmt.Fprintf(a.Stderr, "  %s %s\n", a.err.dim("try:"), oneLine(f.hint))
	}
	return f.code
}

// The exit codes.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitBroken   = 4
	exitDetached = 130
)

// fault is an error with what a person at a terminal needs besides.
type fault struct {
	err  error // nil when everything is said already
	code int
	hint string
}

func (f *fault) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}

func (f *fault) Unwrap() error { return f.err }

// usage is a command that was called wrongly in a way that the grammar cannot tell.
func usage(hint, format string, args ...any) error {
	return &fault{err: fmt.Errorf(format, args...), code: exitUsage, hint: hint}
}

// explain makes a fault of any error.
func explain(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{err: err, code: exitFailed, hint: hintFor(err)}
}
