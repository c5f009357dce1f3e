package client

import (
	"context"
	"errors"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// errLeft says that the caller has left the loop.
var errLeft = errors.New("the loop was left")

// A run is one loop over Updates, in the goroutine of the caller.
type run struct {
	*Follower
	yield func(Update, error) bool
	left  bool
	moved bool   // something new came on this connection
	lost  string // the run tree whose graph needs a snapshot, for the connection to ask for
}

// follow keeps one connection after the other.
func (r *run) follow(ctx context.Context) error {
	if _, ok := segment(r.sessionID); !ok {
		return badID("follow session", "a session id")
	}
	for failed := 0; ; {
		began := time.Now()
		r.moved = false
		heartbeat, err := r.connection(ctx)
		if r.left {
			return errLeft
		}
		if ctx.Err() != nil {
			return transportError(ctx, "follow session", ctx.Err())
		}
		broken := Public(err)
		if broken.Action != Retry {
			return broken
		}
		failed++
		if r.moved || heartbeat > 0 && time.Since(began) > heartbeat {
			failed = 1 // it was a connection; the host deserves a quick return
		}
		if r.opt.MaxAttempts > 0 && failed >= r.opt.MaxAttempts {
			return broken
		}
		if err := r.wait(ctx, failed, broken); err != nil {
			return err
		}
	}
}

// maxWait bounds what a host may ask for.
const maxWait = 5 * time.Minute

// wait puts off the next attempt.
func (r *run) wait(ctx context.Context, attempt int, broken *Error) error {
	wait := max(r.client.backoff(attempt), min(broken.RetryAfter, maxWait))
	r.setPhase(Waiting)
	if !r.show(Update{Phase: Waiting, Err: broken, Wait: wait}) {
		return errLeft
	}
	if pause(ctx, wait) != nil {
		return transportError(ctx, "follow session", ctx.Err())
	}
	return nil
}

// enter shows a phase if it is a new one.
func (r *run) enter(p Phase) error {
	if r.setPhase(p) && !r.show(Update{Phase: p}) {
		return errLeft
	}
	return nil
}

func (r *run) show(u Update) bool {
	r.left = r.left || !r.yield(u, nil)
	return !r.left
}

// receive takes one record. It reports whether the record must wait, because facts
// before it are missing.
func (r *run) receive(raw narad.Raw, rec narad.Record) (early bool, err error) {
	result := r.take(rec)
	r.lost = lostGraph(rec, result)
	switch result.Kind {
	case session.Duplicate, session.Control:
		return false, nil
	case session.Gap:
		return missingBefore(result)
	case session.Ignored:
		if result.Code == session.SequencePassed || result.Code == session.OtherSession {
			return false, nil
		}
	}
	fact, authority := rec.(narad.Authority)
	refused := authority && result.Kind == session.Rejected
	r.moved = r.moved || authority && !refused
	if authority && !refused && fact.Envelope().SessionSequence <= r.opt.After {
		return false, nil
	}
	if !r.show(Update{Phase: r.Phase(), Record: rec, Raw: raw, Result: result}) {
		return false, errLeft
	}
	if refused {
		return false, r.refusal(result)
	}
	return false, nil
}

// lostGraph returns the run tree whose graph cannot be followed after a record, "" if it can.
func lostGraph(rec narad.Record, result session.Result) string {
	if result.Kind != session.Rejected {
		return ""
	}
	switch r := rec.(type) {
	case *narad.GraphDelta:
		return r.RootRunID
	case *narad.GraphSnapshot:
		return r.RootRunID
	}
	return ""
}

// missingBefore tells a hole from what no history can mend.
func missingBefore(result session.Result) (bool, error) {
	const op = "follow session"
	switch result.Code {
	case session.SessionGap, session.GapActive:
		return true, nil
	case session.EventConflict:
		return false, fail(op, CodeEventConflict, "an event id came before with other content")
	}
	return false, fail(op, CodeRecordRefused, result.Detail)
}

// refusal is the end of following: behind a fact that the state refuses nothing can
// be applied. Only a state that the caller brought may be the one at fault.
func (r *run) refusal(result session.Result) error {
	e := fail("follow session", CodeRecordRefused, string(result.Code)+": "+result.Detail)
	if r.given {
		e.Action = Resync
	}
	return e
}
