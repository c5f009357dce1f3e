package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/internal/timer"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Agents makes the agents of sessions, by the name that a session was created with.
type Agents interface {
	// Kind returns a configured agent; false if there is none of that name.
	Kind(name string) (agent.Kind, bool)
	// Default is the name that a session gets when it names none.
	Default() string
}

// Options are the optional parts of a Host. The zero value is for production.
type Options struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// NewID makes ids; UUIDv7 when nil (R4).
	NewID func() string
	// Logger gets what operators should know; nothing is logged when nil.
	Logger *slog.Logger
	// Rules decide permissions instead of a person; the first that fits.
	Rules []Rule
	// MaxRunning is how many agents run at once; 8 when 0.
	MaxRunning int
	// QueueLimit bounds the waiting messages of a session; 100 when 0.
	QueueLimit int
	// Mailbox is how many commands may wait for one session; 64 when 0.
	Mailbox int
	// CancelGrace is how long a stopped agent may take to end, and one that is closed to
	// close; 10 s when 0.
	CancelGrace time.Duration
	// IdleAfter is how long an idle session keeps its owner and agent; 10 min when 0.
	IdleAfter time.Duration
	// EndLeft ends a process that a dead host left running, or an agent that does not
	// close. Required where agents have processes; nil does nothing.
	EndLeft func(context.Context, agent.Process) error
	// Executors are the times and bounds of client executors. Its clock, and who is told
	// of arrivals and of calls that nobody took, are the host's own.
	Executors executor.Options
	// FailAbsent ends a client tool call at once whose executor is not there, as
	// client_unavailable; else its run waits for it (R32).
	FailAbsent bool
	// Assign says which executor runs a tool of an agent, "" for that of the run; with no
	// tool it says which one the runs of a session are bound to that names none (R34). It
	// may be called from any goroutine; nil assigns nothing.
	Assign func(agent, tool string) (executor string)
	// Blobs keeps the bytes of attachments and artifacts; nil keeps none.
	Blobs *blob.Store
	// MaxAttachment and MaxArtifact bound them, in bytes; 32 MiB and 256 MiB when 0.
	MaxAttachment, MaxArtifact int64
	// Numbers says how many numbers a fact takes in the other contracts, from the states
	// before it. Owners call it, each for the facts of its session. Nil gives none.
	Numbers func(before *session.State, d *desk.State, fact narad.Authority) Numbers
	// LogMapping is the version of the headless log's mapping that new root runs record, 0
	// without Numbers; LogPolicy how their records are classified, nil for no rules (R35).
	LogMapping int
	LogPolicy  narad.Raw
	// Mappings are the versions that new sessions record (R1), 0 without Numbers.
	Mappings facts.Mappings
	// Styles are what agents are told of how to answer, by the names under which sessions
	// choose them.
	Styles map[string]string
	// Retention is how long events can be resumed after (R40); 7 days when 0.
	Retention time.Duration
	// Roots are the directories below which a session may work. Nil means any, an empty list
	// none.
	Roots []string
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return uuid.Must(uuid.NewV7()).String() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Assign == nil {
		o.Assign = func(string, string) string { return "" }
	}
	if o.Numbers == nil {
		o.LogMapping, o.Mappings = 0, facts.Mappings{}
		o.Numbers = func(*session.State, *desk.State, narad.Authority) Numbers { return Numbers{} }
	}
	o.MaxRunning = orDefault(o.MaxRunning, 8)
	o.QueueLimit = orDefault(o.QueueLimit, 100)
	o.Mailbox = orDefault(o.Mailbox, 64)
	o.CancelGrace = orDefault(o.CancelGrace, 10*time.Second)
	o.IdleAfter = orDefault(o.IdleAfter, 10*time.Minute)
	o.Retention = orDefault(o.Retention, 7*24*time.Hour)
	o.MaxAttachment = orDefault(o.MaxAttachment, 32<<20)
	o.MaxArtifact = orDefault(o.MaxArtifact, 256<<20)
	return o
}

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Host is the kernel. New makes one.
type Host struct {
	opt     Options
	journal journal.Journal
	feed    *feed.Feed
	replay  *replay.Replay
	timers  *timer.Timers
	agents  Agents
	places  *places
	ready   atomic.Bool
	served  chan struct{} // closed when the host serves: agents do nothing before
	life    context.Context
	end     context.CancelFunc
	work    sync.WaitGroup // owners, and what runs for no owner

	shelf     *shelf
	retention retention
	executors *executor.Executors
	awaited   awaited
	answers   answers
	shut      shut
	told      told

	mu     sync.Mutex
	owners map[string]*owner // guarded by mu
	closed bool              // guarded by mu
	stuck  []stuck           // guarded by mu
}

// New returns a host over a journal. Start makes it serve.
func New(j journal.Journal, f *feed.Feed, agents Agents, options Options) *Host {
	life, end := context.WithCancel(context.Background())
	h := &Host{
		opt: options.withDefaults(), journal: j, feed: f, agents: agents, life: life, end: end,
		served: make(chan struct{}), owners: map[string]*owner{},
	}
	h.shelf = newShelf(h.opt.Blobs, j)
	h.replay = replay.New(j, replay.Options{Logger: h.opt.Logger})
	h.places = newPlaces(h.opt.MaxRunning, h.wakeWaiting)
	o := h.opt.Executors
	o.Now, o.Arrived, o.Undelivered, o.Damaged = h.opt.Now, h.arrived, h.undelivered, h.damaged
	h.executors = executor.New(j, o)
	h.timers = timer.New(j, h.fire, timer.Options{Now: h.opt.Now, Logger: h.opt.Logger, Damaged: h.damaged})
	return h
}

// Errors of Do and Attach, besides those of package access.
var (
	// ErrRecovering says that the host repairs itself: try again soon (R17).
	ErrRecovering = errors.New("the host is recovering")
	// ErrOverloaded says that too many commands wait: nothing was done, try again.
	ErrOverloaded = errors.New("too many commands wait for the session")
	// ErrClosed says that the host ends.
	ErrClosed = errors.New("the host is closed")
	// ErrNotFound says that there is no such session, run or interrupt.
	ErrNotFound = journal.ErrNotFound
	// ErrGone says that the session was deleted: its id is never given again.
	ErrGone = journal.ErrDeleted
	// ErrStorageFull says that too little space is left for the command.
	ErrStorageFull = journal.ErrStorageFull
	// ErrDamaged says that stored bytes of the session are damaged.
	ErrDamaged = journal.ErrDamaged
	// ErrInternal says that a fact of our own making was refused by the guard. It was
	// logged; nothing was written.
	ErrInternal = errors.New("internal error")
)

// Ready reports whether the host serves.
func (h *Host) Ready() bool { return h.ready.Load() && h.journal.Err() == nil }

// serve lets commands and agents in, unless the host was closed meanwhile.
func (h *Host) serve() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	if !h.ready.Swap(true) {
		close(h.served)
	}
	return nil
}

// Close ends every owner and agent and waits for them. Runs are not cancelled by it:
// the next start recovers them. An agent that nothing can end is left behind, after its
// processes were killed: the error names its session. It may be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.ready.Store(false)
	h.mu.Unlock()
	h.end()
	h.timers.Close()
	h.executors.Close()
	h.work.Wait()
	return h.leftBehind()
}

// leave notes that an agent of a session runs on; it does so until gone is closed.
func (h *Host) leave(session string, gone <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stuck = slices.DeleteFunc(h.stuck, func(s stuck) bool { return isDone(s.gone) })
	h.stuck = append(h.stuck, stuck{session, gone})
}

// stuck is an agent that ran on when it should have ended.
type stuck struct {
	session string
	gone    <-chan struct{}
}

func (h *Host) leftBehind() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, s := range h.stuck {
		if !isDone(s.gone) {
			errs = append(errs, fmt.Errorf("the agent of session %s does not end", s.session))
		}
	}
	return errors.Join(errs...)
}

// spawn runs what Close waits for. Once the host is closed it does nothing.
func (h *Host) spawn(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(f)
	}
}

// owner returns the owner of a session, loaded if it is not alive. It may end before
// it takes a task: see hand.
func (h *Host) owner(ctx context.Context, session string) (*owner, error) {
	for {
		o, err := h.find(session)
		if err != nil {
			return nil, err
		}
		if err := waitUntil(ctx, o.loaded); err != nil {
			return nil, fmt.Errorf("wait for session: %w", err)
		}
		switch {
		case o.loadErr != nil && h.life.Err() != nil:
			return nil, ErrClosed
		case o.loadErr != nil && !errors.Is(o.loadErr, journal.ErrConflict):
			return nil, o.loadErr
		case o.loadErr == nil && !isDone(o.ended):
			return o, nil
		}
		if err := waitUntil(ctx, o.left); err != nil {
			return nil, fmt.Errorf("wait for the owner before: %w", err)
		}
		if o.loadErr != nil {
			return nil, o.loadErr
		}
	}
}

// find returns the session's owner, which may be loading or leaving.
func (h *Host) find(session string) (*owner, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	o := h.owners[session]
	if o == nil {
		o = newOwner(h, session)
		h.owners[session] = o
		h.work.Go(o.live)
	}
	return o, nil
}

// forget takes an owner out that has left: the next task gets a new one.
func (h *Host) forget(o *owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.owners, o.id)
}

func waitUntil(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// retryPause is how long something waits that could not be written, and is tried again.
const retryPause = time.Second

// pause waits that long; false if the host ends meanwhile.
func (h *Host) pause() bool { return !waitFor(h.life, nil, retryPause) }

// reload brings back a session whose owner ended in the middle of something: what it
// left open is closed or goes on, also when nobody asks for the session.
func (h *Host) reload(session string) {
	h.spawn(func() {
		if !h.pause() {
			return
		}
		if _, err := h.owner(h.life, session); err != nil && h.life.Err() == nil {
			h.opt.Logger.Error("load a session again", "session", session, "error", err)
		}
	})
}

// wakeWaiting tells a session that a place is free for its first waiting message.
func (h *Host) wakeWaiting(session string) {
	h.spawn(func() {
		defer h.places.woken(session)
		t := &task{command: decide.StartNext{}, actor: hostActor, reply: make(chan reply, 1)}
		answer, err := h.hand(h.life, session, t)
		if err == nil && answer.Status.Accepted() {
			return
		}
		if err != nil && h.life.Err() == nil {
			h.opt.Logger.Warn("start a waiting message", "session", session, "error", err)
		}
		h.pause() // it could not be started now: no room to write, or too many commands
	})
}

// fire performs a due timer.
func (h *Host) fire(ctx context.Context, row journal.TimerRow) error {
	if row.ID == index.OutboxTimerID {
		return h.fireOutbox(ctx, row.Session)
	}
	if row.Session == "" && row.ID == retentionTimer {
		return h.fireRetention(ctx, row)
	}
	cmd, ok := expiry(row)
	if !ok {
		cmd, ok = expiredCall(row)
	}
	if !ok {
		cmd, ok = retry(row)
	}
	if !ok {
		return nil
	}
	_, err := h.hand(ctx, row.Session, &task{command: cmd, actor: hostActor, reply: make(chan reply, 1)})
	return err
}
