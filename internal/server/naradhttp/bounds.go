package naradhttp

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// The sizes of what clients send (DESIGN §10), in bytes.
const (
	maxName    = 256
	maxTitle   = 512
	maxReason  = 4 << 10
	maxPath    = 4 << 10
	maxMessage = 256 << 10
	maxPage    = 1_000
	maxMembers = 32
)

// bad is a request that cannot be understood.
func bad(code, detail string) *server.Problem { return server.Bad(code, detail) }

// badField is a request one field of which cannot be used.
func badField(field, rule string) error { return server.BadField(field, rule) }

// decode reads the body of a request into v.
func decode(r *request, v any) error { return server.DecodeBody(r.Request, v) }

// checkID demands the form of an id that a client may choose (R4).
func checkID(field, id string) error { return server.CheckID(field, id) }

// named is an id with the name of its field.
type named struct{ field, id string }

// checkIDs demands the form of each id that is there.
func checkIDs(list ...named) error {
	for _, n := range list {
		if n.id == "" {
			continue
		}
		if err := checkID(n.field, n.id); err != nil {
			return err
		}
	}
	return nil
}

// lineBreaks says whether a text may have several lines.
type lineBreaks bool

const (
	oneLine  lineBreaks = false
	anyLines lineBreaks = true
)

// checkText bounds a text and refuses control characters in it.
func checkText(field, s string, most int, lines lineBreaks) error {
	return server.CheckText(field, s, most, bool(lines))
}

// checkContent bounds what people and agents say to each other.
func checkContent(field, s string) error {
	if len(s) > maxMessage {
		return badField(field, fmt.Sprintf("may have at most %d bytes", maxMessage))
	}
	return nil
}

// number reads a sequence of a query; absent is 0.
func number(r *request, name string) (uint64, error) {
	text := r.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, bad("cursor_invalid", name+" must be an integer of at least 0")
	}
	return n, nil
}

// limit reads the size of a page and brings it into its bounds (R26).
func limit(r *request, most int) (int, error) {
	text := r.query.Get("limit")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range is clamped too
		return 0, bad("bad_request", "limit must be an integer")
	}
	return min(max(n, 1), most), nil
}

// listCursor returns the place behind the cursor of a list, which the host gave for the
// same list with the same filters.
func (b *Binding) listCursor(r *request, scope ...string) (place string, err error) {
	place, err = b.host.Unseal(r.query.Get("cursor"), scope...)
	if errors.Is(err, host.ErrInvalid) {
		return "", bad("cursor_invalid", "cursor is none that this host gave for this list")
	}
	return place, err
}
