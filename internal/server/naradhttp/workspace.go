package naradhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/watch"
	"github.com/mahati-host/mahati/narad"
)

// workspaceStream follows the watch events of a workspace (R28).
func (b *Binding) workspaceStream(w http.ResponseWriter, r *request) error {
	id := r.PathValue("id")
	if err := checkID("workspaceId", id); err != nil {
		return err
	}
	server.Annotate(r.Context(), "workspace", id)
	space, err := b.host.Watch(r.Context(), r.principal(), id)
	if err != nil {
		return err
	}
	after, err := revision(r, space, id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Narad-Version", narad.Version)
	h.Set("Narad-Profiles", narad.Workspace.IDs()[0])
	h.Set("Narad-Epoch", b.host.Epoch())
	h.Set("Narad-Workspace-Revision", strconv.FormatUint(after, 10))
	if r.Method == http.MethodHead {
		return nil
	}
	st, err := b.streams.Open(w, r.Request)
	if err != nil {
		return err
	}
	n := &notices{Records: space.Records(after), binding: b, space: space, id: id}
	defer n.Close()
	if why := b.follow(st, n); why != "" {
		server.Annotate(r.Context(), server.KeyEnded, why)
	}
	return nil
}

// revision is where a stream of a workspace begins: behind the last event that the client
// has, or else now, since nothing has happened because somebody connected.
func revision(r *request, space *host.Workspace, workspaceID string) (uint64, error) {
	head := space.Head()
	after, err := number(r, "afterRevision")
	if err != nil {
		return 0, err
	}
	id, err := lastEventID(r)
	if err != nil {
		return 0, err
	}
	if id != "" {
		offset, ok, err := placeInWorkspace(r.Context(), space, workspaceID, id, head)
		if err != nil || ok {
			return offset, err
		}
		if !r.query.Has("afterRevision") {
			return 0, server.Conflict("cursor_unknown", "Last-Event-ID is no event of the workspace")
		}
	}
	switch {
	case !r.query.Has("afterRevision"):
		return head, nil
	case after > head:
		return 0, cursorAhead()
	}
	return after, nil
}

// placeInWorkspace returns the revision of a watch event of the workspace. It is believed
// if the fact there yields exactly this event, or if there is none any more: its session
// was deleted.
func placeInWorkspace(ctx context.Context, space *host.Workspace, workspaceID, id string, head uint64) (uint64, bool, error) {
	place, ok := watch.Parse(id)
	if !ok || !place.OfWorkspace() || uint64(place.Revision) > head {
		return 0, false, nil
	}
	offset := uint64(place.Revision)
	record, err := space.At(ctx, offset)
	if errors.Is(err, host.ErrNotFound) {
		return offset, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	held, err := space.Holds(ctx, record.Session)
	if err != nil || !held {
		return 0, false, err
	}
	fact, err := factOf(record)
	if err != nil {
		return 0, false, err
	}
	event := watch.Workspace(workspaceID, watch.Change{Fact: fact, Offset: place.Revision})
	return offset, event != nil && event.EventID == id, nil
}

// gather is how long watch events of a workspace gather before the next are sent: many
// sessions that work make ten notices a second, not one for each fact.
const gather = 100 * time.Millisecond

// notices follows the facts of the host and gives the watch events of one workspace.
type notices struct {
	*host.Records
	binding *Binding
	space   *host.Workspace
	id      string
	pending []*narad.Revision
	sent    time.Time // when events were given last
	reading bool      // there is more to read at once
}

// always is ready at all times.
var always = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// Wake gives a value when it may be worth to poll again.
func (n *notices) Wake() <-chan struct{} {
	if n.reading {
		return always
	}
	return n.Records.Wake()
}

// Poll gives the frames that wait, nil for none yet. It reads as far as there is
// something and no longer than events gather, so that a stream that has nothing to show
// beats.
func (n *notices) Poll(ctx context.Context) ([]byte, error) {
	now := n.binding.opt.Now
	if err := pause(ctx, gather-now().Sub(n.sent)); err != nil {
		return nil, err
	}
	for begun := now(); ; {
		records, err := n.Records.Poll(ctx)
		if err != nil {
			return nil, err
		}
		if err := n.take(ctx, records); err != nil {
			return nil, err
		}
		n.reading = len(records) > 0
		if !n.reading || now().Sub(begun) >= gather {
			return n.flush(), nil
		}
	}
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// take notes what the facts of the workspace's sessions tell. Of those that tell nothing
// but that they are there, the last is enough, so only that is decoded.
func (n *notices) take(ctx context.Context, records []host.Record) error {
	var changes []watch.Change
	plain := true // no later fact of the page is noted
	for _, r := range slices.Backward(records) {
		if !plain && !watch.MayTell(r.Bytes) {
			continue
		}
		held, err := n.space.Holds(ctx, r.Session)
		if err != nil {
			return err
		}
		if !held {
			continue
		}
		fact, err := factOf(r)
		if err != nil {
			return err
		}
		c := watch.Change{Fact: fact, Offset: int64(r.Offset)}
		if event := watch.Workspace(n.id, c); event == nil {
			continue
		} else if event.Kind == narad.TypeWorkspaceRevision {
			plain = false
		}
		changes = append(changes, c)
	}
	slices.Reverse(changes)
	n.pending = watch.Merge(n.pending, watch.CoalesceWorkspace(n.id, changes))
	return nil
}

func (n *notices) flush() []byte {
	if len(n.pending) == 0 {
		return nil
	}
	out := appendRevisions(nil, n.pending)
	n.pending, n.sent = nil, n.binding.opt.Now()
	return out
}
