package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// eventReader follows the events of a host over any number of connections: the end of a block
// of a long past and the loss of a connection are the same to it. It belongs to one goroutine.
type eventReader struct {
	client *apiClient
	// session is the UUID of the one whose events are read, "" for all; hostEvents adds those
	// of no session.
	session    string
	hostEvents bool
	// wait takes a session that is not there for one that will begin. A host says nothing of it.
	wait bool
	// last is the id behind which the stream goes on.
	last int64
	// take gets each event once, in order.
	take func(event) error
	// lost is told why a connection ended, where the reader comes back and does so for a while.
	lost func(error)
	// missed is told of events that are kept no more: those behind one id and before another.
	missed func(after, before int64)

	epoch string // of the store that the ids are of
}

// event is one event as it came.
type event struct {
	narya.Event // without a payload where it is none that this program knows
	kind        string
	raw         narad.Raw
}

// keptEvents are the events that a host can still show.
type keptEvents struct {
	epoch          string
	oldest, newest int64
}

const followEvents = "follow the events"

// kept asks the host. Where it has no event, the newest is what comes before the first.
func (r *eventReader) kept(ctx context.Context) (k keptEvents, err error) {
	data, err := r.client.get(ctx, followEvents, "/host", nil)
	if err != nil {
		return k, err
	}
	store := data.Field("store")
	k.epoch, _ = store.Field("epoch").IsString()
	for name, id := range map[string]*int64{"oldestEventId": &k.oldest, "newestEventId": &k.newest} {
		text, _ := store.Field(name).IsString()
		var ok bool
		if *id, ok = narya.ParseID(text); !ok {
			return k, errors.New(followEvents + ": the answer is not that of a host of the Narya host API v1")
		}
	}
	return k, nil
}

// begin takes the place from which to read: an id, or where that is 0 the newest event, so that
// nothing is lost when a connection ends before its first event; oldest is all that is kept.
func (r *eventReader) begin(ctx context.Context, from int64, oldest bool) error {
	if r.session != "" && !r.wait {
		if _, err := r.client.get(ctx, followEvents, "/sessions/"+r.session, nil); err != nil {
			return err
		}
	}
	k, err := r.kept(ctx)
	if err != nil {
		return err
	}
	r.epoch, r.last = k.epoch, from
	switch {
	case oldest:
		r.last = k.oldest - 1
	case from == 0:
		r.last = k.newest
	}
	r.skip(k)
	return nil
}

// comeBack takes the place anew after a connection has ended: the host may have another store, or keep
// what comes next no longer. It would begin with what happens then, and leave out what it still keeps.
func (r *eventReader) comeBack(ctx context.Context) error {
	k, err := r.kept(ctx)
	if err != nil {
		return err
	}
	if k.epoch != r.epoch {
		return &fault{err: errors.New(followEvents + ": the host has another store now"), code: exitFailed, hint: hintOtherStore}
	}
	r.skip(k)
	return nil
}

const hintOtherStore = "its events have nothing to do with those before: leave --from out, or say --from oldest"

// skip goes to the oldest event that is kept. A host would begin at the newest.
func (r *eventReader) skip(k keptEvents) {
	if r.last+1 < k.oldest {
		r.missed(r.last, k.oldest)
		r.last = k.oldest - 1
	}
}

// read follows until the context ends, the host refuses, or take fails. Begin comes first.
func (r *eventReader) read(ctx context.Context) error {
	again := false
	for attempt := 0; ; {
		before := r.last
		err := r.connection(ctx, again)
		again = true
		var no *refusal
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!errors.As(err, &no) || !no.passing()):
			return err
		case r.last > before:
			attempt = 0 // the end of a block, as far as anybody can tell
			continue
		case no == nil:
			no = &refusal{op: followEvents, code: "stream_ended"}
		}
		if attempt == 1 { // once for each loss that lasts
			r.lost(no)
		}
		attempt++
		if err := sleep(ctx, pauseAfter(attempt, no)); err != nil {
			return err
		}
	}
}

// connection follows over one stream until that ends.
func (r *eventReader) connection(ctx context.Context, again bool) error {
	if again {
		if err := r.comeBack(ctx); err != nil {
			return err
		}
	}
	query := url.Values{}
	if r.session != "" {
		query.Set("sessionId", r.session)
	}
	if r.hostEvents {
		query.Set("hostEvents", "true")
	}
	header := http.Header{"Last-Event-Id": {narya.FormatID(r.last)}}
	_, err := r.client.stream(ctx, followEvents, "/events", query, header, r.frames)
	return err
}

// frames takes the events of one stream.
func (r *eventReader) frames(frames *sse.Reader) error {
	for {
		frame, err := frames.Next()
		if err != nil {
			return nil // the reader comes back
		}
		if err := r.frame(frame); err != nil {
			return err
		}
	}
}

// frame takes the event of a frame, unless it was taken before.
func (r *eventReader) frame(frame sse.Frame) error {
	id, ok := narya.ParseID(frame.ID)
	raw := narad.Raw(frame.Data)
	inner, _ := raw.Field("id").IsString()
	if !ok || inner != frame.ID {
		return fmt.Errorf("%s: behind event %d comes one whose id is not its own", followEvents, r.last)
	}
	if id <= r.last {
		return nil
	}
	if r.session == "" && id > r.last+1 { // numbers are dense over the whole host (R39)
		r.missed(r.last, id)
	}
	e := event{raw: raw}
	e.kind, _ = raw.Field("type").IsString()
	if known, err := narya.Decode(raw); err == nil { // what is not known is passed on as it is
		e.Event = known
	}
	e.ID = id
	if err := r.take(e); err != nil {
		return err
	}
	r.last = id
	return nil
}
