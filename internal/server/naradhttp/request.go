package naradhttp

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

// request is one request, with its query read once, and strictly.
type request struct {
	*http.Request
	query url.Values
}

// parameters are those that some route reads. Others are ignored, as unknown fields are.
var parameters = []string{
	"afterRevision", "afterSequence", "afterSessionSequence", "afterWorkflowSequence", "commandId", "cursor", "hydrate", "limit", "name", "profiles",
	"rootRunId", "sessionId", "state", "unclaimed", "watch", "workflowId", "workspaceId",
}

// newRequest refuses a query that would have to be guessed at: to leave out what cannot
// be read, or to choose among several, would answer a question that nobody asked.
func newRequest(r *http.Request) (*request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("bad_request", "the query is not well-formed")
	}
	for _, name := range parameters {
		if len(query[name]) > 1 {
			return nil, bad("bad_request", name+" is given more than once")
		}
	}
	return &request{r, query}, nil
}

// lastEventID returns the id of the last frame that the client has, "" for none.
func lastEventID(r *request) (string, error) {
	if len(r.Header.Values("Last-Event-ID")) > 1 {
		return "", bad("bad_request", "Last-Event-ID is given more than once")
	}
	return r.Header.Get("Last-Event-ID"), nil
}

func (r *request) principal() access.Principal { return server.PrincipalOf(r.Context()) }

// session returns the id of the session that the path names.
func (r *request) session() (string, error) {
	id := r.PathValue("id")
	own, _ := strings.CutSuffix(id, "~trace") // a side session is read like any other (R6)
	if err := checkID("sessionId", own); err != nil {
		return "", err
	}
	server.Annotate(r.Context(), "session", id)
	return id, nil
}
