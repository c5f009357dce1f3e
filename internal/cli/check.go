package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

type naradCommands struct {
	Check  checkCommand  `cmd:"" help:"Judge a trace of Narad records, one JSON record a line."`
	Schema schemaCommand `cmd:"" help:"Print the JSON Schema of Narad records."`
}

func (naradCommands) Help() string { return "Example: mahati narad check session.jsonl" }

type checkCommand struct {
	JSON     bool     `name:"json" help:"Print one JSON object for each line, and the state at the end as the last."`
	Lenient  bool     `help:"Judge as a careful client does, not as a host must."`
	Profiles []string `placeholder:"a,b" help:"Profiles that are negotiated, by name or wire id; \"core\" is none. Otherwise all."`
	File     string   `arg:"" name:"file" help:"A file of JSON lines, or - for standard input."`
}

func (checkCommand) Help() string {
	return `Each line is one record. A line that is blank or longer than 1 MiB is rejected like any
other that is no record. The exit code is 0 when nothing was refused (a gap is a refusal), 1 when
something was, and 2 when the command was called wrongly or the file could not be read.

Example: mahati export SESSION | mahati narad check --json -`
}

func (c checkCommand) Run(a *app) error {
	without, err := withoutProfiles(c.Profiles)
	if err != nil {
		return err
	}
	in, err := c.open(a)
	if err != nil {
		return &fault{err: err, code: exitUsage}
	}
	defer in.Close()
	out := bufio.NewWriterSize(a.out, 64<<10)
	j := newJudge(c.Lenient, without)
	if c.JSON {
		err = j.printAll(in, out)
	} else {
		err = j.tell(in, out)
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return &fault{err: err, code: exitUsage}
	}
	if j.refused() > 0 {
		return &fault{code: exitFailed}
	}
	return nil
}

func (c checkCommand) open(a *app) (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(c.File)
}

// withoutProfiles returns the profiles that are not negotiated.
func withoutProfiles(names []string) (narad.Profile, error) {
	if len(names) == 0 {
		return 0, nil
	}
	without := narad.AllProfiles
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "core" || name == "" {
			continue
		}
		profile, ok := narad.ParseProfile(name)
		if !ok {
			known := strings.Join(narad.AllProfiles.IDs(), ", ")
			return 0, usage("one of core, "+known, "narad/v1 has no profile %q", name)
		}
		without &^= profile
	}
	return without, nil
}

// judge reduces a trace, line by line. It holds the state and one line.
type judge struct {
	decoder narad.Decoder
	state   *session.State
	lines   int
	results [session.Kinds]int
}

func newJudge(lenient bool, without narad.Profile) *judge {
	return &judge{
		decoder: narad.Decoder{Strict: !lenient, Without: without},
		state: session.New(session.Options{
			Without: without, Remember: session.RememberAll,
			Graphs: graph.NewView("", graph.ViewOptions{Strict: !lenient}),
		}),
	}
}

// verdict is what became of one line.
type verdict struct {
	Line   int    `json:"line"`
	Result string `json:"result"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// take judges one line.
func (j *judge) take(line []byte) session.Result {
	j.lines++
	result := j.judge(line)
	j.results[result.Kind]++
	return result
}

func (j *judge) judge(line []byte) session.Result {
	record, err := j.decoder.Decode(line)
	if err != nil {
		return malformed(err)
	}
	if j.decoder.Strict {
		return j.state.Admit(record)
	}
	return j.state.Apply(record)
}

func malformed(err error) session.Result {
	result := session.Result{Kind: session.Rejected, Code: session.Code(narad.CodeInvalidRecord)}
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		result.Code, result.Detail = session.Code(refusal.Code), refusal.Rule
		if refusal.Path != "" {
			result.Detail = refusal.Path + ": " + refusal.Rule
		}
	}
	return result
}

func (j *judge) refused() int { return j.results[session.Rejected] + j.results[session.Gap] }

// each calls found with the verdict on each line.
func (j *judge) each(in io.Reader, found func(verdict) error) error {
	lines := lineReader{in: bufio.NewReaderSize(in, 64<<10), most: narad.MaxFrameBytes}
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read line %d: %w", j.lines+1, err)
		}
		r := j.take(line)
		if err := found(verdict{j.lines, r.Kind.String(), string(r.Code), r.Detail}); err != nil {
			return fmt.Errorf("write the verdict on line %d: %w", j.lines, err)
		}
	}
}

// printAll writes what programs read.
func (j *judge) printAll(in io.Reader, out io.Writer) error {
	err := j.each(in, func(v verdict) error {
		if err := json.MarshalWrite(out, v); err != nil {
			return err
		}
		_, err := io.WriteString(out, "\n")
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "{\"snapshot\":%s}\n", j.state.SnapshotJSON())
	return err
}

// tell writes what people read: the lines that were not simply applied, and a summary.
func (j *judge) tell(in io.Reader, out io.Writer) error {
	err := j.each(in, func(v verdict) error {
		if v.Code == "" && v.Result != session.Duplicate.String() {
			return nil
		}
		_, err := fmt.Fprintf(out, "line %d: %s\n", v.Line, oneLine(joined(": ", joined(" ", v.Result, v.Code), v.Detail)))
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, j.summary())
	return err
}

// joined joins the texts that are not empty.
func joined(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), separator)
}

func (j *judge) summary() string {
	var parts []string
	for kind, n := range j.results {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, session.Kind(kind)))
		}
	}
	word := "ok"
	if j.refused() > 0 {
		word = "refused"
	}
	return fmt.Sprintf("%s: %s (%s), last session sequence %d", word, count(j.lines, "line"), strings.Join(parts, ", "), j.state.Last())
}

// count is a number with its noun.
func count[N ~int | ~int64 | ~uint64](n N, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
