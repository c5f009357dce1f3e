package host

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Lost names an entry of a list whose stored data is damaged.
type Lost struct {
	// SessionID is the session that it touches, "" where that is not known.
	SessionID string
	// One of these names the entry in a list of them.
	InterruptID, AttachmentID, ArtifactID string
}

// damages collects what a page of a list cannot give.
type damages []journal.Damage

func (d *damages) add(found journal.Damage) { *d = append(*d, found) }

// told remembers which damaged rows were told of.
type told struct {
	mu   sync.Mutex
	rows map[toldRow]bool // guarded by mu
}

type toldRow struct {
	session string
	key     journal.Key
	cause   string // of rows that nothing names, which it tells apart
}

// first reports whether a row is told of for the first time.
func (t *told) first(d journal.Damage) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows == nil {
		t.rows = map[toldRow]bool{}
	}
	row := toldRow{session: d.Session, key: d.Key}
	if d.Session == "" && d.Key.ID == "" {
		row.cause = d.Cause.Error()
	}
	first := !t.rows[row]
	t.rows[row] = true
	return first
}

// damaged tells, once in the life of the host, of a row that cannot be read.
func (h *Host) damaged(d journal.Damage) {
	if h.told.first(d) {
		h.opt.Logger.Error("stored data is damaged: see mahati verify", "session", d.Session, "row", d.Key.String(), "error", d.Cause.Error())
	}
}

// sessionByFacts is the catalogue row of a session as its facts tell it. The errors are
// those of reading them; a session that nobody knows is damaged.
func (h *Host) sessionByFacts(ctx context.Context, id string) (journal.SessionRow, error) {
	if id == "" {
		return journal.SessionRow{}, journal.ErrDamaged
	}
	control, err := h.replay.Open(ctx, id)
	if err != nil {
		return journal.SessionRow{}, err
	}
	if !control.Desk.Exists() {
		return journal.SessionRow{}, journal.ErrNotFound
	}
	return index.CurrentSession(id, control.Session, control.Desk), nil
}

// openWork is what is active in a session.
func (h *Host) openWork(ctx context.Context, id string) (index.Open, error) {
	work, err := journal.Get[journal.OpenWorkRow](ctx, h.journal, journal.OpenWorkKey(id))
	switch {
	case errors.Is(err, journal.ErrDamaged):
		h.damaged(journal.Damage{Session: id, Key: journal.OpenWorkKey(id), Cause: err})
		control, err := h.replay.Open(ctx, id)
		if err != nil {
			return index.Open{}, err
		}
		return index.CurrentOpen(control.Session), nil
	case err != nil && !errors.Is(err, journal.ErrNotFound):
		return index.Open{}, err
	}
	return index.Read[index.Open](work.Value), nil
}

// sessionOfInterrupt is the session that an interrupt belongs to, "" if there is no such
// interrupt. Of one whose row is damaged the inbox tells, while it is open.
func (h *Host) sessionOfInterrupt(ctx context.Context, id string) (string, error) {
	row, err := journal.Get[journal.InterruptRow](ctx, h.journal, journal.InterruptKey(id))
	if errors.Is(err, journal.ErrNotFound) {
		return "", nil
	}
	if !errors.Is(err, journal.ErrDamaged) {
		return row.Session, err
	}
	session := ""
	damaged := func(d journal.Damage) {
		if d.Key.ID == id {
			h.damaged(d)
			session = d.Session
		}
	}
	for _, listErr := range journal.Each[journal.InterruptRow](ctx, h.journal, journal.OpenInterrupts{}, damaged) {
		if listErr != nil {
			return "", listErr
		}
	}
	if session == "" {
		return "", err
	}
	return session, nil
}

// unnamed makes of damage that names a session and none of its interrupts one for each that
// the session's facts say is open. What it cannot make any of it gives as it is.
func (h *Host) unnamed(ctx context.Context, d journal.Damage) ([]journal.Damage, error) {
	if d.Key.ID != "" || d.Session == "" {
		return []journal.Damage{d}, nil
	}
	h.damaged(d)
	control, err := h.replay.Open(ctx, d.Session)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return []journal.Damage{d}, nil
	case err != nil:
		return nil, ignoreGone(err)
	}
	var named []journal.Damage
	for _, open := range control.Session.OpenInterrupts() {
		named = append(named, journal.Damage{Session: d.Session, Key: journal.InterruptKey(open.InterruptID), Cause: d.Cause})
	}
	return named, nil
}

// askedByFacts is an open interrupt whose row is damaged, as its session's facts tell it:
// nil if they do not, or the caller may not decide it. known says that the caller may know
// of it.
func (h *Host) askedByFacts(ctx context.Context, p access.Principal, d journal.Damage) (a *Asked, known bool, err error) {
	h.damaged(d)
	session, err := h.sessionRowOf(ctx, d.Session)
	if err != nil && !errors.Is(err, journal.ErrDamaged) {
		return nil, false, ignoreGone(err)
	}
	if known = mayKnow(p, access.ResolveInterrupt, session, err); !known || err != nil {
		return nil, known, nil
	}
	if d.Key.ID == "" {
		return nil, true, nil // nobody can tell which
	}
	if _, err := h.journal.Row(ctx, d.Key); err == nil {
		return nil, true, nil // it is whole, and listed where it belongs
	}
	row, err := h.interruptByFacts(ctx, d)
	if err == nil {
		a, err = h.asked(ctx, p, row)
	}
	if errors.Is(err, journal.ErrDamaged) {
		return nil, true, nil
	}
	return a, true, ignoreGone(err)
}

func (h *Host) sessionRowOf(ctx context.Context, id string) (journal.SessionRow, error) {
	if id == "" {
		return journal.SessionRow{}, journal.ErrDamaged
	}
	return h.sessionRow(ctx, id)
}

// interruptByFacts is the row of an open interrupt as its request tells it.
func (h *Host) interruptByFacts(ctx context.Context, d journal.Damage) (journal.InterruptRow, error) {
	control, err := h.replay.Open(ctx, d.Session)
	if err != nil {
		return journal.InterruptRow{}, err
	}
	asked, _ := control.Session.Interrupt(d.Key.ID)
	if !asked.Open {
		return journal.InterruptRow{}, journal.ErrNotFound // the list was wrong, or is old by now
	}
	fact, err := h.fact(ctx, d.Session, asked.RequestedSequence)
	if err != nil {
		return journal.InterruptRow{}, err
	}
	request, ok := fact.(*narad.InterruptRequested)
	if !ok {
		return journal.InterruptRow{}, fmt.Errorf("fact %d is not the request of %q: %w", asked.RequestedSequence, d.Key.ID, journal.ErrDamaged)
	}
	return index.Requested(request), nil
}

// mayKnow reports whether a caller may hear of damage in a session. Where not even its
// workspace can be read, that is for who reaches all.
func mayKnow(p access.Principal, action access.Action, row journal.SessionRow, unread error) bool {
	workspace := row.Workspace
	if unread != nil {
		workspace = unknownSession
	}
	return access.Authorize(p, action, workspace) == nil
}

func ignoreGone(err error) error {
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
		return nil
	}
	return err
}
