package naradhttp

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/internal/watch"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// extras are what a stream brings beside the authority.
type extras struct{ messages, graph, watch bool }

// readExtras reads hydrate and watch of a query.
func readExtras(r *request) (x extras, err error) {
	if text := r.query.Get("hydrate"); text != "" {
		for _, name := range strings.Split(text, ",") {
			switch name {
			case "messages":
				x.messages = true
			case "graph":
				x.graph = true
			default:
				return x, bad("bad_request", "hydrate names messages, graph or both")
			}
		}
	}
	switch r.query.Get("watch") {
	case "", "0":
	case "1":
		x.watch = true
	default:
		return x, bad("bad_request", "watch is 1 or 0")
	}
	return x, nil
}

// hydrated follows a session as records: each fact, what was derived from it, and behind
// all that were waiting the watch events that cover them (R28, R29).
type hydrated struct {
	*host.Records
	view   *host.View
	extras extras
	at     beginning
	graphs *graph.Graphs
	begun  bool
}

// beginning is where a stream begins.
type beginning struct {
	after uint64
	// owed are watch events of the fact there that were not sent yet.
	owed []*narad.Revision
}

func newHydrated(v *host.View, x extras, at beginning) *hydrated {
	return &hydrated{Records: v.Records(at.after), view: v, extras: x, at: at, graphs: graph.NewGraphs(v.Session())}
}

// Poll gives the frames that wait, nil for none yet.
func (h *hydrated) Poll(ctx context.Context) ([]byte, error) {
	if !h.begun {
		h.begun = true
		if out, err := h.begin(ctx); err != nil || len(out) > 0 {
			return out, err
		}
	}
	records, err := h.Records.Poll(ctx)
	if err != nil {
		return nil, err
	}
	return h.frames(records)
}

// begin gives what comes before the first fact.
func (h *hydrated) begin(ctx context.Context) ([]byte, error) {
	var out []byte
	if h.extras.messages && h.at.after == 0 {
		record, err := transcriptOf(ctx, h.view)
		switch {
		case errors.Is(err, errTooLarge): // the facts tell it
		case err != nil:
			return nil, err
		default:
			out = appendFrame(out, "", record)
		}
	}
	if h.extras.watch {
		out = appendRevisions(out, h.at.owed)
	}
	if !h.extras.graph || h.at.after == 0 {
		return out, nil
	}
	return h.beginGraph(ctx, out)
}

// beginGraph gives the graph of the run tree at the cursor: of the fact there, whose
// record a broken stream may have kept back, or of the run that is under way.
func (h *hydrated) beginGraph(ctx context.Context, out []byte) ([]byte, error) {
	active, err := h.view.ActiveRoot(ctx, h.at.after)
	if err != nil {
		return nil, err
	}
	root := active
	if root == "" {
		if root, err = h.rootOfCursor(ctx); root == "" || err != nil {
			return out, err
		}
	}
	state, err := graphOf(ctx, h.view, root, h.at.after)
	if err != nil || !state.Fits() {
		return out, err // a graph that is not begun is not followed either
	}
	if active != "" {
		h.graphs.Adopt(state)
	}
	return appendRecord(out, state.Snapshot()), nil
}

func (h *hydrated) rootOfCursor(ctx context.Context) (string, error) {
	chunk, err := h.view.Read(ctx, host.Cursor{After: h.at.after - 1}, host.Page{Limit: 1})
	if err != nil || len(chunk.Records) == 0 {
		return "", err
	}
	return chunk.Records[0].RootRunID, nil
}

// frames gives facts that follow each other, with what is derived from them.
func (h *hydrated) frames(records []host.Record) ([]byte, error) {
	var out []byte
	facts := make([]narad.Authority, len(records))
	for i, r := range records {
		out = appendFrame(out, r.EventID, r.Bytes)
		fact, err := factOf(r)
		if err != nil {
			return nil, err
		}
		facts[i] = fact
		if !h.extras.graph {
			continue
		}
		rec, err := h.graphs.Apply(fact)
		if err != nil && !errors.Is(err, graph.ErrGap) { // of a graph that was too large to begin with
			return nil, err
		}
		if rec != nil {
			out = appendRecord(out, rec)
		}
	}
	if h.extras.watch {
		out = appendRevisions(out, watch.Coalesce(facts))
	}
	return out, nil
}

// factOf decodes a stored fact.
func factOf(r host.Record) (narad.Authority, error) {
	rec, err := narad.Decode(r.Bytes)
	if fact, ok := rec.(narad.Authority); ok && err == nil {
		return fact, nil
	}
	return nil, host.ErrDamaged
}

// owedAfter returns where a stream goes on after a watch event of the session: behind the
// fact that it covers, with the fact's events that follow it. False for any other id.
func owedAfter(ctx context.Context, v *host.View, id string) (beginning, bool, error) {
	place, ok := watch.Parse(id)
	if !ok || place.OfWorkspace() {
		return beginning{}, false, nil
	}
	after := uint64(place.Revision)
	chunk, err := v.Read(ctx, host.Cursor{After: after - 1}, host.Page{Limit: 1})
	if err != nil || len(chunk.Records) == 0 {
		return beginning{}, false, err
	}
	fact, err := factOf(chunk.Records[0])
	if err != nil {
		return beginning{}, false, err
	}
	rest, ok := watch.Rest(id, watch.Session(fact))
	return beginning{after, rest}, ok, nil
}

// appendFrame appends a record as a frame. A record that was encoded is one line.
func appendFrame(out []byte, id string, record []byte) []byte {
	out, err := sse.AppendFrame(out, id, record)
	if err != nil {
		panic("naradhttp: a record is one line: " + err.Error())
	}
	return out
}

// appendRecord appends a record without an id.
func appendRecord(out []byte, rec narad.Record) []byte {
	return appendFrame(out, "", encode(rec))
}

func appendRevisions(out []byte, events []*narad.Revision) []byte {
	out = slices.Grow(out, len(events)*256)
	for _, r := range events {
		out = appendFrame(out, r.EventID, encode(r))
	}
	return out
}

// encode writes a record that was derived from facts.
func encode(rec narad.Record) []byte {
	data, err := narad.Encode(rec)
	if err != nil {
		panic("naradhttp: what is derived from facts is a record: " + err.Error())
	}
	return data
}
