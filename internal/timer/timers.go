package timer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Fire tells the owner of a timer that it is due. Nil means that the owner has
// dealt with it, or needs not. A timer whose row cannot be read has no value: its session
// and id, which its place in the list tells, must be enough.
type Fire func(ctx context.Context, timer journal.TimerRow) error

// Options are the optional parts of Timers. The zero value is for production.
type Options struct {
	// Now is the wall clock. Zero: time.Now.
	Now func() time.Time
	// MaxSleep is the longest time between two looks at the clock. Zero: 30
	// seconds.
	MaxSleep time.Duration
	// FireTimeout is how long one firing may take. Zero: 10 seconds.
	FireTimeout time.Duration
	// RetryMin and RetryMax bound the time after which a timer that fired and is
	// still there fires again; it doubles each time. Zero: 1 second, 1 minute.
	RetryMin, RetryMax time.Duration
	// Parallel is for how many sessions timers fire at once. Zero: 16.
	Parallel int
	// Logger is told of firings that fail. Zero: nobody.
	Logger *slog.Logger
	// Damaged is told, in each pass, of timers whose rows cannot be read. Zero: the Logger.
	Damaged func(journal.Damage)
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	durations := []struct {
		of *time.Duration
		to time.Duration
	}{
		{&o.MaxSleep, 30 * time.Second}, {&o.FireTimeout, 10 * time.Second},
		{&o.RetryMin, time.Second}, {&o.RetryMax, time.Minute},
	}
	for _, d := range durations {
		if *d.of <= 0 {
			*d.of = d.to
		}
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Damaged == nil {
		o.Damaged = func(d journal.Damage) {
			o.Logger.Error("a timer cannot be read", "session", d.Session, "timer", d.Key.ID, "cause", d.Cause.Error())
		}
	}
	return o
}

// Timers fires the timers of one journal. [New] makes one.
type Timers struct {
	index   journal.Index
	fire    Fire
	options Options

	ctx     context.Context // the life of the goroutine
	cancel  context.CancelFunc
	changed chan struct{}

	// passing is held by the one pass under way, and guards rests.
	passing sync.Mutex
	rests   map[journal.Key]rest

	mu      sync.Mutex
	running chan struct{} // closed when the goroutine has ended; nil before Start
	closed  bool
	again   []journal.Key // guarded by mu: timers whose rest is over
}

// New makes Timers that do nothing yet.
func New(index journal.Index, fire Fire, options Options) *Timers {
	ctx, cancel := context.WithCancel(context.Background())
	return &Timers{
		index: index, fire: fire, options: options.withDefaults(), ctx: ctx, cancel: cancel,
		changed: make(chan struct{}, 1), rests: map[journal.Key]rest{},
	}
}

// Outcome says how many timers fired and how many of these firings failed.
type Outcome struct{ Fired, Failed int }

// FireOverdue fires once what is due by now and returns when that is done:
// recovery calls it before it lets anybody in. Firings that fail are tried again
// once Start was called. The error is that of the journal or the context.
func (t *Timers) FireOverdue(ctx context.Context) (Outcome, error) {
	outcome, _, err := t.pass(ctx)
	return outcome, err
}

// Start starts the goroutine. It may be called once, before Close.
func (t *Timers) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != nil || t.closed {
		return
	}
	t.running = make(chan struct{})
	go t.run(t.running)
}

// Changed tells that timer rows have changed. It never waits.
func (t *Timers) Changed() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Again lets timers fire again that fired and are still there, without the rest of their
// pause. It never waits.
func (t *Timers) Again(keys ...journal.Key) {
	t.mu.Lock()
	t.again = append(t.again, keys...)
	t.mu.Unlock()
	t.Changed()
}

// wake ends the rests of the timers that are to fire again.
func (t *Timers) wake() {
	t.mu.Lock()
	again := t.again
	t.again = nil
	t.mu.Unlock()
	for _, key := range again {
		delete(t.rests, key)
	}
}

// Close cancels the goroutine's firings and joins it. It may be called twice.
func (t *Timers) Close() {
	t.mu.Lock()
	t.closed = true
	running := t.running
	t.mu.Unlock()
	t.cancel()
	if running != nil {
		<-running
	}
}

func (t *Timers) run(ended chan<- struct{}) {
	defer close(ended)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-t.changed:
		case <-alarm.C:
		}
		start := time.Now()
		_, sleep, err := t.pass(t.ctx)
		switch {
		case t.ctx.Err() != nil || errors.Is(err, journal.ErrClosed):
			return
		case err != nil:
			t.options.Logger.Error("timers cannot be read", "cause", err)
			sleep = t.options.RetryMin
		}
		alarm.Reset(sleep - time.Since(start))
	}
}
