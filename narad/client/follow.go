package client

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// FollowOptions are the optional parts of following. The zero value follows a session
// from its first fact, with its state, for as long as the context lasts.
type FollowOptions struct {
	// Profiles claims profiles by their wire ids; of the events of others only the
	// place is taken. Empty: all that the host advertises.
	Profiles []string
	// After is the sequence of the last fact that the caller has seen. Facts up to it
	// are read for the state, and not shown. Zero: what State holds, or nothing.
	After int64
	// NoState follows without a state: nothing up to After is read, facts are put in
	// order and not judged. For those who keep a projection of their own.
	NoState bool
	// State is a state to go on with, from Detach or made by session.New with the same
	// profiles left out, and for Graph with a graph.View. The follower owns it from now on.
	State *session.State
	// Epoch is the epoch that After or State belong to, as Position told it. Empty: it
	// is not known, and the host's is taken.
	Epoch string
	// Messages asks for a messages.snapshot before the facts of a session that is
	// followed from the beginning: a transcript to show at once. It adds nothing to the
	// state that the facts will not.
	Messages bool
	// Watch asks for watch events: hints, which move no cursor.
	Watch bool
	// Graph asks for graph records, which the state takes: Graphs tells them. The stream
	// then begins where the follower stands, since they come with the facts. Followed from
	// the beginning there are the graphs of all runs, else of those from then on.
	Graph bool
	// MaxPending is how many records may be held back: read ahead of history, or waiting
	// behind a hole. Zero: 256.
	MaxPending int
	// PageSize is how many facts are read at a time. Zero: the host's limit, at most
	// 1,000.
	PageSize int
	// MaxAttempts is how many connections in a row may fail before following ends.
	// Zero: no bound.
	MaxAttempts int
}

const (
	defaultPending  = 256
	defaultPage     = 1000
	rememberedIDs   = 10_000
	silentIntervals = 3
)

// Phase is how a follower stands to its host.
type Phase uint8

// The phases.
const (
	Idle       Phase = iota // not following
	Connecting              // on the way to the host
	Replaying               // reading what happened before, or filling a hole
	Live                    // caught up with what there was when it connected
	Waiting                 // after a break, before the next attempt
)

// String returns the phase's name in lower case.
func (p Phase) String() string {
	return [...]string{"idle", "connecting", "replaying", "live", "waiting"}[p]
}

// An Update is one turn of the loop over [Follower.Updates]: a record, or, with a nil
// Record, a new phase.
type Update struct {
	// Phase is the present phase.
	Phase Phase
	// Record is the record and Raw its bytes. Every fact comes once, in order, those of
	// profiles that were not negotiated as *narad.Skipped; hydrate records and watch
	// events come as the host sent them. Heartbeats, repetitions and what belongs to
	// other sessions do not come.
	Record narad.Record
	Raw    narad.Raw
	// Result is what became of the record in the state.
	Result session.Result
	// Err is what broke the connection and Wait how long the next attempt is put off.
	// Both are set in the phase Waiting alone.
	Err  *Error
	Wait time.Duration
}

// Position is a place to come back to: Epoch and After of a later [FollowOptions].
type Position struct {
	SessionID string
	Sequence  int64
	Epoch     string
}

// A Follower follows one session. It must be made by [Client.Follow].
type Follower struct {
	client    *Client // sends each call once: the follower itself comes back
	sessionID string
	opt       FollowOptions
	given     bool // the state, or the place, is the caller's

	mu       sync.Mutex // guards all below; never held while something is awaited
	running  bool
	phase    Phase
	epoch    string
	profiles []string       // negotiated; nil before the first attach
	state    *session.State // nil before the first attach, and with NoState
	cursor   int64
}

// Follow returns a follower of a session. Nothing happens before its Updates are
// ranged over.
func (c *Client) Follow(sessionID string, o FollowOptions) *Follower {
	o.Profiles = slices.Clone(o.Profiles)
	if id := narad.Graph.IDs()[0]; o.Graph && len(o.Profiles) > 0 && !slices.Contains(o.Profiles, id) {
		o.Profiles = append(o.Profiles, id)
	}
	o.MaxPending = cmp.Or(max(o.MaxPending, 0), defaultPending)
	once := *c
	once.attempts = 1
	f := &Follower{client: &once, sessionID: sessionID, epoch: o.Epoch}
	switch {
	case o.NoState:
		f.cursor, f.given = o.After, o.After > 0
	case o.State != nil:
		f.state, f.cursor, f.given = o.State, o.State.Last(), true
	}
	o.After, o.State = max(o.After, f.cursor), nil
	f.opt = o
	return f
}

// Updates follows the session until the loop is left, the context ends, or an error
// comes that no further attempt can help. Such an error is an [*Error] and comes as
// the last turn. Ranging over Updates again, not at the same time, goes on where the
// last loop was left.
func (f *Follower) Updates(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		if !f.begin() {
			yield(Update{}, fail("follow session", CodeInvalidRequest, "the session is being followed by another loop"))
			return
		}
		defer f.end()
		r := &run{Follower: f, yield: yield}
		err := r.follow(ctx)
		if err != nil && !r.left {
			yield(Update{}, Public(err))
		}
	}
}

func (f *Follower) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return false
	}
	f.running = true
	return true
}

func (f *Follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.phase = false, Idle
}

// attached takes what a host says at the beginning of a connection, and says why the
// place of this follower cannot be found there.
func (f *Follower) attached(a Attachment) error {
	const op = "attach to session"
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.epoch != "" && a.Epoch != "" && f.epoch != a.Epoch:
		return fail(op, CodeEpochChanged, "the host has another store than before")
	case a.Boundary < max(f.cursor, f.opt.After):
		return fail(op, CodeCursorAhead, "the host has less of the session than the follower")
	}
	f.epoch = cmp.Or(a.Epoch, f.epoch)
	if f.profiles == nil {
		f.profiles = Negotiate(f.opt.Profiles, a.Capabilities.ActiveProfiles)
	}
	if f.state == nil && !f.opt.NoState {
		f.state = session.New(session.Options{
			SessionID: f.sessionID, Without: f.withoutLocked(), Remember: rememberedIDs, Graphs: f.graphs(),
		})
	}
	return nil
}

// graphs returns what takes the graph records, nil for nothing.
func (f *Follower) graphs() session.Graphs {
	if !f.opt.Graph {
		return nil
	}
	return graph.NewView(f.sessionID, graph.ViewOptions{})
}

// withoutLocked returns the profiles whose events are stepped over. A state that the
// caller brought knows the claim and not what is advertised.
func (f *Follower) withoutLocked() narad.Profile {
	if f.given && len(f.opt.Profiles) == 0 {
		return 0
	}
	if f.given {
		return without(f.opt.Profiles)
	}
	return without(f.profiles)
}

// take gives a record to the state, or to the cursor alone.
func (f *Follower) take(rec narad.Record) session.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		return f.placeLocked(rec)
	}
	result := f.state.Apply(rec)
	f.state.ClearGap() // a hole is the follower's to remember and to fill
	f.cursor = f.state.Last()
	return result
}

// placeLocked judges a record by its place.
func (f *Follower) placeLocked(rec narad.Record) session.Result {
	fact, ok := rec.(narad.Authority)
	if !ok {
		return session.Result{}
	}
	switch e := fact.Envelope(); {
	case e.SessionID != f.sessionID:
		return session.Result{Kind: session.Ignored, Code: session.OtherSession}
	case e.SessionSequence <= f.cursor:
		return session.Result{Kind: session.Ignored, Code: session.SequencePassed}
	case e.SessionSequence > f.cursor+1:
		return session.Result{Kind: session.Gap, Code: session.SessionGap}
	default:
		f.cursor = e.SessionSequence
		return session.Result{}
	}
}

// setPhase reports whether the phase is a new one.
func (f *Follower) setPhase(p Phase) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.phase != p
	f.phase = p
	return changed
}
