package narad

import (
	"strconv"
	"strings"
	"time"
)

// timestamp visits a point in time. A host writes RFC 3339 in UTC; a client also
// takes the other forms that a public client is known to take, since nothing
// depends on a timestamp.
func timestamp(c *coder, name string, p *string, n need) {
	if c.mode == schema {
		c.describes(name, formTime, n)
		return
	}
	c.id(name, p, n)
	if c.err != nil || *p == "" {
		return
	}
	if c.host() {
		if !isUTC(*p) {
			c.fail(name, "an RFC 3339 time in UTC is required")
		}
		return
	}
	if !isTime(*p) {
		if n == optional {
			*p = ""
			return
		}
		c.fail(name, "an ISO 8601 time is required")
	}
}

// Timestamp writes a point in time as a host must: RFC 3339 in UTC.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// isUTC reports whether s is an RFC 3339 time in UTC, in the form that every
// published schema takes: T and Z in upper case, a fraction after a full stop.
func isUTC(s string) bool {
	const date = len(time.DateOnly)
	if len(s) <= date || s[date] != 'T' {
		return false
	}
	if _, err := time.Parse(time.DateOnly, s[:date]); err != nil {
		return false
	}
	zone, ok := afterClock(s[date+1:], true)
	return ok && (zone == "Z" || zone == "+00:00" || zone == "-00:00")
}

// isTime reports whether s is a time in one of the forms that a client takes.
func isTime(s string) bool { return len(s) <= 64 && (isISO(s) || isWritten(s)) }

// isISO reports whether s is an ISO 8601 date, perhaps with a time of day and a
// zone. Like the public client it takes the 31st of any month, and 24:00:00.
func isISO(s string) bool {
	s, ok := afterNumber(s, 4, 0, 9999)
	if !ok {
		return false
	}
	for _, most := range []int{12, 31} {
		if len(s) == 0 || s[0] != '-' {
			break
		}
		if s, ok = afterNumber(s[1:], 2, 1, most); !ok {
			return false
		}
	}
	if s == "" {
		return true
	}
	if !strings.ContainsRune("Tt ", rune(s[0])) {
		return false
	}
	zone, ok := afterClock(s[1:], false)
	return ok && isZone(zone)
}

func isZone(s string) bool {
	if s == "" || s == "Z" || s == "z" {
		return true
	}
	if s[0] != '+' && s[0] != '-' {
		return false
	}
	s, ok := afterNumber(s[1:], 2, 0, 23)
	if !ok {
		return false
	}
	s, ok = afterNumber(strings.TrimPrefix(s, ":"), 2, 0, 59)
	return ok && s == ""
}

// afterClock returns what follows a time of day: hours, minutes and seconds, or,
// unless it is exact, hours and minutes alone.
func afterClock(s string, exact bool) (rest string, ok bool) {
	if !exact && strings.HasPrefix(s, "24:00:00") {
		return s[len("24:00:00"):], true
	}
	if s, ok = afterNumber(s, 2, 0, 23); !ok || s == "" || s[0] != ':' {
		return s, false
	}
	if s, ok = afterNumber(s[1:], 2, 0, 59); !ok {
		return s, false
	}
	if s == "" || s[0] != ':' {
		return s, !exact
	}
	if s, ok = afterNumber(s[1:], 2, 0, 59); !ok || s == "" || s[0] != '.' {
		return s, ok
	}
	rest = s[1:]
	for rest != "" && '0' <= rest[0] && rest[0] <= '9' {
		rest = rest[1:]
	}
	return rest, len(rest) < len(s)-1
}

// afterNumber returns what follows a number of so many digits.
func afterNumber(s string, width, least, most int) (rest string, ok bool) {
	if len(s) < width {
		return s, false
	}
	n := 0
	for i := range width {
		if s[i] < '0' || s[i] > '9' {
			return s, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return s[width:], least <= n && n <= most
}

// isWritten reports whether s is a date as people and browsers write it: a common
// layout, or perhaps a word and then a month or a year.
func isWritten(s string) bool {
	for _, layout := range layouts {
		if _, err := time.Parse(layout, s); err == nil {
			return true
		}
	}
	digits := s
	if word, number, ok := strings.Cut(s, " "); ok && word != "" && strings.Trim(strings.ToLower(word), letters) == "" {
		digits = number
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	return err == nil && len(digits) <= 4 && (1 <= n && n <= 12 || n > 31)
}

const letters = "abcdefghijklmnopqrstuvwxyz"

var layouts = []string{
	"Jan 2 2006", "Jan 2, 2006", "2 Jan 2006", "1/2/2006",
	time.RFC1123, time.RFC1123Z, time.ANSIC, time.UnixDate,
	"Mon Jan 2 2006 15:04:05 GMT-0700",
}
