package harness

import (
	"bytes"

	"github.com/mahati-host/mahati/narad"
)

// redacted is the payload that stands for one that may not be seen.
const redacted = `{"redacted":true}`

// Class returns the class by which our boundaries act: a record without one is private,
// one with an unknown one secret (R37).
func (s Sensitivity) Class() Sensitivity {
	switch s {
	case Public, Private, Secret:
		return s
	case "":
		return Private
	}
	return Secret
}

// Redact returns the record as an untrusted consumer may see it by the letter of the
// contract: payloads of the class secret, and of private unless allowPrivate, are
// replaced by {"redacted":true}. A record without a declared class passes; where it must
// not, use [RedactClassed].
func Redact(e Event, allowPrivate bool) Event {
	if e.Sensitivity == Secret || e.Sensitivity == Private && !allowPrivate {
		e.Payload = narad.Raw(redacted)
	}
	return e
}

// RedactClassed is Redact by the class of R37: what is not classified is private, and an
// unknown class is secret. The envelope stays as it is.
func RedactClassed(e Event, allowPrivate bool) Event {
	if !e.Sensitivity.Class().visible(allowPrivate) {
		e.Payload = narad.Raw(redacted)
	}
	return e
}

func (s Sensitivity) visible(allowPrivate bool) bool {
	return s == Public || s == Private && allowPrivate
}

// Redacted reports whether the payload was replaced, here or before: an object with
// nothing but "redacted": true, in a record that is not public.
func (e *Event) Redacted() bool {
	const most = 64 // with white space; a longer one says something
	if e.Sensitivity == Public || len(e.Payload) > most || !bytes.Contains(e.Payload, []byte(`"redacted"`)) {
		return false
	}
	var mark mark
	s := scanner{text: e.Payload}
	seen, ok := s.document(&mark)
	return ok && seen == 1 && s.members == 1 && mark.Redacted
}

// mark is what a replaced payload says.
type mark struct{ Redacted bool }

var markFields = []string{"redacted"}

func (m *mark) fields() []string           { return markFields }
func (m *mark) set(_ int, s *scanner) bool { return s.boolean(&m.Redacted) }
