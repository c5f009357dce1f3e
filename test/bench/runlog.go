package main

import (
	"fmt"
	"time"
)

const runLogs = "./harness"

// measureRunLog reads run logs that are made while they are read. Its rates are by the time
// that the processor gave, the making of the log and the collector included.
func measureRunLog(b *bench) (lines []line, err error) {
	plain, err := runLog(b, "Plain$")
	if err != nil {
		return nil, err
	}
	for _, log := range []struct {
		name, bench string
		goal        float64
	}{{"a mixed log", "mixed", 400_000}, {"one message", "one-message", 0}, {"a log that says nothing new", "quiet", 0}} {
		short, err := runLog(b, "Project$/^"+log.bench+"$/^10000$")
		if err != nil {
			return lines, err
		}
		long, err := runLog(b, "Project$/^"+log.bench+"$/^100000$")
		if err != nil {
			return lines, err
		}
		rate, before := long[runLogRate], short[runLogRate]
		l := line{
			name: "project " + log.name + " of 100,000 records", figure: fmt.Sprintf("%.0f records/s, %.1f allocations each", rate, long["allocs/event"]), goal: "-", verdict: informative,
			against: fmt.Sprintf("a mixed log held whole, read by encoding/json: %.0f records/s, %.1f allocations each", plain[runLogRate], plain["allocs/event"]), limit: "scanning JSON twice",
		}
		if log.goal > 0 {
			l.goal, l.verdict = fmt.Sprintf(">= %.0f records/s", log.goal), judge(rate >= log.goal)
		}
		against := fmt.Sprintf("%.0f records/s", before)
		lines = append(lines, l, atLeast("its speed by that of 10,000 records", rate/before, 0.7, against, "the collector"))
		if log.bench == "quiet" {
			peaks := fmt.Sprintf("%.0f bytes at 10,000 records, %.0f at 100,000", short[runLogPeak], long[runLogPeak])
			lines = append(lines, atMost("its memory by that of 10,000 records", long[runLogPeak]/short[runLogPeak], 1.5, peaks, "one line"))
		}
	}
	return lines, nil
}

const (
	runLogRate = "events/cpu-s"
	runLogPeak = "peak-bytes"
)

func runLog(b *bench, bench string) (map[string]float64, error) {
	return kernelFigure{pkg: runLogs, bench: bench, metric: runLogRate}.metrics(b, min(b.time, 3*time.Second).String())
}
