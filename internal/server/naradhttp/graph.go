package naradhttp

import (
	"context"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad/graph"
)

// graph serves the graph of a run tree as a hydrate record (§9.7, R29).
func (b *Binding) graph(w http.ResponseWriter, r *request) error {
	v, s, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	root := r.query.Get("rootRunId")
	if root == "" {
		return bad("bad_request", "rootRunId names the run tree")
	}
	if err := checkID("rootRunId", root); err != nil {
		return err
	}
	state, err := graphOf(r.Context(), v, root, s.Last)
	switch {
	case err != nil:
		return err
	case state.Revision() == 0:
		return &server.Problem{HTTPStatus: http.StatusNotFound, Code: server.CodeNotFound, Detail: "no such run tree in the session"}
	case !state.Fits():
		return tooLarge("the graph is larger than one record: read the facts of the run")
	}
	setHeaders(w.Header(), s)
	writeJSON(w, http.StatusOK, append(encode(state.Snapshot()), '\n'))
	return nil
}

// graphOf derives the graph of a run tree from its facts up to a sequence of the session.
func graphOf(ctx context.Context, v *host.View, root string, upTo uint64) (*graph.State, error) {
	state := graph.New(v.Session(), graph.RunTree(root))
	err := v.RunTree(ctx, root, upTo, func(r host.Record) error {
		fact, err := factOf(r)
		if err != nil {
			return err
		}
		_, err = state.Apply(fact)
		return err
	})
	return state, err
}
