package naradhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// The sizes of what clients send (DESIGN §10), in bytes.
const (
	maxID      = 128
	maxName    = 256
	maxTitle   = 512
	maxReason  = 4 << 10
	maxPath    = 4 << 10
	maxMessage = 256 << 10
	maxPage    = 1_000
	maxMembers = 32
)

// bad is a request that cannot be understood.
func bad(code, detail string) *server.Problem {
	return &server.Problem{HTTPStatus: http.StatusBadRequest, Code: code, Detail: detail}
}

// badField is a request one field of which cannot be used.
func badField(field, rule string) error { return bad("invalid_field", field+" "+rule) }

// decode reads the body of a request into v. Unknown fields are ignored, as the
// protocol wants, and null is an optional field left out; what is known must have its
// form.
func decode(r *request, v any) error {
	body, err := server.ReadBody(r.Request)
	if err != nil {
		return err
	}
	if jsontext.Value(body).Kind() != '{' {
		return bad("bad_request", "the body must be one JSON object")
	}
	if deep(body) {
		return bad("bad_request", fmt.Sprintf("the body nests deeper than %d", narad.MaxDepth))
	}
	err = json.Unmarshal(body, v)
	var mistyped *json.SemanticError
	switch {
	case errors.As(err, &mistyped):
		return badField(pathOf(mistyped), "has the wrong type")
	case err != nil:
		return bad("bad_request", "the body must be one JSON object, in UTF-8 and without repeated names")
	}
	return nil
}

// pathOf names a field: our own names and indexes, nothing that the client chose.
func pathOf(err *json.SemanticError) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(err.JSONPointer), "/"), "/", ".")
}

// deep reports whether a JSON text nests deeper than the protocol allows.
func deep(body []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > narad.MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// checkID demands the form of an id that a client may choose (R4). An id that a path
// cannot hold, since clients and proxies take it for a step, would be lost at once.
func checkID(field, id string) error {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return !idRune(r) }) {
		return badField(field, "must be 1 to 128 letters, digits and . _ : -")
	}
	if id == "." || id == ".." {
		return badField(field, "must not be . or ..")
	}
	return nil
}

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

func idRune(r rune) bool {
	return r == '.' || r == '_' || r == ':' || r == '-' ||
		'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// lineBreaks says whether a text may have several lines.
type lineBreaks bool

const (
	oneLine  lineBreaks = false
	anyLines lineBreaks = true
)

// checkText bounds a text and refuses control characters in it, which terminals obey.
// Line breaks and tabs are for texts of several lines alone.
func checkText(field, s string, most int, lines lineBreaks) error {
	if len(s) > most {
		return badField(field, fmt.Sprintf("may have at most %d bytes", most))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return isControl(r) && !(bool(lines) && breaksLine(r)) }) {
		return badField(field, "holds a control character")
	}
	return nil
}

// checkContent bounds what people and agents say to each other.
func checkContent(field, s string) error {
	if len(s) > maxMessage {
		return badField(field, fmt.Sprintf("may have at most %d bytes", maxMessage))
	}
	return nil
}

const lineSeparator, paragraphSeparator = '\u2028', '\u2029'

func isControl(r rune) bool {
	return unicode.IsControl(r) || r == lineSeparator || r == paragraphSeparator
}

func breaksLine(r rune) bool {
	return r == '\n' || r == '\r' || r == '\t' || r == lineSeparator || r == paragraphSeparator
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
