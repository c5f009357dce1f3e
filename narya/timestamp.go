package narya

import (
	"regexp"
	"time"
)

// written is the form of RFC 3339 that every reader takes: T and Z in upper case, a
// fraction after a full stop.
var written = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// isTime reports whether a text is an RFC 3339 time. A leap second is none.
func isTime(s string) bool {
	if len(s) > 64 || !written.MatchString(s) {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, s)
	return err == nil
}
