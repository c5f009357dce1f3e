package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/internal/timer"
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
	// CancelGrace is how long a stopped agent may take to end; 10 s when 0.
	CancelGrace time.Duration
	// IdleAfter is how long an idle session keeps its owner and agent; 10 min when 0.
	IdleAfter time.Duration
	// EndLeft ends a process that a dead host left running. Required where agents have
	// processes; nil does nothing.
	EndLeft func(context.Context, agent.Process) error
	// Roots are the directories below which a session may work; none means any.
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
	o.MaxRunning = orDefault(o.MaxRunning, 8)
	o.QueueLimit = orDefault(o.QueueLimit, 100)
	o.Mailbox = orDefault(o.Mailbox, 64)
	o.CancelGrace = orDefault(o.CancelGrace, 10*time.Second)
	o.IdleAfter = orDefault(o.IdleAfter, 10*time.Minute)
	return o
}

func orDefault[T int | time.Duration](v, otherwise T) T {
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
	life    context.Context
	end     context.CancelFunc
	work    sync.WaitGroup

	mu     sync.Mutex
	owners map[string]*owner // guarded by mu
	closed bool              // guarded by mu
}

// New returns a host over a journal. Start makes it serve.
func New(j journal.Journal, f *feed.Feed, agents Agents, options Options) *Host {
	life, end := context.WithCancel(context.Background())
	h := &Host{
		opt: options.withDefaults(), journal: j, feed: f, agents: agents, life: life, end: end,
		owners: map[string]*owner{},
	}
	h.replay = replay.New(j, replay.Options{Logger: h.opt.Logger})
	h.places = newPlaces(h.opt.MaxRunning, h.wakeWaiting)
	h.timers = timer.New(j, h.fire, timer.Options{Now: h.opt.Now, Logger: h.opt.Logger})
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

// Close ends every owner and agent and waits for them. Runs are not cancelled by it:
// the next start recovers them. It may be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.ready.Store(false)
	h.end()
	h.timers.Close()
	h.work.Wait()
	return nil
}

// owner returns the owner of a session, loaded if it is not alive. The caller must hand
// its task over at once: an idle owner ends.
func (h *Host) owner(ctx context.Context, session string) (*owner, error) {
	for {
		h.mu.Lock()
		if h.closed {
			h.mu.Unlock()
			return nil, ErrClosed
		}
		o := h.owners[session]
		if o == nil {
			o = newOwner(h, session)
			h.owners[session] = o
			h.work.Add(1)
			go o.live()
		}
		h.mu.Unlock()
		select {
		case <-o.loaded:
			if o.loadErr != nil {
				return nil, o.loadErr
			}
			return o, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for session: %w", ctx.Err())
		}
	}
}

// gone forgets an owner that ends.
func (h *Host) gone(o *owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owners[o.id] == o {
		delete(h.owners, o.id)
	}
}
