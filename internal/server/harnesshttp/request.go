package harnesshttp

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

// request is one request, with its query read once, and strictly.
type request struct {
	*http.Request
	query url.Values
}

// parameters are those that some route reads. Others are ignored, as unknown fields are.
var parameters = []string{"credit", "cursor", "subscriber", "wait"}

// newRequest refuses a query that would have to be guessed at.
func newRequest(r *http.Request) (*request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, server.Bad(server.CodeBadRequest, "the query is not well-formed")
	}
	for _, name := range parameters {
		if len(query[name]) > 1 {
			return nil, server.Bad(server.CodeBadRequest, name+" is given more than once")
		}
	}
	return &request{r, query}, nil
}

func (r *request) principal() access.Principal { return server.PrincipalOf(r.Context()) }

// run returns the id of the run that the path names.
func (r *request) run() (string, error) {
	id := r.PathValue("run")
	if err := server.CheckID("run_id", id); err != nil {
		return "", err
	}
	server.Annotate(r.Context(), "run", id)
	return id, nil
}

// number reads a whole number of a query within its bounds; absent is the default.
func (r *request) number(name string, least, most, otherwise uint64) (uint64, error) {
	if !r.query.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(r.query.Get(name), 10, 64)
	if err != nil || n < least || n > most {
		return 0, server.BadField(name, "must be a number from "+strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(most, 10))
	}
	return n, nil
}
