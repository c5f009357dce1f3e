package naradhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mahati-host/mahati/internal/server"
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
	maxDepth   = 64
)

// bad is a request that cannot be understood.
func bad(code, detail string) *server.Problem {
	return &server.Problem{HTTPStatus: http.StatusBadRequest, Code: code, Detail: detail}
}

// decode reads the body of a request into v. Unknown fields are ignored, as the
// protocol wants; what is known must have its form.
func decode(r *http.Request, v any) error {
	body, err := server.ReadBody(r)
	if err != nil {
		return err
	}
	if deep(body) {
		return bad("bad_request", "the body nests deeper than 64")
	}
	if !utf8.Valid(body) {
		return bad("bad_request", "the body is not UTF-8")
	}
	err = json.Unmarshal(body, v)
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed):
		return bad("invalid_field", "the field "+strconv.Quote(typed.Field)+" has the wrong type")
	case err != nil:
		return bad("bad_request", "the body must be one JSON object")
	}
	return nil
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
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// checkID demands the form of an id that a client may choose (R4).
func checkID(field, id string) error {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return !idRune(r) }) {
		return bad("invalid_field", field+" must be 1 to 128 letters, digits and . _ : -")
	}
	return nil
}

func idRune(r rune) bool {
	return r == '.' || r == '_' || r == ':' || r == '-' ||
		'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// checkText bounds a text and refuses control characters in it. Line breaks and tabs
// are for texts of several lines alone.
func checkText(field, s string, most int, lines bool) error {
	if len(s) > most {
		return bad("invalid_field", fmt.Sprintf("%s has at most %d bytes", field, most))
	}
	for _, r := range s {
		if (r < 0x20 || r == 0x7f) && !(lines && (r == '\n' || r == '\t' || r == '\r')) {
			return bad("invalid_field", field+" holds a control character")
		}
	}
	return nil
}

// number reads a sequence of a query; absent is 0.
func number(r *http.Request, name string) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, bad("bad_cursor", name+" must be an integer of at least 0")
	}
	return n, nil
}

// limit reads the size of a page and brings it into its bounds (R26).
func limit(r *http.Request, most int) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, bad("bad_request", "limit must be an integer")
	}
	return min(max(n, 1), most), nil
}
