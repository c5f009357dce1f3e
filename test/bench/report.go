package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// line is one figure of the report.
type line struct {
	name    string
	figure  string // with its unit
	against string // what it is compared with, measured in the same run
	goal    string
	verdict verdict
	limit   string // what the figure is limited by
}

// verdict says how a figure stands to its goal.
type verdict string

const (
	met         verdict = "met"
	missed      verdict = "not met"
	unmeasured  verdict = "not measured"
	informative verdict = "-" // it has no goal
)

func judge(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// atLeast is a line whose figure is a ratio with a lower bound.
func atLeast(name string, ratio, goal float64, against, limit string) line {
	return line{name, fmt.Sprintf("%.2f", ratio), against, fmt.Sprintf(">= %.2f", goal), judge(ratio >= goal), limit}
}

// atMost is a line whose figure is a ratio with an upper bound.
func atMost(name string, ratio, goal float64, against, limit string) line {
	return line{name, fmt.Sprintf("%.2f", ratio), against, fmt.Sprintf("<= %.2f", goal), judge(ratio <= goal), limit}
}

// notMeasured is a line that says why there is no figure.
func notMeasured(name, goal string, why any) line {
	return line{name: name, figure: "-", goal: goal, verdict: unmeasured, limit: fmt.Sprint(why)}
}

// writeTable writes the report as a table that is also Markdown.
func writeTable(w io.Writer, lines []line) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(cells ...string) {
		for i, cell := range cells {
			cells[i] = " " + strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", "/")
		}
		fmt.Fprintln(table, "|"+strings.Join(cells, "\t")+"\t")
	}
	row("what", "figure", "goal", "", "compared with", "limited by")
	row("---", "---", "---", "---", "---", "---")
	for _, l := range lines {
		row(l.name, l.figure, l.goal, string(l.verdict), l.against, l.limit)
	}
	return table.Flush()
}
