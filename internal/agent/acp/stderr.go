package acp

import (
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
)

const (
	// maxLogLines is how much of an agent's own log is kept, for each process.
	maxLogLines = 1000
	// maxLogLine is how long a line of it may be, before and after what is secret was
	// taken out.
	maxLogLine, maxLogShown = 64 << 10, 1 << 10
)

// stderr writes an agent's own log into the host's, on the level debug.
type stderr struct {
	log    *slog.Logger
	hides  func(string) string
	logged int
}

func newStderr(opt *Options) *stderr { return &stderr{log: opt.Logger, hides: opt.hider()} }

// hider returns what takes out of an agent's words what is secret, or looks like it.
func (o *Options) hider() func(string) string {
	var pairs []string
	for _, secret := range o.secrets() {
		pairs = append(pairs, secret, hidden)
	}
	known := strings.NewReplacer(pairs...)
	return func(text string) string { return keyLike.ReplaceAllString(known.Replace(text), hidden) }
}

const hidden = "[hidden]"

// keyLike is what looks like a key: what follows the usual words, and long runs of
// letters and digits.
var keyLike = regexp.MustCompile(`(?i)(bearer|basic|token|secret|password|api[-_ ]?key)(["']?\s*[=: ]\s*)\S+|[A-Za-z0-9_\-+/=]{24,}`)

// read reads to the end. What is above the bounds is read and dropped, so that the
// agent is never held up by its own log.
func (s *stderr) read(from io.Reader) {
	lines := newLineReader(from, maxLogLine)
	for {
		line, err := lines.next()
		if err != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		s.line(string(line))
	}
}

func (s *stderr) line(line string) {
	if line == "" || s.logged > maxLogLines || !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if s.logged++; s.logged > maxLogLines {
		s.log.Debug("agent's log goes on and is not shown any more", "lines", maxLogLines)
		return
	}
	s.log.Debug("agent's log", "line", label(s.hides(line), maxLogShown))
}
