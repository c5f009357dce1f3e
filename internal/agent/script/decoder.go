package script

import (
	"strings"
	"unicode/utf8"
)

// decoder makes text of the bytes of a command. A character that is cut waits for its
// rest; what is no character becomes U+FFFD.
type decoder struct{ held []byte }

// add returns the text that is whole so far. After the end nothing waits.
func (d *decoder) add(data []byte, ends bool) string {
	d.held = append(d.held, data...)
	cut := len(d.held)
	if !ends {
		cut -= incomplete(d.held)
	}
	text := strings.ToValidUTF8(string(d.held[:cut]), "\uFFFD")
	d.held = append(d.held[:0], d.held[cut:]...)
	return text
}

// incomplete returns the length of a character at the end that lacks bytes.
func incomplete(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
