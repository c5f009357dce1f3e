package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// console is where text for people goes: coloured on a terminal, plain elsewhere.
type console struct {
	io.Writer
	terminal bool
	colour   bool
}

func newConsole(w io.Writer, getenv func(string) string) console {
	file, ok := w.(*os.File)
	tty := ok && term.IsTerminal(int(file.Fd()))
	return console{Writer: w, terminal: tty, colour: tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (c console) style(code, text string) string {
	if !c.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (c console) bold(text string) string   { return c.style("1", text) }
func (c console) dim(text string) string    { return c.style("2", text) }
func (c console) red(text string) string    { return c.style("31", text) }
func (c console) green(text string) string  { return c.style("32", text) }
func (c console) yellow(text string) string { return c.style("33", text) }
func (c console) cyan(text string) string   { return c.style("36", text) }

// escape makes text of others fit for a terminal: lines and tabs stay, everything else
// that could move the cursor, change what is shown or reorder it becomes visible.
func escape(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.ContainsFunc(text, harmful) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // a byte that is not UTF-8 comes as U+FFFD
		if !harmful(r) {
			b.WriteRune(r)
			continue
		}
		if r < utf8.RuneSelf {
			fmt.Fprintf(&b, `\x%02x`, r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// harmful reports whether a rune is not shown as a sign of its own: controls, and the
// format characters, which reorder or hide text. The joiner of emoji and of some scripts
// is needed.
func harmful(r rune) bool {
	const zeroWidthJoiner = '\u200d'
	switch {
	case r == '\n' || r == '\t' || r == zeroWidthJoiner:
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// oneLine is escape for what must not begin a new line.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' }), " ")
	return escape(text)
}

// short is oneLine cut to a number of runes.
func short(text string, most int) string {
	text = oneLine(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
