package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Calls of an executor while host and executor are ended at random, connections break,
// writes fail and leases are superseded: each token is executed at most once, and each
// call that was started ends exactly once. MAHATI_EXECUTIONS says how many calls,
// MAHATI_EXECUTIONS_SEED repeats a run.
func TestExecutionsOverKills(t *testing.T) {
	const each = 20 // calls of a round
	calls := int(number(t, "MAHATI_EXECUTIONS", 200))
	seed := number(t, "MAHATI_EXECUTIONS_SEED", uint64(time.Now().UnixNano()))
	for round := range (calls + each - 1) / each {
		seed := seed + uint64(round)
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Logf("MAHATI_EXECUTIONS=%d MAHATI_EXECUTIONS_SEED=%d repeats it", each, seed)
			inHost(t, func(t *testing.T, j journal.Journal) { newOrdeal(t, j, seed, each).run() })
		})
	}
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return n
}

// ordeal is one round: a host that is ended now and then, and an executor with a ledger.
type ordeal struct {
	t       *testing.T
	journal journal.Journal
	random  *rand.Rand
	names   []string
	over    chan struct{}

	restarts int

	mu       sync.Mutex
	stage    *stage
	ledger   map[string]*narad.ClientToolFinish // by token: nil until the tool has ended
	executed map[string]int                     // by token
	told     map[string]bool                    // by token
}

func newOrdeal(t *testing.T, j journal.Journal, seed uint64, calls int) *ordeal {
	o := &ordeal{
		t: t, journal: j, random: rand.New(rand.NewPCG(seed, 0)), over: make(chan struct{}),
		ledger: map[string]*narad.ClientToolFinish{}, executed: map[string]int{}, told: map[string]bool{},
	}
	for i := range calls {
		o.names = append(o.names, fmt.Sprint("t", i))
	}
	return o
}

func (o *ordeal) run() {
	o.open()
	o.stage.bound("s")
	o.stage.say("s", "go")
	var client sync.WaitGroup
	client.Go(o.execute)
	for range 2_000 {
		pass(time.Duration(o.chance(40_000)) * time.Millisecond)
		if o.summary().State == "idle" {
			break
		}
		if o.chance(4) == 0 {
			o.restart()
		}
	}
	close(o.over)
	client.Wait()
	o.judge()
}

func (o *ordeal) chance(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.random.IntN(n)
}

func (o *ordeal) open() {
	s := open(o.t, o.journal, calls(o.names...), host.Options{Executors: executor.Options{TokenLife: 2 * time.Minute}})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stage = s
}

// restart ends the host, runs and all, and starts another one.
func (o *ordeal) restart() {
	o.restarts++
	o.host().end()
	pass(time.Duration(o.chance(90_000)) * time.Millisecond)
	o.open()
}

func (o *ordeal) host() *stage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stage
}

func (o *ordeal) summary() host.Summary { return o.host().summary("s") }

func (o *ordeal) ended() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// execute is the executor: it attaches, takes calls and tells their ends, and is itself
// ended now and then, with nothing left but its ledger.
func (o *ordeal) execute() {
	for !o.ended() {
		pass(time.Duration(o.chance(20_000)) * time.Millisecond)
		h := o.host().host
		o.tellWhatIsLeft(h)
		a, err := h.AttachExecutor(o.t.Context(), access.Owner(), "desk")
		if err != nil {
			continue
		}
		for range 1 + o.chance(4) { // connections under one lease
			c, err := h.ConnectExecutor(access.Owner(), "desk", a.LeaseID)
			if err != nil {
				break
			}
			o.serve(h, c, a.LeaseID)
			c.Close()
		}
	}
}

// serve takes what a connection brings, for a while.
func (o *ordeal) serve(h *host.Host, c *host.ExecutorConnection, lease string) {
	for range 1 + o.chance(8) {
		list, err := c.Next()
		if err != nil {
			return
		}
		if o.chance(6) == 0 {
			c.Wrote(errors.New("broken pipe"))
			return
		}
		c.Wrote(nil)
		for _, data := range list {
			r, err := narad.DecodeStrict(data)
			if err != nil {
				o.t.Error(err)
				return
			}
			if e, ok := r.(*narad.ClientToolExecute); ok && !o.act(h, e) {
				return // the executor was killed
			}
		}
		pass(time.Duration(o.chance(30_000)) * time.Millisecond)
		if o.chance(2) == 0 {
			_, _ = h.RenewLease(access.Owner(), "desk", lease)
		}
	}
}

// act runs a call that is not known yet. It is false when the executor is killed after it
// acted, before it noted that it ended.
func (o *ordeal) act(h *host.Host, e *narad.ClientToolExecute) bool {
	o.mu.Lock()
	_, known := o.ledger[e.ExecutionToken]
	if !known {
		o.ledger[e.ExecutionToken] = nil
		o.executed[e.ExecutionToken]++
	}
	o.mu.Unlock()
	if known {
		return true
	}
	unknown := ended(e, `{"code":"outcome_unknown"}`)
	unknown.Outcome = narad.OutcomeError
	if o.chance(5) == 0 {
		o.note(e.ExecutionToken, unknown) // what its next life will tell
		return false
	}
	pass(time.Duration(o.chance(5_000)) * time.Millisecond)
	o.note(e.ExecutionToken, ended(e, `1`))
	if o.chance(4) > 0 {
		o.tellWhatIsLeft(h)
	}
	return true
}

func (o *ordeal) note(token string, f *narad.ClientToolFinish) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ledger[token] = f
}

// tellWhatIsLeft tells the ends that the host may not know, some of them twice.
func (o *ordeal) tellWhatIsLeft(h *host.Host) {
	o.mu.Lock()
	var left []*narad.ClientToolFinish
	for token, f := range o.ledger {
		if f != nil && !o.told[token] {
			left = append(left, f)
		}
	}
	o.mu.Unlock()
	for _, f := range left {
		for range 1 + o.chance(2) {
			a, err := h.FinishClientTool(o.t.Context(), access.Owner(), f)
			if err != nil {
				break
			}
			if a.Status == decide.Forbidden {
				o.t.Errorf("a finish under its own token and lease is forbidden: %s", a.Detail)
			}
			o.mu.Lock()
			o.told[f.ExecutionToken] = true
			o.mu.Unlock()
		}
	}
}

func (o *ordeal) judge() {
	s := o.host()
	defer s.close()
	if state := o.summary().State; state != "idle" {
		o.t.Errorf("the session is %s", state)
	}
	ends, starts := map[string][]*narad.ToolCallFinished{}, 0
	for _, fact := range s.facts("s") {
		switch f := fact.(type) {
		case *narad.ToolCallStarted:
			starts++
		case *narad.ToolCallFinished:
			ends[f.ToolCallID] = append(ends[f.ToolCallID], f)
		}
	}
	if starts != len(o.names) || len(ends) != starts {
		o.t.Errorf("%d calls were started and %d ended, want %d", starts, len(ends), len(o.names))
	}
	how := map[string]int{}
	for id, list := range ends {
		if len(list) != 1 {
			o.t.Errorf("%s ended %d times", id, len(list))
		}
		how[string(list[0].Outcome)+" "+list[0].Code]++
	}
	o.t.Logf("%d restarts of the host, calls ended %v", o.restarts, how)
	o.mu.Lock()
	defer o.mu.Unlock()
	for token, n := range o.executed {
		if n != 1 {
			o.t.Errorf("a token was executed %d times", n)
		}
		if f := o.ledger[token]; f != nil && f.Outcome == narad.OutcomeSuccess {
			delete(ends, f.ToolCallID)
		}
	}
	for id, list := range ends { // no execution of the executor stands behind these
		if list[0].Outcome == narad.OutcomeSuccess {
			o.t.Errorf("%s succeeded, and nobody ran it", id)
		}
	}
}
