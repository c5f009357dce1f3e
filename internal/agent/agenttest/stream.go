package agenttest

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// How text is gathered before it is recorded (DESIGN §7, R43).
const (
	textWait   = 40 * time.Millisecond
	textEnough = 2 << 10
	textMost   = 16 << 10
	outputMost = 8 << 10
	outputAll  = 1 << 20
)

// stream is text that waits to be recorded. It may end inside a character.
type stream struct{ held []byte }

// take removes what can be recorded, in parts of at most most bytes that are never cut
// inside a character. An incomplete last character stays, unless the stream ends.
func (s *stream) take(most int, ends bool) []string {
	cut := len(s.held)
	if !ends {
		cut = whole(s.held)
	}
	text := strings.ToValidUTF8(string(s.held[:cut]), "\uFFFD")
	s.held = append([]byte(nil), s.held[cut:]...)
	var parts []string
	for len(text) > most {
		n := whole([]byte(text[:most]))
		parts, text = append(parts, text[:n]), text[n:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}

// whole returns the length of text without an incomplete last character.
func whole(text []byte) int {
	for back := 1; back <= min(utf8.UTFMax, len(text)); back++ {
		at := len(text) - back
		if utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
}

// pending returns the facts that record what waits in a run. ends completes the
// message and the reasoning.
func (s *Session) pending(b *book, ends bool) []narad.Authority {
	b.rest()
	list := append(s.thoughts(b, ends), s.texts(b, ends)...)
	for _, c := range s.ofRun(b) {
		list = append(list, s.outputs(c, false)...)
	}
	return list
}

func (s *Session) texts(b *book, ends bool) []narad.Authority {
	var list []narad.Authority
	for _, part := range b.text.take(textMost, ends) {
		if b.messageID == "" {
			b.messageID = s.id("message")
			scope := narad.ScopeRun
			if b.runID == b.rootID {
				scope = narad.ScopeSession // R9
			}
			list = append(list, &narad.MessageTextStarted{Event: b.event(), MessageID: b.messageID, Role: narad.RoleAssistant, MessageScope: scope})
		}
		list = append(list, &narad.MessageTextDelta{Event: b.event(), MessageID: b.messageID, Delta: part})
	}
	if ends && b.messageID != "" {
		list = append(list, &narad.MessageTextCompleted{Event: b.event(), MessageID: b.messageID})
	}
	return list
}

func (s *Session) thoughts(b *book, ends bool) []narad.Authority {
	var list []narad.Authority
	for _, part := range b.thought.take(textMost, ends) {
		if b.reasoningID == "" {
			b.reasoningID = s.id("reasoning")
			list = append(list, &narad.ReasoningStarted{Event: b.event(), ReasoningID: b.reasoningID})
		}
		list = append(list, &narad.ReasoningDelta{Event: b.event(), ReasoningID: b.reasoningID, Delta: part})
	}
	if ends && b.reasoningID != "" {
		list = append(list, &narad.ReasoningCompleted{Event: b.event(), ReasoningID: b.reasoningID})
	}
	return list
}

// outputs returns the facts that record what waits of a call's output (R43).
func (s *Session) outputs(c *call, ends bool) []narad.Authority {
	b := s.book(c.runID)
	var list []narad.Authority
	for _, part := range c.output.take(outputMost, ends) {
		if c.told > outputAll {
			break
		}
		out := facts.Output{ToolCallID: c.id, Text: part}
		if c.told += len(part); c.told > outputAll {
			out = facts.Output{ToolCallID: c.id, Truncated: true}
		}
		list = append(list, facts.Run(b.rootID, b.runID, facts.ToolOutput, out))
	}
	return list
}

// flush records what waits in a run.
func (s *Session) flush(b *book) error { return s.record(s.pending(b, false)...) }

// later records what waits in a run soon, or now if it is much.
func (s *Session) later(b *book, waiting int) error {
	if waiting >= textEnough {
		return s.flush(b)
	}
	b.rest()
	b.timer = time.AfterFunc(textWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead && s.book(b.runID) == b {
			_ = s.flush(b) // what is refused here is told by Refused
		}
	})
	return nil
}
