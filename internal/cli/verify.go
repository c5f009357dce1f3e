package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/internal/journal"
)

type verifyCommand struct {
	homeFlag
	JSON bool `name:"json" help:"Print the report as one JSON object."`
}

func (verifyCommand) Help() string {
	return `Reads every stored byte, checks numbers, checksums and the chain, and derives every index row
again. No host may run on the home. The exit code is 1 when something does not fit.

Example: mahati verify --json`
}

func (c verifyCommand) Run(ctx context.Context, a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	// Opening would make an empty store, which is no answer to a misspelt home.
	if _, err := os.Stat(filepath.Join(cfg.Home, storeName)); errors.Is(err, fs.ErrNotExist) {
		return &fault{err: fmt.Errorf("there is no store in %s", cfg.Home), code: exitFailed, hint: "name the home with --home"}
	}
	report, err := daemon.Verify(ctx, cfg, a.verifyProgress())
	if a.err.terminal {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
	if errors.Is(err, journal.ErrLocked) {
		return &fault{err: fmt.Errorf("a host runs on %s", cfg.Home), code: exitFailed, hint: "stop it first: verify needs the store for itself"}
	}
	if err != nil {
		return err
	}
	if err := c.print(a, report); err != nil {
		return err
	}
	if !report.OK() {
		return &fault{code: exitFailed}
	}
	return nil
}

// storeName is the directory of the store in a home.
const storeName = "store"

func (a *app) verifyProgress() func(journal.VerifyProgress) {
	if !a.err.terminal {
		return nil
	}
	return func(p journal.VerifyProgress) {
		fmt.Fprintf(a.err, "\r\x1b[K%s", a.err.dim(fmt.Sprintf("%s, %s, %d MiB", count(p.Sessions, "session"), count(p.Facts, "fact"), p.Bytes>>20)))
	}
}

func (c verifyCommand) print(a *app, r journal.Report) error {
	if c.JSON {
		return a.printJSON(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "%s %s\n", a.out.red(string(p.Code)), oneLine(joined(": ", placeOf(p), p.Detail)))
	}
	word := "ok"
	if !r.OK() {
		word = count(r.ProblemCount, "problem")
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, %s in %s, %s (store %s, format %d)\n", word,
		count(r.Sessions, "session"), count(r.Facts, "fact"), count(r.Batches, "write"), count(r.Rows, "row"), r.Epoch, r.Format)
	return err
}

// placeOf says where a problem is, as far as that is known.
func placeOf(p journal.Problem) string {
	session, sequence := "", ""
	if p.Session != "" {
		session = "session " + strconv.Quote(p.Session)
	}
	if p.Sequence > 0 {
		sequence = "at " + strconv.FormatUint(p.Sequence, 10)
	}
	return joined(" ", session, sequence, p.Row)
}
