package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/narad/session"
)

// What readers see of the journal. Bindings know it under these names.
type (
	// Record is a stored fact with its numbers.
	Record = journal.Record
	// Chunk is one page of records.
	Chunk = journal.Chunk
	// Page bounds a read.
	Page = journal.Page
	// Order is an order in which a session is read; its session is the view's.
	Order = journal.Order
	// Framer makes frames of a session's facts, once for all its readers.
	Framer = feed.Framer
	// Frames is one reader of frames.
	Frames = feed.Frames
)

// NewFramer returns a maker of frames: encode is called once per fact.
func (h *Host) NewFramer(encode func(Record) []byte) *Framer { return feed.NewFramer(h.feed, encode) }

// Epoch identifies the store (DESIGN §4): a cursor of another epoch means nothing.
func (h *Host) Epoch() string { return h.journal.Identity().Epoch }

// ErrInvalid says that the cursor of a list is none that the list gave.
var ErrInvalid = journal.ErrInvalid

// View is a session in the eyes of a reader who may see it.
type View struct {
	host *Host
	row  journal.SessionRow
	p    access.Principal
}

// Attach returns the view of a session, for a caller who may do action in it. An error
// is one of package access, ErrNotFound, ErrGone, or of reading.
func (h *Host) Attach(ctx context.Context, p access.Principal, action access.Action, id string) (*View, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	if session, side := traceOf(id); side {
		return h.attachTrace(ctx, p, action, id, session)
	}
	workspace, err := h.workspace(ctx, p, action, id)
	if err != nil {
		return nil, err
	}
	if workspace == unknownSession {
		return nil, ErrNotFound
	}
	row, err := h.sessionRow(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("find session: %w", err)
	}
	return &View{host: h, row: row, p: p}, nil
}

// Summary is what a list shows of a session.
type Summary struct {
	SessionID   string
	WorkspaceID string
	State       string
	index.Session
	// Last is the session's last sequence.
	Last       uint64
	ActiveRoot string
	Workflow   string
}

// Summary returns the session's summary as it is now.
func (v *View) Summary(ctx context.Context) (Summary, error) {
	return v.host.summary(ctx, v.row)
}

func (h *Host) summary(ctx context.Context, row journal.SessionRow) (Summary, error) {
	head, err := h.journal.Head(ctx, row.Session)
	if err != nil {
		return Summary{}, fmt.Errorf("find head: %w", err)
	}
	s := Summary{
		SessionID: row.Session, WorkspaceID: row.Workspace, State: row.State,
		Session: index.Read[index.Session](row.Value), Last: head.Sequence,
	}
	work, err := journal.Get[journal.OpenWorkRow](ctx, h.journal, journal.OpenWorkKey(row.Session))
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return Summary{}, fmt.Errorf("find open work: %w", err)
	}
	open := index.Read[index.Open](work.Value)
	s.ActiveRoot, s.Workflow = open.RootRunID, open.WorkflowID
	return s, nil
}

// Cursor is a place in one of a session's orders.
type Cursor struct {
	// After is the sequence after which to read: of the session, or of the run tree or
	// workflow that is named.
	After      uint64
	RootRunID  string
	WorkflowID string
}

// Read returns a page of the session's facts.
func (v *View) Read(ctx context.Context, c Cursor, page Page) (Chunk, error) {
	return v.host.journal.Read(ctx, v.order(c), page)
}

// Scan visits a page of the session's facts, whose bytes are good until visit returns; it
// reports whether there are more behind it. visit must not call the host.
func (v *View) Scan(ctx context.Context, c Cursor, page Page, visit func(*Record)) (more bool, err error) {
	return v.host.journal.Scan(ctx, v.order(c), page, visit)
}

func (v *View) order(c Cursor) journal.Order {
	switch {
	case c.RootRunID != "":
		return journal.ByRun{Session: v.row.Session, RootRunID: c.RootRunID, After: c.After}
	case c.WorkflowID != "":
		return journal.ByWorkflow{Session: v.row.Session, WorkflowID: c.WorkflowID, After: c.After}
	}
	return journal.BySession{Session: v.row.Session, After: c.After}
}

// Find returns the fact with exactly this event id, or ErrNotFound.
func (v *View) Find(ctx context.Context, eventID string) (Record, error) {
	return v.host.journal.Find(ctx, v.row.Session, eventID)
}

// Follow reads the session as frames after a sequence, and goes on with it.
func (v *View) Follow(f *Framer, after uint64) *Frames {
	return f.Subscribe(feed.Session(v.row.Session, after))
}

// Display lends the session's whole state at its head, or shortly behind it.
func (v *View) Display(ctx context.Context, use func(*session.State) error) error {
	return v.host.replay.Display(ctx, v.row.Session, func(s replay.State) error { return use(s.Session) })
}

// Filter narrows a list of sessions.
type Filter struct {
	State     string
	Workspace string
	Cursor    string
	Limit     int
}

// Sessions lists the sessions that the caller may see, the newest first. A page may be
// shorter than its limit and still have a next one.
func (h *Host) Sessions(ctx context.Context, p access.Principal, f Filter) (list []Summary, next string, err error) {
	if !h.ready.Load() {
		return nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ListSessions, f.Workspace); err != nil {
		return nil, "", err
	}
	page := journal.RowPage{Cursor: f.Cursor, Limit: f.Limit}
	rows, err := h.journal.Rows(ctx, journal.Sessions{State: f.State, Workspace: f.Workspace, NewestFirst: true}, page)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	for _, row := range rows.Rows {
		row := row.(journal.SessionRow)
		if access.Authorize(p, access.ReadSession, row.Workspace) != nil {
			continue
		}
		s, err := h.summary(ctx, row)
		if errors.Is(err, journal.ErrDeleted) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, s)
	}
	return list, rows.Next, nil
}

// Asked is one open interrupt of the inbox.
type Asked struct {
	InterruptID  string
	SessionID    string
	WorkspaceID  string
	SessionTitle string
	// Sequence is the session sequence of the request.
	Sequence uint64
	index.Interrupt
}

// Inbox lists the open interrupts that the caller may decide, in the order in which
// they were requested. A page may be shorter than its limit and still have a next one.
func (h *Host) Inbox(ctx context.Context, p access.Principal, session, cursor string, limit int) (list []Asked, next string, err error) {
	if !h.ready.Load() {
		return nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ReadInbox, ""); err != nil {
		return nil, "", err
	}
	rows, err := h.journal.Rows(ctx, journal.OpenInterrupts{Session: session}, journal.RowPage{Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", fmt.Errorf("list open interrupts: %w", err)
	}
	for _, row := range rows.Rows {
		row := row.(journal.InterruptRow)
		of, err := h.sessionRow(ctx, row.Session)
		if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("find session: %w", err)
		}
		if access.Authorize(p, access.ResolveInterrupt, of.Workspace) != nil {
			continue
		}
		list = append(list, Asked{
			InterruptID: row.ID, SessionID: row.Session, WorkspaceID: of.Workspace,
			SessionTitle: index.Read[index.Session](of.Value).Title, Sequence: row.Sequence,
			Interrupt: index.Read[index.Interrupt](row.Value),
		})
	}
	return list, rows.Next, nil
}

// Delete removes a session that is idle, for ever: its id answers ErrGone.
func (h *Host) Delete(ctx context.Context, p access.Principal, id string) (Answer, error) {
	if !h.ready.Load() {
		return Answer{}, h.notReady()
	}
	workspace, err := h.workspace(ctx, p, access.DeleteSession, id)
	if err != nil {
		return Answer{}, err
	}
	if workspace == unknownSession {
		return Answer{}, ErrNotFound
	}
	return h.hand(ctx, id, &task{remove: true, actor: hostActor, reply: make(chan reply, 1)})
}
