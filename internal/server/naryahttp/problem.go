package naryahttp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/refusal"
	"github.com/mahati-host/mahati/narya"
)

// malformed is a request that has not the form that it must have.
func malformed(why string) error { return narya.Refuse(narya.CodeMalformed, "%s", why) }

// refuse is a refusal with a code, in the words of the catalogue unless why says more.
func refuse(code narya.Code, why string) error { return narya.Refuse(code, "%s", why) }

// invalid is a request one field of which has a value that cannot be.
func invalid(field, rule string) error {
	var c checked
	c.add(field, rule)
	return c.err()
}

// checked collects what is wrong with the fields of a request.
type checked struct{ fields map[string]string }

// add notes a field, unless something is wrong with it already.
func (c *checked) add(field, rule string) {
	if c.fields == nil {
		c.fields = map[string]string{}
	}
	if c.fields[field] == "" {
		c.fields[field] = rule
	}
}

// note notes what a check of package server or narya found, if it found anything.
func (c *checked) note(err error) {
	var p *server.Problem
	var e *narya.Error
	switch {
	case errors.As(err, &p) && p.Field != "":
		c.add(p.Field, p.Rule)
	case errors.As(err, &e):
		for field, rule := range e.Fields {
			c.add(field, rule)
		}
	}
}

// err is the refusal, nil where nothing is wrong.
func (c *checked) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	var each []string
	for _, field := range slices.Sorted(maps.Keys(c.fields)) {
		each = append(each, field+": "+c.fields[field])
	}
	e := narya.Refuse(narya.CodeInvalid, "%s", strings.Join(each, "; "))
	e.Fields = c.fields
	return e
}

// memberFields is where a problem keeps the fields of its envelope.
const memberFields = "fields"

// problemOf makes a problem of an error, which the edge writes. What is not listed is the
// edge's to translate, or internal.
func problemOf(err error) error {
	var p *server.Problem
	if errors.As(err, &p) {
		if p.Field == "" {
			return p
		}
		err = invalid(p.Field, p.Rule)
	}
	var refusal *narya.Error
	if errors.As(err, &refusal) {
		return problem(refusal)
	}
	return problems.ProblemOf(err)
}

// problem is how a refusal travels to the edge.
func problem(e *narya.Error) *server.Problem {
	entry, _ := narya.Lookup(e.Code)
	p := &server.Problem{HTTPStatus: entry.Status, Code: string(e.Code), Detail: e.Message}
	if entry.Status == http.StatusServiceUnavailable {
		p.RetryAfter = refusal.Soon
	}
	if e.Fields != nil {
		p.Members = map[string]any{memberFields: e.Fields}
	}
	return p
}

// problems are what the kernel refuses, in the words of the catalogue.
var problems = refusal.Table{
	row(host.ErrGone, narya.CodeDeleted, ""),
	row(host.ErrNotFound, narya.CodeSessionNotFound, ""),
	row(host.ErrOverloaded, narya.CodeOverloaded, ""),
	row(host.ErrRecovering, narya.CodeNotReady, ""),
	row(host.ErrClosed, narya.CodeNotReady, ""),
	row(host.ErrStorageFull, narya.CodeStoreRefuses, ""),
	row(host.ErrBroken, narya.CodeStoreRefuses, ""),
	row(context.Canceled, narya.CodeInternal, "the request ended before its answer"), // no error of ours to be logged
}

func row(err error, code narya.Code, why string) refusal.Row {
	return refusal.Row{Err: err, Problem: *problem(narya.Refuse(code, "%s", why))}
}

// Form is how refusals under Prefix are written, those of the edge too.
func Form() server.Form { return server.Form{Prefix: Prefix, Encode: envelope} }

// envelope writes a problem as the one envelope of the contract. The status is that of its
// code, since a code says the same everywhere.
func envelope(p *server.Problem) (status int, mediaType string, body []byte) {
	e := narya.Refuse(codeOf(p), "%s", p.Detail)
	e.Fields, _ = p.Members[memberFields].(map[string]string)
	body, err := narya.EncodeError(e)
	if err != nil { // a text of ours is not UTF-8
		body, _ = narya.EncodeError(narya.Refuse(e.Code, ""))
	}
	entry, _ := narya.Lookup(e.Code)
	return entry.Status, "application/json", append(body, '\n')
}

// codeOf is the code of a problem: one of the contract's own, or that of what the edge says.
func codeOf(p *server.Problem) narya.Code {
	if entry, known := narya.Lookup(narya.Code(p.Code)); known && entry.Status != 0 {
		return entry.Code
	}
	if code, known := edgeCodes[p.Code]; known {
		return code
	}
	if p.HTTPStatus >= http.StatusInternalServerError {
		return narya.CodeInternal
	}
	return narya.CodeMalformed
}

// edgeCodes are the codes of what the edge refuses.
var edgeCodes = map[string]narya.Code{
	server.CodeUnauthenticated:  narya.CodeUnauthorised,
	server.CodeForbidden:        narya.CodeForbidden,
	server.CodeHostNotAllowed:   narya.CodeForbidden,
	server.CodeOriginNotAllowed: narya.CodeForbidden,
	server.CodeNotFound:         narya.CodeNoSuchRoute,
	server.CodeMethodNotAllowed: narya.CodeMethod,
	server.CodeBodyTooLarge:     narya.CodeTooLarge,
	server.CodeRecovering:       narya.CodeNotReady,
	server.CodeDraining:         narya.CodeNotReady,
	server.CodeNotReady:         narya.CodeNotReady,
	server.CodeTooManyStreams:   narya.CodeOverloaded,
}

// answer is what the answer to a command means: nil if it has its effect, now or by an
// earlier one that said the same. An operation looks at the words whose meaning it knows
// better before it asks this.
func answer(a host.Answer) error {
	if a.Err == decide.RefusedArchived {
		return refuse(narya.CodeArchived, "")
	}
	switch a.Status {
	case decide.Accepted, decide.AlreadyApplied:
		return nil
	case decide.NotFound:
		return refuse(narya.CodeSessionNotFound, "")
	case decide.Forbidden:
		return refuse(narya.CodeForbidden, a.Detail)
	case decide.Expired:
		return refuse(narya.CodeExpired, a.Detail)
	case decide.Unsupported:
		return refuse(narya.CodeUnsupported, a.Detail)
	case decide.Rejected:
		return refuse(narya.CodeInvalid, a.Detail)
	}
	return refuse(narya.CodeConflict, a.Detail)
}
