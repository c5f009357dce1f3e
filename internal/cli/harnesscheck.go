package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/harness"
)

type harnessCheckCommand struct {
	JSON bool   `name:"json" help:"Print one JSON object for each finding, and the counts as the last."`
	File string `arg:"" name:"file" help:"A log of JSON lines, or - for standard input."`
}

func (harnessCheckCommand) Help() string {
	return `Judges a run log by every rule of fak.harness.run/v1, and by Mahati's own where that is silent,
and lists all that is wrong with it, not only the first. A note is no violation. The exit code is
0 when there was no violation, 1 when there was one, and 2 when the command was called wrongly or
the file could not be read.

Example: mahati harness check run.jsonl`
}

// maxListed bounds what is printed of one log; the rest is counted.
const maxListed = 1000

func (c harnessCheckCommand) Run(a *app) error {
	in, err := a.openLog(c.File)
	if err != nil {
		return &fault{err: err, code: exitUsage}
	}
	defer in.Close()
	report := &checkReport{out: bufio.NewWriterSize(a.out, 64<<10), json: c.JSON}
	summary, err := harness.Check(in, report.found)
	if err == nil {
		err = report.end(summary)
	}
	if err := errors.Join(err, report.out.Flush()); err != nil {
		return &fault{err: err, code: exitUsage}
	}
	if summary.Violations > 0 {
		return &fault{code: exitFailed}
	}
	return nil
}

// checkReport prints findings as they come.
type checkReport struct {
	out    *bufio.Writer
	json   bool
	listed uint64
}

func (r *checkReport) found(f harness.Finding) error {
	if r.listed == maxListed {
		return nil
	}
	r.listed++
	if r.json {
		return r.printJSON(f)
	}
	word := ""
	if f.Note {
		word = "note: "
	}
	_, err := fmt.Fprintf(r.out, "%s%s\n", word, oneLine(f.Error.Error()))
	return err
}

func (r *checkReport) end(s harness.Summary) error {
	if r.json {
		return r.printJSON(s)
	}
	if more := s.Violations + s.Notes - r.listed; more > 0 {
		fmt.Fprintf(r.out, "and %d more\n", more)
	}
	word := "ok"
	if s.Violations > 0 {
		word = "refused"
	}
	_, err := fmt.Fprintf(r.out, "%s: %s, %s, %s, last sequence %d\n", word, count(s.Records, "record"), count(s.Violations, "violation"), count(s.Notes, "note"), s.Sequence)
	return err
}

func (r *checkReport) printJSON(value any) error {
	if err := json.MarshalWrite(r.out, value); err != nil {
		return err
	}
	_, err := io.WriteString(r.out, "\n")
	return err
}
