package server

import (
	"net/http"
	"path"
	"strings"
)

// Routes serves a mux, and answers what it has no route for with problem
// documents where the mux itself would write plain text. It sends nobody to
// another address: a path is what it says, or nothing is there.
func Routes(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !clean(r.URL.Path) {
			WriteProblem(w, r, nothingHere())
			return
		}
		fallback, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		// No route: only the mux knows whether another method would have one.
		probe := &probe{header: make(http.Header)}
		fallback.ServeHTTP(probe, r)
		if probe.status == http.StatusMethodNotAllowed {
			refuseMethod(w, r, probe.header.Get("Allow"))
			return
		}
		WriteProblem(w, r, nothingHere())
	})
}

// clean reports whether a path has no empty step and none that leads elsewhere.
func clean(p string) bool {
	return p == path.Clean(p) || len(p) > 1 && strings.TrimSuffix(p, "/") == path.Clean(p)
}

func nothingHere() *Problem {
	return &Problem{HTTPStatus: http.StatusNotFound, Code: CodeNotFound, Detail: "there is nothing at this address"}
}

// refuseMethod answers a request whose path takes other methods: these.
func refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	WriteProblem(w, r, &Problem{
		HTTPStatus: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed, Detail: "this address takes the methods " + allowed,
	})
}

// A probe takes an answer and keeps its status and header.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }
