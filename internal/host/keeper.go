package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
)

// keeper holds the agent of a session: made for its first run, kept between runs, and
// ended with the owner.
type keeper struct {
	o    *owner
	work sync.WaitGroup // runs, and what goes with them

	mu   sync.Mutex
	held *held      // guarded by mu
	user *activeRun // guarded by mu: the last run that asked for the agent
}

// held is an agent with the processes that it has told of.
type held struct {
	agent     agent.Agent
	cwd       string
	processes map[agent.Process]bool // guarded by the keeper's mu
}

func newKeeper(o *owner) *keeper { return &keeper{o: o} }

// holds reports whether there is an agent to keep.
func (k *keeper) holds() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held != nil
}

// errAbandoned says that a run got its agent after it was given up.
var errAbandoned = errors.New("the run was given up")

// open returns the session's agent to a run. Runs call it one after another, but for
// one that was given up.
func (k *keeper) open(ctx context.Context, r *activeRun, s agent.Session) (agent.Agent, error) {
	k.mu.Lock()
	k.user = r
	is := k.held
	k.mu.Unlock()
	switch {
	case r.kind == nil:
		return nil, fmt.Errorf("no agent is configured for %q", r.name)
	case is != nil && !r.alone && is.cwd == s.Cwd:
		return is.agent, nil
	case is != nil: // the session's own, which finds its session again, or one that stayed behind
		k.abandon(r)
		k.mu.Lock()
		k.user = r
		k.mu.Unlock()
	}
	made := &held{cwd: s.Cwd, processes: map[agent.Process]bool{}}
	s.Own = func(ctx context.Context, p agent.Process) error { return k.own(ctx, made, p) }
	s.Disown = func(ctx context.Context, p agent.Process) error { return k.disown(ctx, made, p) }
	var err error
	if made.agent, err = r.kind.Open(ctx, s); err != nil {
		return nil, fmt.Errorf("open agent: %w", err)
	}
	k.mu.Lock()
	wanted := k.user == r && ctx.Err() == nil
	if wanted {
		k.held = made
	}
	k.mu.Unlock()
	if !wanted {
		k.end(made)
		return nil, errAbandoned
	}
	return made.agent, nil
}

// of returns the agent that performs a run, nil if it is gone.
func (k *keeper) of(r *activeRun) agent.Agent {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.user != r || k.held == nil {
		return nil
	}
	return k.held.agent
}

// abandon ends the agent of a run that does not stop. The next run gets a new one.
func (k *keeper) abandon(r *activeRun) {
	k.mu.Lock()
	if k.user != r {
		k.mu.Unlock()
		return
	}
	is := k.takeLocked()
	k.mu.Unlock()
	k.await(is, func() { k.end(is) })
}

// close ends the agent and its processes, and waits for everything that runs for it. It
// gives up an agent that does not end.
func (k *keeper) close() {
	k.mu.Lock()
	is := k.takeLocked()
	k.mu.Unlock()
	k.await(is, func() {
		k.end(is)
		k.work.Wait()
	})
}

func (k *keeper) takeLocked() *held {
	is := k.held
	k.held, k.user = nil, nil
	return is
}

// end closes an agent that nobody has any more.
func (k *keeper) end(is *held) {
	if is == nil {
		return
	}
	defer k.guard("close agent", func() {})
	if err := is.agent.Close(); err != nil {
		k.o.log.Warn("close agent", "error", err)
	}
}

// await waits for what ends an agent. After the grace its processes are killed, and
// after another one it is left behind: whatever it does then, nothing is recorded of it.
func (k *keeper) await(is *held, end func()) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		end()
	}()
	grace := k.o.host.opt.CancelGrace
	if within(gone, grace) {
		return
	}
	k.kill(is)
	if within(gone, grace) {
		return
	}
	k.o.log.Error("leave an agent behind that does not end")
	k.o.host.leave(k.o.id, gone)
}

// within waits for done at most for a while, and reports whether it came.
func within(done <-chan struct{}, d time.Duration) bool {
	return waitFor(context.Background(), done, d)
}

// kill ends the processes of an agent that does not do it.
func (k *keeper) kill(is *held) {
	if is == nil || k.o.host.opt.EndLeft == nil {
		return
	}
	k.mu.Lock()
	processes := slices.Collect(maps.Keys(is.processes))
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), k.o.host.opt.CancelGrace)
	defer cancel()
	for _, p := range processes {
		k.o.log.Warn("end the processes of an agent that does not end", "group", p.PID)
		err := k.o.host.opt.EndLeft(ctx, p)
		if err == nil {
			err = k.disown(ctx, is, p)
		}
		if err != nil {
			k.o.log.Error("end a process", "group", p.PID, "error", err)
		}
	}
}

// guard is deferred around what an agent does: one that panics is no reason to end
// every session. What it said may be a secret; its type and the place are none.
func (k *keeper) guard(what string, then func()) {
	p := recover()
	if p == nil {
		return
	}
	where := make([]byte, 4<<10)
	where = where[:runtime.Stack(where, false)]
	k.o.log.Error("agent panicked", "in", what, "panic", fmt.Sprintf("%T", p), "stack", string(where))
	then()
}

// endAgents ends the agent and waits for everything that runs for it.
func (o *owner) endAgents() {
	if o.active != nil {
		o.active.cancel()
	}
	o.keeper.close()
}

// own records durably that a process belongs to the session.
func (k *keeper) own(ctx context.Context, is *held, p agent.Process) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode process: %w", err)
	}
	k.mu.Lock()
	is.processes[p] = true
	k.mu.Unlock()
	return k.o.host.carry(ctx, journal.Put{Row: journal.AgentRow{ID: processID(p), Session: k.o.id, Value: value}})
}

// disown takes the record back.
func (k *keeper) disown(ctx context.Context, is *held, p agent.Process) error {
	k.mu.Lock()
	delete(is.processes, p)
	k.mu.Unlock()
	return k.o.host.carry(ctx, journal.Remove{Key: journal.AgentKey(processID(p))})
}

func processID(p agent.Process) string {
	return fmt.Sprintf("%s/%d/%d", p.BootID, p.PID, p.StartTime)
}

// processOf reads what processID wrote.
func processOf(id string) (agent.Process, bool) {
	parts := strings.Split(id, "/")
	if len(parts) < 3 {
		return agent.Process{}, false
	}
	n := len(parts)
	pid, err1 := strconv.Atoi(parts[n-2])
	start, err2 := strconv.ParseUint(parts[n-1], 10, 64)
	return agent.Process{BootID: strings.Join(parts[:n-2], "/"), PID: pid, StartTime: start}, err1 == nil && err2 == nil
}

// carry appends a change of rows that no fact causes. It moves no head, and may come
// from any goroutine.
func (h *Host) carry(ctx context.Context, change journal.Change) error {
	_, err := h.journal.Append(ctx, journal.Batch{
		Session: journal.RowStream, Changes: []journal.Change{change}, Time: h.opt.Now().UTC(), Closing: true,
	})
	if err != nil {
		return fmt.Errorf("change rows of no session: %w", err)
	}
	return nil
}
