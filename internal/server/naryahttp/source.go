package naryahttp

import (
	"bytes"
	"context"
	"errors"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// source gives the frames of a stream.
type source interface {
	// Poll gives frames behind those that it gave, nothing where there are none yet: then wait
	// for Wake.
	Poll(context.Context) ([]byte, error)
	// Wake gives a value when it may be worth to poll again.
	Wake() <-chan struct{}
	// Lag is how far what was given is behind what can be read.
	Lag(context.Context) (uint64, error)
	// CaughtUp reports whether all was given that was there as the stream began.
	CaughtUp() bool
	Close()
}

// source finds out who may follow what, and begins to. An error is a refusal.
func (b *Binding) source(r *request, f filter, after uint64) (source, error) {
	if f.session == "" || f.hostEvents {
		if err := access.Authorize(r.principal(), access.ReadHostEvents, ""); err != nil {
			return nil, err
		}
	}
	if err := access.Authorize(r.principal(), access.ListSessions, ""); err != nil {
		return nil, err // who may read no session is told so of each, whether it is there or not
	}
	if f.session == "" {
		return b.host.FollowEvents(b.framer, after), nil
	}
	frames, err := b.sessionSource(r, f.session, after, nil)
	var own source = frames
	if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrGone) {
		// Nothing is told apart of a session that the caller does not reach (R39).
		frames, err = b.host.FollowEvents(b.framer, after), nil
		own = &awaiting{source: frames, frames: frames, binding: b, request: r, uuid: f.session}
	}
	if err != nil {
		return nil, err
	}
	if !f.hostEvents {
		return own, nil
	}
	others, err := b.host.FollowHostStream(r.Context(), b.framer, after, frames)
	if err != nil {
		own.Close()
		return nil, err
	}
	return &merged{parts: [2]part{{source: own}, {source: &ofNone{others}}}, binding: b}, nil
}

// sessionSource follows one session, whose frames all its readers share. It shares the
// wake-up of other frames, if there are any.
func (b *Binding) sessionSource(r *request, uuid string, after uint64, with *host.EventFrames) (*host.EventFrames, error) {
	id, err := b.session(r, uuid)
	if err != nil {
		return nil, err
	}
	server.Annotate(r.Context(), "session", id)
	v, err := b.host.Attach(r.Context(), r.principal(), access.ReadSession, id)
	if err != nil {
		return nil, err
	}
	return v.FollowEvents(r.Context(), b.framer, after, with)
}

// ofNone is the part of the stream that belongs to no session. It is not there before
// something was published.
type ofNone struct{ *host.EventFrames }

// Poll implements source.
func (o *ofNone) Poll(ctx context.Context) ([]byte, error) {
	data, err := o.EventFrames.Poll(ctx)
	if errors.Is(err, host.ErrNotFound) {
		return nil, nil
	}
	return data, err
}

// Lag implements source.
func (o *ofNone) Lag(ctx context.Context) (uint64, error) {
	lag, err := o.EventFrames.Lag(ctx)
	if errors.Is(err, host.ErrNotFound) {
		return 0, nil
	}
	return lag, err
}

// awaiting is a session that is not there, or not there for the caller: nothing is heard of
// it. One that begins while it is awaited is followed from its first event, by whoever may.
type awaiting struct {
	source
	frames  *host.EventFrames // what wakes it
	binding *Binding
	request *request
	uuid    string
	begun   bool
}

// Poll implements source.
func (a *awaiting) Poll(ctx context.Context) ([]byte, error) {
	for !a.begun {
		data, err := a.source.Poll(ctx)
		if err != nil || len(data) == 0 {
			return nil, err
		}
		first, ok := creationOf(a.uuid, data)
		if !ok {
			continue
		}
		own, err := a.binding.sessionSource(a.request, a.uuid, first-1, a.frames)
		if err != nil {
			continue // it is none of the caller's
		}
		a.source.Close()
		a.source, a.begun = own, true
	}
	return a.source.Poll(ctx)
}

// creationOf finds the event with which a session began.
func creationOf(uuid string, frames []byte) (id uint64, found bool) {
	for ; bytes.Contains(frames, []byte(uuid)); frames = frames[len(cut(frames, 1)):] {
		one := cut(frames, 1)
		if !bytes.Contains(one, []byte(narya.TypeSessionCreated)) {
			continue
		}
		_, data, _ := bytes.Cut(bytes.TrimSuffix(one, frameEnd), []byte("\ndata: "))
		if e, err := narya.Decode(data); err == nil && e.Type() == narya.TypeSessionCreated && e.SessionID == uuid {
			return uint64(e.ID), true
		}
	}
	return 0, false
}

// merged is a session and what belongs to none, in the order of their events.
type merged struct {
	parts   [2]part
	binding *Binding
}

// part is one of the two, with what it gave and is not due yet.
type part struct {
	source
	waiting []byte
}

// Poll implements source. Where one part has nothing, an event of the other is due once it
// is sure that none of the first can come before it: it was there as the first part had been
// read to its end.
func (m *merged) Poll(ctx context.Context) ([]byte, error) {
	for {
		newest := m.binding.host.Events().Newest
		for i := range m.parts {
			if p := &m.parts[i]; len(p.waiting) == 0 {
				var err error
				if p.waiting, err = p.Poll(ctx); err != nil {
					return nil, err
				}
			}
		}
		one, other := &m.parts[0], &m.parts[1]
		switch {
		case m.empty():
			return nil, nil
		case len(one.waiting) > 0 && len(other.waiting) > 0:
			return m.inOrder(), nil
		case len(one.waiting) == 0:
			one, other = other, one
		}
		lag, err := other.Lag(ctx)
		if err != nil || lag > 0 {
			return nil, err // what it lacks is on its way, and wakes
		}
		var data []byte
		if data, one.waiting = upTo(one.waiting, newest); len(data) > 0 {
			return data, nil
		}
	}
}

func (m *merged) empty() bool { return len(m.parts[0].waiting) == 0 && len(m.parts[1].waiting) == 0 }

// inOrder takes frames until one part has none left.
func (m *merged) inOrder() (data []byte) {
	for len(m.parts[0].waiting) > 0 && len(m.parts[1].waiting) > 0 {
		first := &m.parts[0]
		if idOf(m.parts[1].waiting) < idOf(first.waiting) {
			first = &m.parts[1]
		}
		one := cut(first.waiting, 1)
		data, first.waiting = append(data, one...), first.waiting[len(one):]
	}
	return data
}

// Wake implements source: the parts share one slot.
func (m *merged) Wake() <-chan struct{} { return m.parts[1].Wake() }

// Lag implements source.
func (m *merged) Lag(ctx context.Context) (uint64, error) {
	first, err := m.parts[0].Lag(ctx)
	if err != nil {
		return 0, err
	}
	second, err := m.parts[1].Lag(ctx)
	return max(first, second), err
}

// CaughtUp implements source.
func (m *merged) CaughtUp() bool { return m.empty() && m.parts[0].CaughtUp() && m.parts[1].CaughtUp() }

// Close implements source.
func (m *merged) Close() { m.parts[0].Close(); m.parts[1].Close() }
