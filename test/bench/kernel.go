package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// kernelFigure is one figure of a benchmark in the package that it measures.
type kernelFigure struct {
	pkg, bench string
	metric     string // the unit by which the figure stands in the benchmark's output
	fixed      string // the benchmark's time; empty for that of the report
	line       func(metrics map[string]float64) line
}

// appended is the journal's own speed.
var appended = kernelFigure{"./internal/journal/pebble", "Append$", "of-raw-log", "", func(m map[string]float64) line {
	against := fmt.Sprintf("a raw log with group commit and one sync a group: %.0f groups/s, ours %.0f", m["raw-groups/s"], m["groups/s"])
	return atLeast("journal.Append, 256 sessions, groups of 3", m["of-raw-log"], 0.55, against, "the engine's memtable, compaction, and the hash of each batch")
}}

var kernelFigures = []kernelFigure{
	{"./narad/session", "Reduce$/^5000$", "facts/s", "2s", reduced("5,000")},
	{"./narad/session", "Reduce$/^200000$", "facts/s", "2s", reduced("200,000")},
	{"./narad/session", "Reduce$/^1000000$", "facts/s", "2x", reduced("1,000,000")},
	appended,
	{"./internal/journal/pebble", "AppendAlone$", "x-write+sync", "2000x", func(m map[string]float64) line {
		return atMost("journal.Append, one session alone, p50", m["x-write+sync"], 2, alone(m), "two handovers between goroutines, and the engine's own")
	}},
	{"./internal/host", "Do$/pebble", "of-raw-log", "", func(m map[string]float64) line {
		against := fmt.Sprintf("a raw log with as many writers: %.0f groups/s, ours %.0f commands/s", m["raw-groups/s"], m["commands/s"])
		return atLeast("host.Do in process, 256 sessions", m["of-raw-log"], 0.4, against, "the processor: deciding, checking, encoding")
	}},
	{"./internal/host", "DoAlone$/pebble", "x-write+sync", "1000x", func(m map[string]float64) line {
		return atMost("host.Do, one session alone, p50", m["x-write+sync"], 2, alone(m), "handovers between caller, owner and committer")
	}},
}

func reduced(facts string) func(map[string]float64) line {
	return func(m map[string]float64) line {
		rate := m["facts/s"]
		return line{
			name: "reduce " + facts + " facts", figure: fmt.Sprintf("%.0f facts/s", rate), goal: ">= 250000", verdict: judge(rate >= 250_000),
			against: "nothing: one core", limit: "decoding JSON",
		}
	}
}

func alone(m map[string]float64) string {
	return fmt.Sprintf("a write and fdatasync of the same bytes: %.0fµs, ours %.0fµs", m["raw-p50-us"], m["p50-us"])
}

// measureKernel runs the benchmarks of the packages, each of which compares with
// something plain itself.
func measureKernel(b *bench) ([]line, error) {
	var lines []line
	for _, f := range kernelFigures {
		l, err := f.measure(b)
		if err != nil {
			l = notMeasured(f.pkg+" "+f.bench, "", err)
		}
		lines = append(lines, l)
	}
	return append(lines, b.sqlite()), nil
}

func (f kernelFigure) measure(b *bench) (line, error) {
	metrics, err := f.metrics(b, cmp.Or(f.fixed, b.time.String()))
	if err != nil {
		return line{}, err
	}
	return f.line(metrics), nil
}

func (f kernelFigure) metrics(b *bench, benchtime string) (map[string]float64, error) {
	out, err := exec.CommandContext(b.ctx, "go", "test", "-run", "^$", "-bench", f.bench, "-benchtime", benchtime, f.pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, tail(string(out)))
	}
	metrics := metricsOf(out)
	if _, measured := metrics[f.metric]; !measured {
		return nil, fmt.Errorf("no %s in %s", f.metric, tail(string(out)))
	}
	return metrics, nil
}

var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark\S+\s+\d+\s+(.*)$`)

// metricsOf reads the metrics of a benchmark, by unit.
func metricsOf(output []byte) map[string]float64 {
	metrics := map[string]float64{}
	for _, found := range benchmarkLine.FindAllSubmatch(output, -1) {
		words := strings.Fields(string(found[1]))
		for i := 0; i+1 < len(words); i += 2 {
			if value, err := strconv.ParseFloat(words[i], 64); err == nil {
				metrics[words[i+1]] = value
			}
		}
	}
	return metrics
}

// sqlite measures SQLite with a write-ahead log and a full sync, if Python is there:
// a driver for Go would be a dependency for nothing else. Its transactions hold as many
// groups of three facts as a commit of ours does with 256 writers; the facts have the keys
// that the journal serves.
func (b *bench) sqlite() line {
	name, goal := "journal.Append against SQLite WAL FULL, batched", ">= 5.00"
	own, err := appended.metrics(b, "2s")
	if err != nil {
		return notMeasured(name, goal, err)
	}
	out, err := exec.CommandContext(b.ctx, "python3", "-c", sqliteProgram, filepath.Join(b.home, "sqlite")).CombinedOutput()
	if err != nil {
		return notMeasured(name, goal, "python3 with sqlite3 is needed: "+tail(string(out)))
	}
	theirs, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
	if err != nil {
		return notMeasured(name, goal, err)
	}
	against := fmt.Sprintf("python3's sqlite3, 128 groups a transaction, a primary key and an index: %.0f groups/s, ours %.0f", theirs, own["groups/s"])
	return atLeast(name, own["groups/s"]/theirs, 5, against, "as journal.Append; not by turns with it")
}
