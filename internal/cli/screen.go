package cli

import (
	"fmt"
	"strings"
)

// screen writes what people read of a session: whole lines, and text that comes in
// pieces. Below both there may be a prompt, which stays the last line on a terminal.
type screen struct {
	console
	voice  string // whose line is unfinished, "" for none
	held   string // the unfinished line, while a prompt keeps it back
	prompt string
}

// line writes lines, each behind the margin.
func (s *screen) line(margin, text string) {
	s.lift()
	s.end()
	for part := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(s, "%s%s\n", margin, part)
	}
	s.lower()
}

// piece writes the next piece of a voice's text, fit for the terminal already. Text of
// another voice begins a new line.
func (s *screen) piece(voice, margin, text string, paint func(string) string) {
	if text == "" {
		return
	}
	s.lift()
	if s.voice != voice {
		s.end()
	}
	for part := range strings.SplitAfterSeq(text, "\n") {
		s.part(voice, margin, part, paint)
	}
	s.lower()
}

// part writes a piece within one line.
func (s *screen) part(voice, margin, text string, paint func(string) string) {
	whole, finished := strings.CutSuffix(text, "\n")
	if whole == "" && !finished {
		return
	}
	if s.voice == "" {
		s.put(margin)
	}
	s.put(paint(whole))
	s.voice = voice
	if finished {
		s.end()
	}
}

// put writes inside a line. Behind a prompt a line waits until it is whole.
func (s *screen) put(text string) {
	if s.prompt != "" {
		s.held += text
		return
	}
	fmt.Fprint(s, text)
}

// end finishes an unfinished line.
func (s *screen) end() {
	if s.voice == "" {
		return
	}
	fmt.Fprintf(s, "%s\n", s.held)
	s.voice, s.held = "", ""
}

// finish ends the line of a voice that says no more.
func (s *screen) finish() {
	s.lift()
	s.end()
	s.lower()
}

// ask shows a prompt, or takes it away when it is empty.
func (s *screen) ask(prompt string) {
	if prompt == s.prompt {
		return
	}
	s.lift()
	if prompt == "" && s.held != "" {
		fmt.Fprint(s, s.held)
		s.held = ""
	}
	if prompt != "" && s.prompt == "" {
		s.end()
	}
	s.prompt = prompt
	s.lower()
}

// answered says that the terminal has shown the end of a line behind the prompt.
func (s *screen) answered() {
	s.prompt = ""
	if s.held != "" {
		fmt.Fprint(s, s.held)
		s.held = ""
	}
}

// lift takes the prompt off the terminal, lower puts it back.
func (s *screen) lift() {
	if s.prompt != "" && s.terminal {
		fmt.Fprint(s, "\r\x1b[K")
	}
}

func (s *screen) lower() {
	if s.prompt != "" {
		fmt.Fprint(s, s.prompt)
	}
}
