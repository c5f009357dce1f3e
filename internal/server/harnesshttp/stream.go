package harnesshttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/sse"
)

// stream follows a log as far as its subscriber grants credit, and ends behind the final
// checkpoint.
func (b *Binding) stream(w http.ResponseWriter, r *request) error {
	credit, err := r.number("credit", 0, maxCredit, 0)
	if err != nil {
		return err
	}
	name, err := b.subscriberName(r)
	if err != nil {
		return err
	}
	token, err := r.position()
	if err != nil {
		return err
	}
	l, err := b.log(r)
	if err != nil {
		return err
	}
	after, err := l.begin(r.Context(), token)
	if err != nil {
		return err
	}
	last, over, err := l.End(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set(headerVersion, harness.Version)
	w.Header().Set(headerSubscriber, name)
	if over && after == last { // a browser comes back for ever, unless it is told that there is nothing
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if r.Method == http.MethodHead {
		return nil
	}
	st, err := b.streams.Hold(w, r.Request)
	if err != nil {
		return err
	}
	feed, err := l.Follow(st.Context(), after)
	if err != nil {
		return err
	}
	defer feed.Close()
	who, sub := follower{l.id, r.principal().ID()}, &subscriber{newLedger(uint32(credit)), st}
	b.subscribers.enter(who, name, sub)
	defer b.subscribers.leave(who, name, sub)
	st.Begin() // once its headers are there the stream takes credit
	d := &delivery{binding: b, log: l, stream: st, ledger: sub.ledger, feed: feed, sent: after}
	if why := d.run(); why != "" {
		server.Annotate(r.Context(), server.KeyEnded, why)
	}
	return nil
}

// subscriberName is the name that a stream takes credit by. Whoever does not choose one gets
// one that nobody else has.
func (b *Binding) subscriberName(r *request) (string, error) {
	name := r.query.Get("subscriber")
	if !r.query.Has("subscriber") {
		return b.host.NewID(), nil
	}
	return name, server.CheckID("subscriber", name)
}

// position returns the cursor that a stream begins behind. The id of the last frame beats
// the query, since a browser reconnects with both.
func (r *request) position() (string, error) {
	if len(r.Header.Values("Last-Event-ID")) > 1 {
		return "", server.Bad(server.CodeBadRequest, "Last-Event-ID is given more than once")
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id, nil
	}
	return r.query.Get("cursor"), nil
}

// delivery brings a log to one stream. It belongs to the stream's handler.
type delivery struct {
	binding *Binding
	log     *runLog
	stream  *server.Stream
	ledger  *ledger
	feed    *host.Follower
	pending []line // read, and not sent
	sent    uint64 // the last record that was
	chase   chase
}

// maxWrite is how many bytes of frames are written at once.
const maxWrite = 256 << 10

// run delivers until the log has ended, the client leaves, the server drains, or another
// stream takes the subscriber's name; why is for the log, where that is not the client's or
// the edge's doing. The end of a stream means nothing about the run.
func (d *delivery) run() (why string) {
	d.chase.since = d.binding.opt.Now()
	for {
		over, err := d.deliver()
		if err == nil && !over {
			err = d.rest()
		}
		switch {
		case over:
			return ""
		case errors.Is(context.Cause(d.stream.Context()), errSuperseded):
			return "superseded"
		case errors.Is(err, errBehind):
			return "behind"
		case err != nil && d.stream.Context().Err() == nil:
			return server.ProblemOf(problemOf(err)).Code
		case err != nil:
			return ""
		}
	}
}

// errBehind is why a stream ends whose reader takes too little of what it has credit for.
var errBehind = errors.New("the reader is too far behind")

// rest waits until there may be something to deliver.
func (d *delivery) rest() error {
	beat, err := d.stream.Wait(d.wake())
	if err == nil && beat {
		err = d.stream.Write(heartbeat)
	}
	return err
}

// heartbeat fills the silence of a stream. A comment is no frame: it has no id, and no reader
// takes it for a record.
var heartbeat = []byte(":\n\n")

// wake gives a value when it may be worth to deliver again: without credit nothing is read.
func (d *delivery) wake() <-chan struct{} {
	if d.ledger.credit() == 0 {
		return d.ledger.granted
	}
	return d.feed.Wake()
}

// deliver sends what is there, as far as there is credit. It tells when the final record was
// sent.
func (d *delivery) deliver() (over bool, err error) {
	for d.ledger.credit() > 0 {
		if len(d.pending) == 0 {
			if err := d.read(); err != nil || len(d.pending) == 0 {
				return errors.Is(err, io.EOF), err
			}
		}
		if over, err := d.send(); err != nil || over {
			return over, err
		}
		if d.hopeless() {
			return false, errBehind
		}
	}
	return false, nil
}

// read takes what waits of the log.
func (d *delivery) read() error {
	records, err := d.feed.Poll(d.stream.Context())
	if err != nil {
		return err
	}
	d.pending, err = d.log.lines(d.stream.Context(), records, d.sent)
	return err
}

// send writes the records that one write holds and that there is credit for. The credit is
// spent before they are written.
func (d *delivery) send() (over bool, err error) {
	lines := d.pending[:d.ledger.spend(len(bounded(d.pending, len(d.pending), maxWrite)))]
	if len(lines) == 0 {
		return false, nil
	}
	var frames []byte
	for _, e := range lines {
		if frames, err = sse.AppendFrame(frames, d.log.sign(e.sequence).Token(), e.bytes); err != nil {
			return false, err
		}
	}
	if err := d.stream.Write(frames); err != nil {
		return false, err
	}
	d.pending = d.pending[len(lines):]
	last := lines[len(lines)-1]
	d.sent = last.sequence
	return d.log.final(d.stream.Context(), last)
}

// chase is how far a reader was behind when that was last looked at.
type chase struct {
	since time.Time
	lag   uint64
}

// hopeless reports whether a reader has credit for more than it takes: it is too far behind
// and, since the last look, came no nearer to the end.
func (d *delivery) hopeless() bool {
	now := d.binding.opt.Now()
	if now.Sub(d.chase.since) < d.binding.opt.Heartbeat {
		return false
	}
	lag, err := d.feed.Lag(d.stream.Context())
	if err != nil {
		return true
	}
	before := d.chase.lag
	if d.ledger.credit() == 0 {
		lag = 0 // it waits for credit, as it may
	}
	d.chase = chase{now, lag}
	return before > d.binding.opt.MaxLag && lag >= before
}
