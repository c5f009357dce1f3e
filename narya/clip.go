package narya

import "unicode/utf8"

const ellipsis = "…"

// clip cuts a text to at most so many characters, the ellipsis that says so among them.
func clip(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	return lead(s, most-1) + ellipsis
}

// lead returns the first n characters of a text that has more.
func lead(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
