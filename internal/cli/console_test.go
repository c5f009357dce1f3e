package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text", "a line\n\tand a tab", "a line\n\tand a tab"},
		{"other scripts and emoji", "ड 世界 👩‍💻", "ड 世界 👩‍💻"},
		{"an escape sequence", "\x1b[2J\x1b]0;title\x07", `\x1b[2J\x1b]0;title\x07`},
		{"a C1 control sequence", "\u009b31m", `\u009b31m`},
		{"back over what is shown", "rm -rf /\rls      ", `rm -rf /\x0dls      `},
		{"backspace and delete", "a\b\x7f", `a\x08\x7f`},
		{"line ends of Windows", "a\r\nb", "a\nb"},
		{"text turned around", "\u202egpj.exe\u2066", `\u202egpj.exe\u2066`},
		{"hidden text", "a\u200bb\ufeff\U000e0041", `a\u200bb\ufeff\ue0041`},
		{"other line ends", "a\u2028b\u0085", `a\u2028b\u0085`},
		{"no UTF-8", "a\xffb", "a\ufffdb"},
	} {
		if got := escape(c.in); got != c.want {
			t.Errorf("%s: escape(%q): got %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got, want := oneLine("a\nb\r\n\tc\x1b"), `a b c\x1b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := short("äöü\nxyz", 5), "äöü …"; got != want {
		t.Errorf("short: got %q, want %q", got, want)
	}
}

// TestNoColourOutsideTerminals: what goes into a file or a pipe has no escape sequences.
func TestNoColourOutsideTerminals(t *testing.T) {
	var out bytes.Buffer
	c := newConsole(&out, func(string) string { return "" })
	if got := c.red("x") + c.bold("y") + c.dim("z"); got != "xyz" {
		t.Errorf("got %q, want xyz", got)
	}
}

// onTerminal is a screen that believes to be on a terminal without colour.
func onTerminal() (*screen, *bytes.Buffer) {
	var out bytes.Buffer
	return &screen{console: console{Writer: &out, terminal: true}}, &out
}

// shown is what a terminal shows of output with the one sequence that screens use: back
// to the beginning of the line, and delete it.
func shown(out string) string {
	var lines []string
	for line := range strings.SplitSeq(out, "\n") {
		if at := strings.LastIndex(line, "\r\x1b[K"); at >= 0 {
			line = line[at+len("\r\x1b[K"):]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestScreenPutsVoicesOnLinesOfTheirOwn(t *testing.T) {
	s, out := onTerminal()
	s.piece("a", "", "Hello, ", plain)
	s.piece("a", "", "world\nand ", plain)
	s.piece("b", "│ ", "meanwhile\nhere", plain)
	s.line("", "a line")
	s.piece("a", "", "more", plain)
	s.finish()
	want := "Hello, world\nand \n│ meanwhile\n│ here\na line\nmore\n"
	if got := shown(out.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestScreenKeepsThePromptLast: what comes while a prompt is shown goes above it, in
// whole lines, and nothing of it is lost when the prompt goes.
func TestScreenKeepsThePromptLast(t *testing.T) {
	s, out := onTerminal()
	s.piece("a", "", "before ", plain)
	s.ask("approve? ")
	s.piece("a", "", "half", plain)
	if got, want := shown(out.String()), "before \napprove? "; got != want {
		t.Errorf("half a line behind a prompt: got %q, want %q", got, want)
	}
	s.piece("a", "", " a line\nnext", plain)
	s.line("", "whole")
	if got, want := shown(out.String()), "before \nhalf a line\nnext\nwhole\napprove? "; got != want {
		t.Errorf("behind a prompt: got %q, want %q", got, want)
	}
	s.piece("a", "", "rest", plain)
	s.ask("")
	s.piece("a", "", " of it", plain)
	s.finish()
	if got, want := shown(out.String()), "before \nhalf a line\nnext\nwhole\nrest of it\n"; got != want {
		t.Errorf("after a prompt: got %q, want %q", got, want)
	}
}
