package watch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// idOf returns the id of a watch event (R28).
func idOf(kind narad.Type, scope string, revision int64) string {
	return string(kind) + ":" + oneLine(scope) + ":" + strconv.FormatInt(revision, 10)
}

// oneLine returns a name as it can stand in the id of a frame: a control character
// would end the line or be lost on the way, so that it is written as %XX, and a % too
// so that no two names become one.
func oneLine(name string) string {
	special := func(r rune) bool { return r < 0x20 || r == 0x7f || r == '%' }
	if strings.IndexFunc(name, special) < 0 {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if special(r) {
			fmt.Fprintf(&b, "%%%02X", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Place is where the id of a watch event stands in its stream.
type Place struct {
	Kind narad.Type
	// Revision is the session sequence of the fact that the event covers, or, of an
	// event of a workspace, its host offset.
	Revision int64
}

// OfWorkspace reports whether the event is one of a workspace's stream.
func (p Place) OfWorkspace() bool { return p.Kind.Profile() == narad.Workspace }

// Parse reads the id of a watch event, as it comes back in Last-Event-ID. The second
// result is false for any other text. An id is to be believed only if [Rest] finds
// it among the events of the fact at its place.
func Parse(id string) (Place, bool) {
	kind, rest, _ := strings.Cut(id, ":")
	end := strings.LastIndexByte(rest, ':')
	p := Place{Kind: narad.Type(kind)}
	if p.Kind.Class() != narad.ClassWatch || end < 1 {
		return Place{}, false
	}
	digits := rest[end+1:]
	revision, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || revision < 1 || revision > narad.MaxInteger || digits != strconv.FormatInt(revision, 10) {
		return Place{}, false
	}
	p.Revision = revision
	return p, true
}

// Rest returns the events that follow the one with the id among the events of a fact.
// The second result is false if none of them has it.
func Rest(id string, events []*narad.Revision) ([]*narad.Revision, bool) {
	for i, r := range events {
		if r.EventID == id {
			return events[i+1:], true
		}
	}
	return nil, false
}
