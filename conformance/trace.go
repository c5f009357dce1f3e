package conformance

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

//go:embed traces
var traceFiles embed.FS

// Reader is who reads a trace: a host that judges what it would append, or a client that
// goes on where that is safe (docs/narad.md).
type Reader string

// The readers.
const (
	Strict      Reader = "strict"
	Lenient     Reader = "lenient"
	BothReaders Reader = "both"
)

// Trace is one golden trace: records of one session, and what each gives. The form of
// the files is told in traces/README.md.
type Trace struct {
	// File and Line say where it begins.
	File string
	Line int
	// Name is what happens, and Rule the demand with its source.
	Name   string `json:"trace"`
	Rule   string `json:"rule"`
	Reader Reader `json:"reader"`
	// SessionID is the session, where the reader knows it from the start.
	SessionID string `json:"sessionId"`
	// Without are the wire ids of the profiles that are not negotiated.
	Without []string `json:"without"`
	Steps   []Step
}

// Step is one line of a trace: a record with what it gives, the repair of a gap, or a
// question to the state.
type Step struct {
	Line int
	// Record is the record as it comes, byte for byte. It may be no JSON at all.
	Record []byte
	// Result and Code are what it gives (docs/narad.md, "Results of a trace").
	Result string
	Code   string
	// ClearGap says that the reader has fetched what was missing.
	ClearGap bool
	// State is a path in the state, and Is its value there as JSON; nil for none.
	State string
	Is    narad.Raw
}

// step is a line of a file.
type step struct {
	Trace    *string   `json:"trace"`
	Record   narad.Raw `json:"record"`
	Text     *string   `json:"text"`
	Pad      int       `json:"pad"`
	Result   string    `json:"result"`
	Code     string    `json:"code"`
	ClearGap bool      `json:"clearGap"`
	State    string    `json:"state"`
	Is       narad.Raw `json:"is"`
}

// Traces returns all golden traces, in the order of their files.
func Traces() ([]Trace, error) {
	entries, err := traceFiles.ReadDir("traces")
	if err != nil {
		return nil, err
	}
	var all []Trace
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".jsonl" {
			continue
		}
		data, err := traceFiles.ReadFile("traces/" + entry.Name())
		if err != nil {
			return nil, err
		}
		if all, err = appendTraces(all, entry.Name(), data); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func appendTraces(all []Trace, file string, data []byte) ([]Trace, error) {
	for i, line := range bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n")) {
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if s.Trace != nil {
			t := Trace{File: file, Line: i + 1}
			if err := json.Unmarshal(line, &t); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			all = append(all, t)
			continue
		}
		if len(all) == 0 || all[len(all)-1].File != file {
			return nil, fmt.Errorf("%s:%d: a step stands before any trace", file, i+1)
		}
		last := &all[len(all)-1]
		last.Steps = append(last.Steps, Step{i + 1, s.record(), s.Result, s.Code, s.ClearGap, s.State, s.Is})
	}
	return all, nil
}

// record is the record's own bytes, with the padding that files leave out.
func (s step) record() []byte {
	text := string(s.Record)
	if s.Text != nil {
		text = *s.Text
	}
	if s.Record == nil && s.Text == nil {
		return nil
	}
	return []byte(strings.Replace(text, "<pad>", strings.Repeat("x", s.Pad), 1))
}
