package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	anyTool     = "*"
	maxToolName = 256
)

var executorName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// assignments reads the [agents.NAME.executors] of an agent.
func (l *loader) assignments(doc document, prefix string, raw any) map[string]string {
	table, ok := raw.(map[string]any)
	if !ok {
		l.fail(doc.source(prefix), prefix, show(raw), "must be a table of tools, each with its executor")
		return nil
	}
	if len(table) > maxListed {
		l.fail(doc.source(prefix), prefix, "", fmt.Sprintf("must be at most %d tools", maxListed))
		return nil
	}
	out := make(map[string]string, len(table))
	for _, tool := range slices.Sorted(maps.Keys(table)) {
		executor, isText := table[tool].(string)
		switch {
		case !validTool(tool):
			l.fail(doc.source(prefix), join(prefix, tool), "", fmt.Sprintf("must be the name of a tool of at most %d bytes, or the beginning of one and *", maxToolName))
		case !isText || !executorName.MatchString(executor):
			l.fail(doc.source(prefix), join(prefix, tool), show(table[tool]), "must be the id of an executor: letters, digits, . _ : -")
		default:
			out[tool] = executor
		}
	}
	return out
}

func validTool(pattern string) bool {
	name := strings.TrimSuffix(pattern, anyTool)
	return pattern != "" && len(pattern) <= maxToolName && !strings.Contains(name, anyTool) && !strings.ContainsFunc(name, unicode.IsControl)
}

// Executor says which executor runs a tool by its own name, or by the longest beginning of
// it; "" for none. "*" alone is the executor of the runs, and assigns no tool to another
// one than theirs.
func (a Agent) Executor(tool string) string {
	if id, ok := a.Executors[tool]; ok && tool != anyTool {
		return id
	}
	best := ""
	for pattern := range a.Executors {
		beginning, ok := strings.CutSuffix(pattern, anyTool)
		if ok && len(pattern) > max(len(best), len(anyTool)) && strings.HasPrefix(tool, beginning) {
			best = pattern
		}
	}
	return a.Executors[best]
}

// RunExecutor is bound to the runs of a session that names none: that of "*", or the only
// one that there is.
func (a Agent) RunExecutor() string {
	if id := a.Executors[anyTool]; id != "" {
		return id
	}
	only := ""
	for _, id := range a.Executors {
		if only != "" && id != only {
			return ""
		}
		only = id
	}
	return only
}

// Offers reports whether an executor is named for a tool.
func (a Agent) Offers(tool string) bool { return a.Executor(tool) != "" || a.Executors[anyTool] != "" }
