package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxID is the largest id that a client may choose (R4), in bytes.
const MaxID = 128

// maxDepth is how deep a body may nest.
const maxDepth = 64

// Bad is a request that cannot be understood.
func Bad(code, detail string) *Problem {
	return &Problem{HTTPStatus: http.StatusBadRequest, Code: code, Detail: detail}
}

// Conflict is a request that does not fit how things stand.
func Conflict(code, detail string) *Problem {
	return &Problem{HTTPStatus: http.StatusConflict, Code: code, Detail: detail}
}

// BadField is a request one field of which cannot be used.
func BadField(field, rule string) *Problem {
	p := Bad("invalid_field", field+" "+rule)
	p.Field, p.Rule = field, rule
	return p
}

// DecodeBody reads the body of a request, one JSON object, into v. Unknown fields are
// ignored, as the protocols want, and null is an optional field left out; what is known must
// have its form. Its errors are problems.
func DecodeBody(r *http.Request, v any) error {
	body, err := ReadBody(r)
	if err != nil {
		return err
	}
	return decode(body, v)
}

// DecodeOptional is DecodeBody for a body all fields of which are optional: none at all, however that
// is framed, is as good as {}.
func DecodeOptional(r *http.Request, v any) error {
	body, err := ReadBody(r)
	if err != nil || len(body) == 0 {
		return err
	}
	return decode(body, v)
}

func decode(body []byte, v any) error {
	if jsontext.Value(body).Kind() != '{' {
		return Bad(CodeBadRequest, "the body must be one JSON object")
	}
	if deep(body) {
		return Bad(CodeBadRequest, fmt.Sprintf("the body nests deeper than %d", maxDepth))
	}
	err := json.Unmarshal(body, v)
	var mistyped *json.SemanticError
	switch {
	case errors.As(err, &mistyped):
		return BadField(pathOf(mistyped), "has the wrong type")
	case err != nil:
		return Bad(CodeBadRequest, "the body must be one JSON object, in UTF-8 and without repeated names")
	}
	return nil
}

// pathOf names a field, as in answers[0].options: our own names and indexes, nothing that the client chose.
func pathOf(err *json.SemanticError) string {
	var path string
	for step := range err.JSONPointer.Tokens() {
		switch i, err := strconv.Atoi(step); {
		case err == nil:
			path = Item(path, i)
		case path == "":
			path = step
		default:
			path += "." + step
		}
	}
	return path
}

// Item names an element of a list, by its place from 0, where a field of a request is refused.
func Item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// deep reports whether a JSON text nests deeper than a body may.
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

// CheckID demands the form of an id that a client may choose (R4). An id that a path
// cannot hold, since clients and proxies take it for a step, would be lost at once. The
// error is a Problem.
func CheckID(field, id string) error {
	if id == "" || len(id) > MaxID || strings.ContainsFunc(id, func(r rune) bool { return !idRune(r) }) {
		return BadField(field, "must be 1 to 128 letters, digits and . _ : -")
	}
	if id == "." || id == ".." {
		return BadField(field, "must not be . or ..")
	}
	return nil
}

func idRune(r rune) bool {
	return r == '.' || r == '_' || r == ':' || r == '-' ||
		'0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// CheckText bounds a text, in bytes, and refuses control characters in it, which terminals
// obey. Line breaks and tabs are for texts that may have several lines. The error is a
// Problem.
func CheckText(field, s string, most int, lines bool) error {
	if len(s) > most {
		return BadField(field, fmt.Sprintf("may have at most %d bytes", most))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return isControl(r) && !(lines && breaksLine(r)) }) {
		return BadField(field, "holds a control character")
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
