package host

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
)

// keeper holds the agent of a session: made for its first run, kept between runs, and
// ended with the owner.
type keeper struct {
	o    *owner
	work sync.WaitGroup // runs, and what goes with them

	mu    sync.Mutex
	agent agent.Agent // guarded by mu
	user  *activeRun  // guarded by mu: the last run that asked for the agent
}

func newKeeper(o *owner) *keeper { return &keeper{o: o} }

// holds reports whether there is an agent to keep.
func (k *keeper) holds() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.agent != nil
}

// errAbandoned says that a run got its agent after it was given up.
var errAbandoned = errors.New("the run was given up")

// open returns the session's agent to a run. Runs call it one after another, but for
// one that was given up.
func (k *keeper) open(ctx context.Context, r *activeRun, s agent.Session) (agent.Agent, error) {
	k.mu.Lock()
	k.user = r
	a := k.agent
	k.mu.Unlock()
	if a != nil {
		return a, nil
	}
	kind, ok := k.o.host.agents.Kind(r.agentName)
	if !ok {
		return nil, fmt.Errorf("no agent is configured under the name %q", r.agentName)
	}
	a, err := kind.Open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open agent: %w", err)
	}
	k.mu.Lock()
	wanted := k.user == r && ctx.Err() == nil
	if wanted {
		k.agent = a
	}
	k.mu.Unlock()
	if !wanted {
		k.end(a)
		return nil, errAbandoned
	}
	return a, nil
}

// abandon ends the agent of a run that does not stop. The next run gets a new one.
func (k *keeper) abandon(r *activeRun) {
	k.mu.Lock()
	if k.user != r {
		k.mu.Unlock()
		return
	}
	a := k.agent
	k.agent, k.user = nil, nil
	k.mu.Unlock()
	k.end(a)
}

// close ends the agent and its processes.
func (k *keeper) close() {
	k.mu.Lock()
	a := k.agent
	k.agent, k.user = nil, nil
	k.mu.Unlock()
	k.end(a)
}

// end closes an agent that nobody has any more.
func (k *keeper) end(a agent.Agent) {
	if a == nil {
		return
	}
	defer k.guard("close agent", func() {})
	if err := a.Close(); err != nil {
		k.o.log.Warn("close agent", "error", err)
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
	o.keeper.work.Wait()
}

// own records durably that a process belongs to the session.
func (o *owner) own(ctx context.Context, p agent.Process) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode process: %w", err)
	}
	return o.host.carry(ctx, journal.Put{Row: journal.AgentRow{ID: processID(p), Session: o.id, Value: value}})
}

// disown takes the record back.
func (o *owner) disown(ctx context.Context, p agent.Process) error {
	return o.host.carry(ctx, journal.Remove{Key: journal.AgentKey(processID(p))})
}

func processID(p agent.Process) string {
	return fmt.Sprintf("%s/%d/%d", p.BootID, p.PID, p.StartTime)
}

// carry appends a change of rows that no fact causes. It moves no head, and may come
// from any goroutine.
func (h *Host) carry(ctx context.Context, change journal.Change) error {
	_, err := h.journal.Append(ctx, journal.Batch{
		Session: journal.HostStream, Changes: []journal.Change{change}, Time: h.opt.Now().UTC(), Closing: true,
	})
	if err != nil {
		return fmt.Errorf("record process: %w", err)
	}
	return nil
}
