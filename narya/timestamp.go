package narya

import (
	"regexp"
	"strings"
	"time"
)

// written is the form of RFC 3339; time.Parse alone takes other forms too.
var written = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// isTime reports whether a text is an RFC 3339 time.
func isTime(s string) bool {
	const second, after = len("2006-01-02T15:04:"), len("2006-01-02T15:04:05")
	if len(s) > 64 || !written.MatchString(s) {
		return false
	}
	s = strings.ToUpper(s)
	leap := s[second:after] == "60"
	if leap {
		s = s[:second] + "59" + s[after:]
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return false
	}
	return !leap || at.UTC().Hour() == 23 && at.Minute() == 59
}
