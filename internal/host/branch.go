package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// What an agent is told of the conversation that its session goes on from, in bytes: of a
// message, and of all together. The newest messages count.
const (
	maxSaid   = 16 << 10
	maxBefore = 64 << 10
)

// maxAncestors bounds how many sessions a conversation is gathered from.
const maxAncestors = 64

// before is the conversation that a branch goes on from. An agent works without it where it
// cannot be read: its own part goes on.
func (o *owner) before(ctx context.Context, from facts.Created) []agent.Said {
	var all conversation
	for range maxAncestors {
		if from.Branch == nil || all.full() {
			break
		}
		var part conversation
		created, err := o.host.gather(ctx, from.ParentSessionID, from.Branch.Through, &part)
		if err != nil {
			o.log.Warn("read the conversation that the session goes on from", "parent", from.ParentSessionID, "error", err)
			break
		}
		all.precede(part)
		from = created
	}
	return all.list
}

// conversation is the newest part of what was said.
type conversation struct {
	list []agent.Said
	ids  []string // of the messages of the list
	size int
}

func (c *conversation) full() bool { return c.size >= maxBefore }

// precede puts what was said before in front, as much as there is room for.
func (c *conversation) precede(p conversation) {
	c.list, c.size = append(p.list, c.list...), c.size+p.size
	c.ids = append(p.ids, c.ids...)
	c.trim()
}

func (c *conversation) trim() {
	for c.size > maxBefore {
		c.size -= len(c.list[0].Content)
		c.list, c.ids = c.list[1:], c.ids[1:]
	}
}

func (c *conversation) add(id, role, content string) {
	c.put(id, role, content)
	c.trim()
}

// put adds without regard to how much it is.
func (c *conversation) put(id, role, content string) {
	if len(content) > maxSaid {
		content = content[:completeRunes([]byte(content[:maxSaid]))] + " [...]"
	}
	c.list, c.ids, c.size = append(c.list, agent.Said{Role: role, Content: content}), append(c.ids, id), c.size+len(content)
}

// drop takes a message out, if it is there.
func (c *conversation) drop(id string) {
	if i := slices.Index(c.ids, id); i >= 0 {
		c.size -= len(c.list[i].Content)
		c.list, c.ids = slices.Delete(c.list, i, i+1), slices.Delete(c.ids, i, i+1)
	}
}

// redact replaces what was said, or takes it out.
func (c *conversation) redact(f facts.Redacted) {
	i := slices.Index(c.ids, f.MessageID)
	if i < 0 {
		return
	}
	if f.DisplayReplacement == nil {
		c.drop(f.MessageID)
		return
	}
	c.size += len(*f.DisplayReplacement) - len(c.list[i].Content)
	c.list[i].Content = *f.DisplayReplacement
	c.trim()
}

// gather reads what was said in a session up to a fact, and what the session was created
// with. Messages that waited there come last, as the agent would have been given them. What
// was redacted or taken back since is not told.
func (h *Host) gather(ctx context.Context, id string, through int64, c *conversation) (created facts.Created, err error) {
	g := gathering{into: c, through: through, open: map[string]*[]byte{}}
	for after, more := uint64(0), true; more && g.err == nil; {
		more, err = h.journal.Scan(ctx, journal.BySession{Session: id, After: after}, journal.Page{}, func(r *journal.Record) {
			after = r.Sequence
			g.take(r)
		})
		if err != nil {
			return created, fmt.Errorf("read session %q: %w", id, err)
		}
	}
	g.waiting.precede(*c)
	*c = g.waiting
	return g.created, g.err
}

type gathering struct {
	into    *conversation
	waiting conversation // messages whose run has not begun; there are few at once
	through int64
	created facts.Created
	open    map[string]*[]byte // texts of the session that are being said
	err     error
}

var (
	aMessage = []byte(`"message.`)
	anInput  = []byte(`"mahati.in`) // mahati.input.queued, .withdrawn, mahati.intercom
)

func (g *gathering) take(r *journal.Record) {
	if g.err != nil || r.Sequence > 1 && !bytes.Contains(r.Bytes, aMessage) && !bytes.Contains(r.Bytes, anInput) {
		return
	}
	rec, err := narad.Decode(r.Bytes)
	if err != nil {
		g.err = errors.Join(fmt.Errorf("fact %d: %w", r.Sequence, journal.ErrDamaged), err)
		return
	}
	g.since(rec)
	if int64(r.Sequence) <= g.through {
		g.said(rec)
	}
}

// since takes what counts at any time, also after the part that is gathered.
func (g *gathering) since(rec narad.Record) {
	if r, redacts := facts.RedactedBy(rec); redacts {
		g.into.redact(r)
		g.waiting.redact(r)
	}
	if f, ok := rec.(*narad.Custom); ok {
		if w, ok := facts.Read[facts.Withdrawn](f, facts.InputWithdrawn); ok {
			g.waiting.drop(w.MessageID)
		}
	}
}

func (g *gathering) said(rec narad.Record) {
	switch f := rec.(type) {
	case *narad.Custom:
		g.custom(f)
	case *narad.MessageUserRecorded:
		g.waiting.drop(f.MessageID)
		if f.MessageScope == narad.ScopeSession {
			g.into.add(f.MessageID, "user", f.Content)
		}
	case *narad.MessageTextStarted:
		if f.MessageScope == narad.ScopeSession {
			g.open[f.MessageID] = new([]byte)
		}
	case *narad.MessageTextDelta:
		if text := g.open[f.MessageID]; text != nil && len(*text) <= maxSaid {
			*text = append(*text, f.Delta...)
		}
	case *narad.MessageTextCompleted:
		if text := g.open[f.MessageID]; text != nil {
			g.into.add(f.MessageID, "assistant", string(*text))
			delete(g.open, f.MessageID)
		}
	}
}

// custom takes what waits, from the fact on that appended its entry: one of another session
// has its own before it is queued. An answer of such a one waits for no run: a turn waited for it.
func (g *gathering) custom(f *narad.Custom) {
	if created, ok := facts.Read[facts.Created](f, facts.SessionCreated); ok {
		g.created = created
	}
	if q, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok && q.Intercom == nil {
		g.waiting.put(q.MessageID, "user", q.Content)
	}
	told, ok := facts.Read[facts.Told](f, facts.Intercom)
	switch {
	case ok && told.Kind == facts.Answered:
		g.into.add(told.MessageID, "user", told.Content)
	case ok:
		g.waiting.put(told.MessageID, "user", told.Content)
	}
}
