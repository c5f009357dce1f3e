package naryahttp

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// request is one request, with its query read once, and strictly. Parameters that no
// operation knows are ignored, as unknown fields are.
type request struct {
	*http.Request
	query url.Values
}

// newRequest refuses a query that would have to be guessed at.
func newRequest(r *http.Request) (*request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, malformed("the query is not well-formed")
	}
	for _, values := range query {
		if len(values) > 1 {
			return nil, malformed("a parameter is given more than once")
		}
	}
	return &request{r, query}, nil
}

func (r *request) principal() access.Principal { return server.PrincipalOf(r.Context()) }

// commandID returns the id that makes the request one that can be sent again (R21), "" for
// a request that has none.
func (r *request) commandID() (string, error) {
	const header = "Idempotency-Key"
	values := r.Header.Values(header)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || server.CheckID(header, values[0]) != nil {
		return "", malformed(header + " must be 1 to 128 letters, digits and . _ : -, given once")
	}
	return values[0], nil
}

// decode reads the body, one JSON object, into v. Unknown fields are ignored, and null is
// an optional field left out. A known field of a wrong type is named (NRY-0003).
func (r *request) decode(v any) error { return server.DecodeBody(r.Request, v) }

// decodeOptional reads a body all fields of which are optional: none at all is as good as {}.
func (r *request) decodeOptional(v any) error { return server.DecodeOptional(r.Request, v) }

// flag reads a parameter that is true or false; absent is false.
func (r *request) flag(name string) (bool, error) {
	switch value := r.query.Get(name); {
	case !r.query.Has(name), value == "false":
		return false, nil
	case value == "true":
		return true, nil
	}
	return false, malformed(name + " must be true or false")
}

// word reads a parameter that is one of some words; absent is "".
func (r *request) word(name string, words ...string) (string, error) {
	value := r.query.Get(name)
	if r.query.Has(name) && !slices.Contains(words, value) {
		return "", malformed(name + " must be one of " + strings.Join(words, ", "))
	}
	return value, nil
}

// uuid reads a parameter that names something, in lower case; absent is "".
func (r *request) uuid(name string) (string, error) {
	if !r.query.Has(name) {
		return "", nil
	}
	id, ok := narya.ParseUUID(r.query.Get(name))
	if !ok {
		return "", malformed(name + " must be a UUID")
	}
	return id, nil
}

// limit reads how many items a page may have.
func (r *request) limit() (int, error) {
	const most, otherwise = 200, 50
	if !r.query.Has("limit") {
		return otherwise, nil
	}
	n, err := strconv.Atoi(r.query.Get("limit"))
	if err != nil || n < 1 || n > most {
		return 0, malformed("limit must be a number from 1 to " + strconv.Itoa(most))
	}
	return n, nil
}
