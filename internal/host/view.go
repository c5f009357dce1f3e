package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
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
	// Numbers are how many numbers a fact takes in the other contracts.
	Numbers = journal.Numbers
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
	open, err := h.openWork(ctx, row.Session)
	if err != nil {
		return Summary{}, fmt.Errorf("find open work: %w", err)
	}
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

// Sessions lists the sessions that the caller may see, the newest first, and names those
// of them whose stored data is damaged: an entry that cannot be read is made of the
// session's facts, and stands last, or is not there. A page may be shorter than its limit
// and still have a next one.
func (h *Host) Sessions(ctx context.Context, p access.Principal, f Filter) (list []Summary, lost []Lost, next string, err error) {
	if !h.ready.Load() {
		return nil, nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ListSessions, f.Workspace); err != nil {
		return nil, nil, "", err
	}
	of := journal.Sessions{State: f.State, Workspace: f.Workspace, NewestFirst: true}
	var damaged damages
	rows, next, err := journal.OnePage[journal.SessionRow](ctx, h.journal, of, journal.RowPage{Cursor: f.Cursor, Limit: f.Limit}, damaged.add)
	if err != nil {
		return nil, nil, "", fmt.Errorf("list sessions: %w", err)
	}
	for _, d := range damaged {
		h.damaged(d)
		row, err := h.sessionByFacts(ctx, d.Session)
		switch {
		case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
			continue
		case err != nil && !errors.Is(err, journal.ErrDamaged):
			return nil, nil, "", err
		}
		if mayKnow(p, access.ReadSession, row, err) {
			lost = append(lost, Lost{SessionID: d.Session})
		}
		if err == nil && cmp.Or(f.State, row.State) == row.State && cmp.Or(f.Workspace, row.Workspace) == row.Workspace {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		if access.Authorize(p, access.ReadSession, row.Workspace) != nil {
			continue
		}
		s, err := h.summary(ctx, row)
		switch {
		case errors.Is(err, journal.ErrDeleted):
		case errors.Is(err, journal.ErrDamaged):
			h.damaged(journal.Damage{Session: row.Session, Key: row.Key(), Cause: err})
			lost = append(lost, Lost{SessionID: row.Session})
		case err != nil:
			return nil, nil, "", err
		default:
			list = append(list, s)
		}
	}
	return list, lost, next, nil
}

// Asked is one open interrupt of the inbox.
type Asked struct {
	InterruptID  string
	SessionID    string
	WorkspaceID  string
	SessionTitle string
	// Narya is the version of Narya's mapping that applies to the session.
	Narya int
	// Sequence is the session sequence of the request.
	Sequence uint64
	index.Interrupt
}

// Inbox lists the open interrupts that the caller may decide, in the order in which
// they were requested, and names those of them whose stored data is damaged: what cannot
// be read is made of the session's facts, and stands last, or is not there. A page may be
// shorter than its limit and still have a next one.
func (h *Host) Inbox(
	ctx context.Context, p access.Principal, session, cursor string, limit int,
) (list []Asked, lost []Lost, next string, err error) {
	if !h.ready.Load() {
		return nil, nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ReadInbox, ""); err != nil {
		return nil, nil, "", err
	}
	var damaged damages
	of := journal.OpenInterrupts{Session: session}
	rows, next, err := journal.OnePage[journal.InterruptRow](ctx, h.journal, of, journal.RowPage{Cursor: cursor, Limit: limit}, damaged.add)
	if err != nil {
		return nil, nil, "", fmt.Errorf("list open interrupts: %w", err)
	}
	for _, row := range rows {
		asked, err := h.asked(ctx, p, row)
		switch {
		case errors.Is(err, journal.ErrDamaged): // of its session; only who reaches all may know
			if mayKnow(p, access.ResolveInterrupt, journal.SessionRow{}, err) {
				lost = append(lost, Lost{SessionID: row.Session, InterruptID: row.ID})
			}
		case err != nil:
			return nil, nil, "", err
		case asked != nil:
			list = append(list, *asked)
		}
	}
	var named damages
	for _, d := range damaged {
		of, err := h.unnamed(ctx, d)
		if err != nil {
			return nil, nil, "", err
		}
		named = append(named, of...)
	}
	for _, d := range named {
		asked, known, err := h.askedByFacts(ctx, p, d)
		if err != nil {
			return nil, nil, "", err
		}
		if known {
			lost = append(lost, Lost{SessionID: d.Session, InterruptID: d.Key.ID})
		}
		if asked != nil {
			list = append(list, *asked)
		}
	}
	return list, lost, next, nil
}

// asked is an open interrupt for a caller, nil if he may not decide it.
func (h *Host) asked(ctx context.Context, p access.Principal, row journal.InterruptRow) (*Asked, error) {
	of, err := h.sessionRow(ctx, row.Session)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find session: %w", err)
	}
	if access.Authorize(p, access.ResolveInterrupt, of.Workspace) != nil {
		return nil, nil
	}
	session := index.Read[index.Session](of.Value)
	return &Asked{
		InterruptID: row.ID, SessionID: row.Session, WorkspaceID: of.Workspace,
		SessionTitle: session.Title, Narya: session.Narya, Sequence: row.Sequence,
		Interrupt: index.Read[index.Interrupt](row.Value),
	}, nil
}

// maxUntold is how often a session may get something to tell others while it is deleted.
const maxUntold = 16

// Delete removes a session that is idle, for ever: its id answers ErrGone. First the asks that
// it is part of end, and the others know; what it had said to one that takes nothing now goes
// with it. Where that fails the session is there, without these asks.
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
	for range maxUntold {
		closed, err := h.hand(ctx, id, &task{command: decide.CloseAsks{Reason: "deleted"}, actor: hostActor, reply: make(chan reply, 1)})
		if err != nil || closed.Status == decide.Conflict {
			return closed, err
		}
		shut, err := h.deliver(ctx, id)
		if err != nil {
			return Answer{}, err
		}
		a, err := h.hand(ctx, id, &task{remove: true, shut: shut, actor: hostActor, reply: make(chan reply, 1)})
		if err != nil || a.Err != decide.RefusedUntold {
			return a, err
		}
	}
	return Answer{}, fmt.Errorf("others go on to speak with the session: %w", ErrOverloaded)
}
