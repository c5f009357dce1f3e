package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

type harnessConvertCommand struct {
	To      string `enum:"log,narad" default:"log" help:"What to write: log, of a Narad export, or narad, of a run log."`
	RunID   string `name:"run" placeholder:"RUN" help:"The run whose log to write; it may be left out where the export has one."`
	Session string `default:"converted" help:"The session of the facts of a trace."`
	At      string `placeholder:"TIME" default:"1970-01-01T00:00:00Z" help:"The time of the facts of a trace: a run log has none."`
	File    string `arg:"" name:"file" help:"A file of JSON lines, or - for standard input."`
}

func (harnessConvertCommand) Help() string {
	return `Of an export of a session it makes the log of one of its runs, as the host serves it, but for the
tokens of checkpoints, which are empty: only the store can give them. Of a run log it makes a Narad
trace that mahati narad check takes; docs/harness.md lists what that cannot tell. The exit code is 0
when all was converted, 1 when the input is not sound, and 2 when the command was called wrongly.

Example: mahati export SESSION | mahati harness convert - > run.jsonl
Example: mahati harness convert --to narad run.jsonl | mahati narad check -`
}

// Run performs the command.
func (c harnessConvertCommand) Run(a *app) error {
	if _, err := time.Parse(time.RFC3339Nano, c.At); err != nil {
		return &fault{err: errors.New("--at must be a time like 2026-01-02T03:04:05Z"), code: exitUsage, hint: "mahati harness convert --help"}
	}
	in, err := a.openLog(c.File)
	if err != nil {
		return &fault{err: err, code: exitUsage}
	}
	defer in.Close()
	if c.To == "narad" {
		return c.trace(in, a)
	}
	return c.log(in, a.out)
}

// log writes the log of one run. Where no run is named it must be the only one, which is
// known at the end alone.
func (c harnessConvertCommand) log(in io.Reader, to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	var kept bytes.Buffer
	lines := lineReader{in: bufio.NewReaderSize(in, 64<<10), most: narad.MaxFrameBytes}
	converter, run := harness.NewConverter(), c.RunID
	for number, written := 1, 0; ; number++ {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return c.endLog(out, &kept, run, written)
		}
		if err != nil {
			return fmt.Errorf("read line %d: %w", number, err)
		}
		events, err := converted(converter, line)
		if err != nil {
			return &fault{err: fmt.Errorf("line %d: %w", number, err), code: exitFailed}
		}
		for _, e := range events {
			switch {
			case run == "":
				run = e.RunID
			case run != e.RunID && c.RunID == "":
				return &fault{err: fmt.Errorf("line %d: the export has more than one run", number), code: exitFailed, hint: "name one with --run, such as --run " + run}
			case run != e.RunID:
				continue
			}
			data, err := harness.Encode(harness.RedactClassed(e, true))
			if err != nil {
				return &fault{err: fmt.Errorf("line %d: %w", number, err), code: exitFailed}
			}
			written++
			if c.RunID == "" {
				kept.Write(append(data, '\n'))
			} else if _, err := out.Write(append(data, '\n')); err != nil {
				return err
			}
		}
	}
}

func (c harnessConvertCommand) endLog(out *bufio.Writer, kept *bytes.Buffer, run string, written int) error {
	if written == 0 {
		what := "there is no run in the export"
		if run != "" {
			what = fmt.Sprintf("there is no run %q in the export", run)
		}
		return &fault{err: errors.New(what), code: exitFailed}
	}
	if _, err := kept.WriteTo(out); err != nil {
		return err
	}
	return out.Flush()
}

// converted takes one line of an export.
func converted(c *harness.Converter, line []byte) ([]harness.Event, error) {
	rec, err := narad.DecodeStrict(line)
	if err != nil {
		return nil, err
	}
	return c.Add(rec)
}

// trace writes the facts of a run log.
func (c harnessConvertCommand) trace(in io.Reader, a *app) error {
	out := bufio.NewWriterSize(a.out, 64<<10)
	reader, tracer := harness.NewReader(in), harness.NewTracer(c.Session, c.At)
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &fault{err: err, code: exitFailed}
		}
		list, err := tracer.Add(e)
		if err != nil {
			return &fault{err: err, code: exitFailed}
		}
		for _, fact := range list {
			line, err := narad.Encode(fact)
			if err != nil {
				return &fault{err: err, code: exitFailed}
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	}
	if n := tracer.Skipped(); n > 0 {
		fmt.Fprintf(a.err, "%s became nothing\n", count(uint64(n), "record"))
	}
	return out.Flush()
}
