package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// maxSlug bounds the part of a name that comes of a title.
const maxSlug = 40

// nameFor returns the name by which other sessions call a new one: its title and 6
// characters of its id as Narya shows it, more where another session has that name (R44).
func (h *Host) nameFor(ctx context.Context, id string, c facts.Created) (string, error) {
	slug := slugOf(c.Title)
	if slug == "" {
		slug = slugOf(filepath.Base(c.Cwd))
	}
	if slug == "" {
		slug = "session"
	}
	digits := strings.ReplaceAll(narya.UUID(narya.KindSession, id), "-", "")
	for _, n := range []int{6, 12} {
		name := slug + "-" + digits[len(digits)-n:]
		given, err := h.given(ctx, name)
		if err != nil {
			return "", fmt.Errorf("look for the name of a session: %w", err)
		}
		if !given {
			return name, nil
		}
	}
	return slug + "-" + digits, nil
}

// given reports whether a session has a name, or had it before it was deleted.
func (h *Host) given(ctx context.Context, name string) (bool, error) {
	for _, key := range []journal.Key{index.IntercomName(name), index.IntercomGone(name)} {
		_, err := journal.Get[journal.AliasRow](ctx, h.journal, key)
		if !errors.Is(err, journal.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// keepName keeps the name of a session that is being deleted from being given again.
func (h *Host) keepName(ctx context.Context, session, name string) error {
	if name == "" {
		return nil
	}
	key := index.IntercomGone(name)
	return h.carry(ctx, journal.Put{Row: journal.AliasRow{Space: key.Space, Alias: key.ID, ID: session}})
}

// slugOf is a text in lower-case letters, digits and hyphens.
func slugOf(text string) string {
	var out []byte
	for i := 0; i < len(text) && len(out) < maxSlug; i++ {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			out = append(out, c)
		case 'A' <= c && c <= 'Z':
			out = append(out, c-'A'+'a')
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	return strings.Trim(string(out), "-")
}

// unique are the conditions of a batch with the first fact of a session: none has the name that
// another one has or had (R44), and none is shown as another one is (R5).
func unique(id string, fact narad.Authority) []journal.Condition {
	created, ok := facts.Read[facts.Created](fact, facts.SessionCreated)
	if !ok {
		return nil
	}
	conditions := []journal.Condition{journal.IfAbsent{Key: alike(id)}}
	if name := created.IntercomName; name != "" {
		conditions = append(conditions, journal.IfAbsent{Key: index.IntercomName(name)}, journal.IfAbsent{Key: index.IntercomGone(name)})
	}
	return conditions
}

// addressee completes what is to be said with the session of the name, "" where there is none
// that may be spoken to.
func (h *Host) addressee(ctx context.Context, t *decide.Tell, may func(workspace string) bool) error {
	key := index.IntercomName(t.To)
	if key.Validate() != nil {
		return nil
	}
	row, err := journal.Get[journal.AliasRow](ctx, h.journal, key)
	var of journal.SessionRow
	if err == nil {
		of, err = h.sessionRow(ctx, row.Session)
	}
	switch {
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
		return nil
	case err != nil:
		return fmt.Errorf("find a session by its name: %w", err)
	case may(of.Workspace):
		t.ToSessionID, t.ToArchived = row.Session, of.State == index.Archived
	}
	return nil
}

// deliver tells others what a session has for them, to each in its order, and returns those
// that take nothing now: what is for them stays, and keeps nobody else from hearing. What was
// taken is taken once: its command's id is that of the fact.
func (h *Host) deliver(ctx context.Context, session string) (shut []string, err error) {
	for {
		next, err := h.hand(ctx, session, &task{command: decide.NextOutgoing{Except: shut}, actor: hostActor, reply: make(chan reply, 1)})
		if err != nil || next.SessionSequence == 0 {
			return shut, err
		}
		fact, err := h.fact(ctx, session, next.SessionSequence)
		if err != nil {
			return shut, fmt.Errorf("read what is to be delivered: %w", err)
		}
		to, done, err := h.deliverFact(ctx, session, fact)
		switch {
		case errors.Is(err, errShut):
			shut = append(shut, to)
			h.shut.note(to, session)
			continue
		case err != nil:
			return shut, err
		}
		if _, err = h.hand(ctx, session, &task{command: done, actor: hostActor, reply: make(chan reply, 1)}); err != nil {
			return shut, err
		}
	}
}

// fireOutbox delivers what a session has for others. What stays is tried again after a
// growing pause, and as soon as who took nothing has room.
func (h *Host) fireOutbox(ctx context.Context, session string) error {
	shut, err := h.deliver(ctx, session)
	if err == nil && len(shut) > 0 {
		h.opt.Logger.Debug("sessions take nothing now", "session", session, "to", shut)
	}
	return err
}

// errShut says that a session takes nothing now: it is archived, its queue is full, or as many
// asks wait in it as may.
var errShut = errors.New("the session takes nothing now")

// shut are the sessions that took nothing, each with those that have something for it.
type shut struct {
	mu   sync.Mutex
	from map[string]map[string]bool // guarded by mu
}

func (s *shut) note(to, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		s.from = map[string]map[string]bool{}
	}
	if s.from[to] == nil {
		s.from[to] = map[string]bool{}
	}
	s.from[to][from] = true
}

// take returns who has something for a session, and forgets them.
func (s *shut) take(to string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Collect(maps.Keys(s.from[to]))
	delete(s.from, to)
	return list
}

// opens lets those try again who have something for the session, where a fact makes room.
func (o *owner) opens(fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.RunStarted:
		if f.RunID != f.RootRunID {
			return
		}
	case *narad.Custom:
		if !slices.Contains(opening, f.Name) {
			return
		}
	default:
		return
	}
	o.open()
}

// open lets those try again who have something for the session.
func (o *owner) open() {
	for _, from := range o.host.shut.take(o.id) {
		o.host.timers.Again(journal.TimerKey(from, index.OutboxTimerID))
	}
}

// opening are facts after which a session may take what it did not before.
var opening = []string{facts.SessionRestored, facts.InputWithdrawn, facts.IntercomSent, facts.IntercomClosed}

// deliverFact tells another session of one fact, and returns what became of it: errShut where
// it is for later.
func (h *Host) deliverFact(ctx context.Context, session string, fact narad.Authority) (to string, done decide.Deliver, err error) {
	var id string
	var c decide.Command
	if s, ok := facts.Read[facts.Sent](fact, facts.IntercomSent); ok {
		to, id = s.ToSessionID, s.MessageID
		c = decide.Receive{Told: facts.Told{
			MessageID: s.MessageID, From: s.From, FromSessionID: session, Content: s.Content, Kind: s.Kind, AskID: s.AskID,
		}}
	} else {
		closed, _ := facts.Read[facts.AskClosed](fact, facts.IntercomClosed)
		to, id, c = closed.Tell(), closed.AskID, decide.ReceiveEnd{AskID: closed.AskID, Reason: closed.Reason}
	}
	command := fmt.Sprintf("%s:%d", session, fact.Envelope().SessionSequence)
	hash := sha256.Sum256([]byte(command))
	a, err := h.hand(ctx, to, &task{
		command: c, actor: hostActor, commandID: command, hash: hash[:],
		keys: []journal.Key{journal.CommandKey(to, "intercom", command)}, reply: make(chan reply, 1),
	})
	done.MessageID = id
	receive, said := c.(decide.Receive)
	switch {
	case errors.Is(err, journal.ErrDeleted), errors.Is(err, journal.ErrNotFound):
		done.Code = "gone"
	case errors.Is(err, journal.ErrDamaged): // it costs no other session what that has to say to others
		done.Code = "damaged"
	case errors.Is(err, ErrOverloaded) && said: // nor does one that has much to do
		return to, done, errShut
	case err != nil:
		return to, done, fmt.Errorf("deliver to another session: %w", err)
	case a.Status == decide.NotFound:
		done.Code = "gone"
	case a.Status == decide.Accepted, a.Status == decide.AlreadyApplied:
	case said && receive.Undeliverable(a):
		done.Code = orElse(string(a.Err), string(a.Status))
	default:
		return to, done, errShut
	}
	return to, done, nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// answers are those who wait for the end of an ask.
type answers struct {
	mu      sync.Mutex
	waiting map[string]chan struct{} // by ask; guarded by mu
}

// wait returns what is closed when an ask has ended durably, from now on.
func (a *answers) wait(askID string) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]chan struct{}{}
	}
	if a.waiting[askID] == nil {
		a.waiting[askID] = make(chan struct{})
	}
	return a.waiting[askID]
}

// noteEnd tells who waits that a fact may have ended an ask: they look.
func (a *answers) noteEnd(f *narad.Custom) {
	switch f.Name {
	case facts.Intercom, facts.IntercomClosed, facts.IntercomDelivered:
	default:
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, waiting := range a.waiting {
		close(waiting)
		delete(a.waiting, id)
	}
}

func (h *handle) Tell(ctx context.Context, t agent.Telling) (askID string, err error) {
	workspace, err := h.o.host.workspaceOf(ctx, h.o.id)
	if err != nil {
		return "", err
	}
	c := decide.Tell{To: t.To, Content: t.Content, Ask: t.Ask, RunID: h.info.RunID, AgentID: shorten(t.AgentID)}
	if err := h.o.host.addressee(ctx, &c, func(w string) bool { return w == workspace }); err != nil {
		return "", err
	}
	a, err := h.do(ctx, &task{command: c})
	if err == nil && !a.Status.Accepted() {
		err = invalid(a.Detail)
	}
	return a.RequestID, err
}

func (h *handle) AwaitAnswer(ctx context.Context, askID string) (content string, answered bool, err error) {
	for {
		ended := h.o.host.answers.wait(askID)
		fact, err := h.o.host.factAt(ctx, h.o.id, index.AskEnd(askID))
		switch {
		case err == nil:
			told, answered := facts.Read[facts.Told](fact, facts.Intercom)
			return told.Content, answered, nil
		case !errors.Is(err, journal.ErrNotFound):
			return "", false, fmt.Errorf("find the answer: %w", err)
		}
		if err := h.awaitEnd(ctx, ended); err != nil {
			return "", false, err
		}
	}
}

// awaitEnd waits for another session, to which it leaves its place among the running agents
// meanwhile: who is asked must be able to answer.
func (h *handle) awaitEnd(ctx context.Context, ended <-chan struct{}) error {
	h.o.host.places.lend(h.o.id)
	defer h.o.host.places.reclaim(h.o.id)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.o.ended:
		return agent.ErrEnded
	}
}

func (h *handle) AnswerAsk(ctx context.Context, askID, content, agentID string) error {
	a, err := h.do(ctx, &task{command: decide.AnswerAsk{
		AskID: askID, Content: content, RunID: h.info.RunID, AgentID: shorten(agentID),
	}})
	switch {
	case err != nil:
		return err
	case a.Err == decide.RefusedAskClosed:
		return agent.ErrConflict
	case !a.Status.Accepted():
		return invalid(a.Detail)
	}
	return nil
}

// Sent returns what a session said to another one in the fact of a sequence.
func (v *View) Sent(ctx context.Context, sequence int64) (facts.Sent, error) {
	fact, err := v.host.fact(ctx, v.row.Session, sequence)
	if err != nil {
		return facts.Sent{}, fmt.Errorf("read what was sent: %w", err)
	}
	sent, _ := facts.Read[facts.Sent](fact, facts.IntercomSent)
	return sent, nil
}

// OpenAsk is an ask of another session that waits for the answer of this one.
type OpenAsk struct {
	AskID   string
	From    string
	Content string
	// Redacted says that Content stands in the place of what was asked.
	Redacted bool
	AskedAt  string
}

// Asks lists the asks that were put to the session and are open, in the order of their ids,
// which is that of their age unless the clock went back.
func (v *View) Asks(ctx context.Context) ([]OpenAsk, error) {
	control, err := v.host.replay.Open(ctx, v.row.Session)
	if err != nil {
		return nil, fmt.Errorf("find open asks: %w", err)
	}
	var list []OpenAsk
	for _, ask := range control.Desk.Asked {
		fact, err := v.host.fact(ctx, v.row.Session, ask.Sequence)
		if err != nil {
			return nil, fmt.Errorf("read an ask: %w", err)
		}
		told, _ := facts.Read[facts.Told](fact, facts.Intercom)
		open := OpenAsk{AskID: ask.AskID, From: ask.From, Content: told.Content, AskedAt: fact.Envelope().Timestamp}
		redacted, err := v.Redaction(ctx, told.MessageID)
		if err != nil {
			return nil, err
		}
		if redacted != nil {
			open.Redacted, open.Content = true, redacted.Shown()
		}
		list = append(list, open)
	}
	slices.SortFunc(list, func(a, b OpenAsk) int { return cmp.Compare(a.AskID, b.AskID) })
	return list, nil
}

// Asked returns the session to which an ask was put; ErrNotFound for one that never was. Where
// that session is gone it is the one that asked, and closed is true.
func (h *Host) Asked(ctx context.Context, askID string) (session string, closed bool, err error) {
	key := index.IntercomAsk(askID)
	if key.Validate() != nil {
		return "", false, ErrNotFound
	}
	row, err := journal.Get[journal.AliasRow](ctx, h.journal, key)
	if errors.Is(err, journal.ErrNotFound) {
		closed = true
		row, err = journal.Get[journal.AliasRow](ctx, h.journal, index.AskEnd(askID))
	}
	if err != nil {
		return "", false, fmt.Errorf("find an ask: %w", err)
	}
	return row.Session, closed, nil
}

// Callable is a session that others can speak to.
type Callable struct {
	Name      string
	SessionID string
	State     string
}

// Callables lists the sessions that the caller may speak to, the newest first. A page may be
// shorter than its limit and still have a next one.
func (h *Host) Callables(ctx context.Context, p access.Principal, cursor string, limit int) (list []Callable, next string, err error) {
	sessions, _, next, err := h.Sessions(ctx, p, Filter{Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	for _, s := range sessions {
		if s.IntercomName == "" || s.Narya == 0 || s.State == index.Archived || access.Authorize(p, access.SendMessage, s.WorkspaceID) != nil {
			continue
		}
		list = append(list, Callable{s.IntercomName, s.SessionID, s.State})
	}
	return list, next, nil
}
