package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// However attaches, heartbeats, takes, finishes, expiries and restarts of the host
// interleave, what everybody was told is what they would have been told one after another
// (§11.1 to §11.3). MAHATI_LINEAR says how many rounds, MAHATI_LINEAR_SEED repeats one.
func TestExecutorsAreLinearizable(t *testing.T) {
	rounds := number(t, "MAHATI_LINEAR", 20)
	seed := number(t, "MAHATI_LINEAR_SEED", uint64(time.Now().UnixNano()))
	for round := range rounds {
		seed := seed + round
		t.Run(strconv.FormatUint(round, 10), func(t *testing.T) {
			var c *contest
			inHost(t, func(t *testing.T, j journal.Journal) {
				c = newContest(t, j, seed)
				c.run()
			})
			t.Logf("MAHATI_LINEAR=1 MAHATI_LINEAR_SEED=%d repeats it: %s", seed, c.told())
			judgeHistory(t, c.history)
		})
	}
}

func judgeHistory(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(deskModel, history, time.Minute) {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Error("the history is too long to be judged in a minute")
	default:
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, o := range history {
			t.Logf("%4d-%4d %s", o.Call, o.Return, deskModel.DescribeOperation(o.Input, o.Output))
		}
		t.Error("no order of these operations explains what they were told")
	}
}

const (
	contestLease = 10 * time.Second
	contestToken = 20 * time.Second
)

// asked is one operation on an executor, and answered what it was told. Times are of the
// bubble, where an operation that waits for nothing takes none: what has expired is then
// certain.
type asked struct {
	kind     string // attach, renew, take, finish, read, down, up
	lease    string
	call     string
	token    string
	response string
	from, to time.Duration
}

type answered struct {
	word    string // ok, refused, failed, or a status, or how a call ended
	lease   string
	expires time.Duration
	taken   []deskCall
}

// deskCall is what is known of a call that an executor has taken.
type deskCall struct {
	id, lease, token string
	expires          time.Duration
	state            string // open, expired, or done with the response
}

// deskState is an executor as one that does one thing at a time would keep it.
type deskState struct {
	lease   string
	expires time.Duration
	calls   []deskCall
}

func (s deskState) find(id string) int {
	return slices.IndexFunc(s.calls, func(c deskCall) bool { return c.id == id })
}

func (s deskState) with(i int, state string) deskState {
	s.calls = slices.Clone(s.calls)
	s.calls[i].state = state
	return s
}

func (s deskState) leased(lease string, expires time.Duration) deskState {
	s.lease, s.expires = lease, expires
	return s
}

// before reports whether an operation may have happened before an instant, after whether
// it may have happened at it or later.
func (a asked) before(t time.Duration) bool { return a.from < t }
func (a asked) after(t time.Duration) bool  { return a.to >= t }

var deskModel = (&porcupine.NondeterministicModel{
	Init:  func() []any { return []any{deskState{}} },
	Step:  func(s, in, out any) []any { return step(s.(deskState), in.(asked), out.(answered)) },
	Equal: func(a, b any) bool { return equalDesks(a.(deskState), b.(deskState)) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
}).ToModel()

func equalDesks(a, b deskState) bool {
	return a.lease == b.lease && a.expires == b.expires && slices.Equal(a.calls, b.calls)
}

// step returns the states after an operation that was told this, none if it cannot have
// been.
func step(s deskState, in asked, out answered) []any {
	holds := s.lease != "" && s.lease == in.lease
	switch in.kind {
	case "attach":
		if out.word == "failed" { // it may have been recorded
			return []any{s, s.leased("nobody's", in.to+contestLease)}
		}
		return []any{s.leased(out.lease, out.expires)}
	case "renew":
		switch {
		case out.word == "ok" && holds && in.before(s.expires):
			return []any{s.leased(s.lease, out.expires)}
		case out.word == "refused" && (!holds || in.after(s.expires)):
			return []any{s}
		case out.word == "failed":
			return []any{s, s.leased(s.lease, max(s.expires, in.to+contestLease))}
		}
		return nil
	case "take":
		return stepTake(s, in, out, holds)
	case "finish":
		return stepFinish(s, in, out)
	case "read":
		return stepRead(s, in, out)
	case "down": // a lease that had ended is forgotten, another one is not
		var next []any
		if s.lease == "" || in.before(s.expires) || in.from == s.expires {
			next = append(next, s)
		}
		if s.lease != "" && in.after(s.expires) {
			next = append(next, s.leased("", 0))
		}
		return next
	case "up":
		if s.lease == "" {
			return []any{s}
		}
		return []any{s.leased(s.lease, in.to+contestLease)}
	}
	panic("unknown operation " + in.kind)
}

// stepTake: only the newest lease takes calls, and none that another one has taken.
func stepTake(s deskState, in asked, out answered, holds bool) []any {
	if len(out.taken) == 0 {
		return []any{s}
	}
	if !holds || !in.before(s.expires) {
		return nil
	}
	s.calls = slices.Clone(s.calls)
	for _, c := range out.taken {
		known := s.find(c.id)
		switch {
		case c.lease != in.lease:
			return nil
		case known < 0:
			s.calls = append(s.calls, c)
		case s.calls[known].lease != c.lease || s.calls[known].token != c.token:
			return nil
		}
	}
	return []any{s}
}

func stepFinish(s deskState, in asked, out answered) []any {
	i := s.find(in.call)
	if i < 0 {
		return nil
	}
	c := s.calls[i]
	right := c.token == in.token && c.lease == in.lease
	open := c.state == "open" && in.before(c.expires)
	late := c.state == "expired" || c.state == "open" && in.after(c.expires)
	done := strings.HasPrefix(c.state, "done")
	switch {
	case out.word == "failed":
		next := []any{s}
		if right && open {
			next = append(next, s.with(i, "done "+in.response))
		}
		return next
	case out.word == string(decide.Forbidden) && !right,
		out.word == string(decide.AlreadyApplied) && right && c.state == "done "+in.response,
		out.word == string(decide.Conflict) && right && done && c.state != "done "+in.response:
		return []any{s}
	case out.word == string(decide.Accepted) && right && open:
		return []any{s.with(i, "done "+in.response)}
	case out.word == string(decide.Expired) && right && late:
		return []any{s.with(i, "expired")}
	}
	return nil
}

// stepRead: the journal tells what the finishes were told.
func stepRead(s deskState, in asked, out answered) []any {
	i := s.find(in.call)
	if i < 0 {
		return nil
	}
	c := s.calls[i]
	switch {
	case out.word == "open" && (c.state == "open" || c.state == "expired"): // its timer is about to fire
		return []any{s}
	case out.word == c.state && c.state != "open":
		return []any{s}
	case out.word == "expired" && c.state == "open" && in.after(c.expires):
		return []any{s.with(i, "expired")}
	}
	return nil
}

// contest is a host, and several programs that each believe to be its executor.
type contest struct {
	t       *testing.T
	journal journal.Journal
	begun   time.Time
	stamp   atomic.Int64
	seed    uint64
	session string

	mu      sync.Mutex
	stage   *stage
	leases  []string
	calls   []deskCall
	history []porcupine.Operation
}

func newContest(t *testing.T, j journal.Journal, seed uint64) *contest {
	return &contest{t: t, journal: j, begun: time.Now(), seed: seed, session: "s"}
}

func (c *contest) run() {
	c.open()
	c.stage.bound(c.session)
	c.stage.say(c.session, "go")
	var all sync.WaitGroup
	for id := range 4 {
		random := rand.New(rand.NewPCG(c.seed, uint64(id)))
		all.Go(func() {
			for range 14 {
				// Few instants, so that many things happen at each.
				pass(time.Duration(random.IntN(6)) * time.Second)
				c.do(id, random)
			}
		})
	}
	random := rand.New(rand.NewPCG(c.seed, 99))
	all.Go(func() {
		for range random.IntN(3) {
			pass(time.Duration(random.IntN(25)) * time.Second)
			c.restart(random)
		}
	})
	all.Wait()
	c.read(9)
	c.stage.close()
}

func (c *contest) open() {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("t", i))
	}
	s := open(c.t, c.journal, calls(names...), host.Options{Executors: executor.Options{
		Lease: contestLease, Heartbeat: contestLease / 4, TokenLife: contestToken,
	}})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stage = s
}

func (c *contest) host() *host.Host {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage.host
}

// note performs an operation and writes down what it was told, and when.
func (c *contest) note(client int, in asked, do func() answered) {
	in.from = time.Since(c.begun)
	begun := c.stamp.Add(1)
	out := do()
	ended := c.stamp.Add(1)
	in.to = time.Since(c.begun)
	if out.word == "failed" {
		ended = 1 << 40 // who knows when it takes effect
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, porcupine.Operation{ClientId: client, Input: in, Call: begun, Output: out, Return: ended})
}

func (c *contest) restart(random *rand.Rand) {
	c.note(4, asked{kind: "down"}, func() answered { c.stage.end(); return answered{word: "ok"} })
	pass(time.Duration(random.IntN(15)) * time.Second)
	c.note(4, asked{kind: "up"}, func() answered { c.open(); return answered{word: "ok"} })
}

func (c *contest) do(client int, random *rand.Rand) {
	switch random.IntN(10) {
	case 0:
		c.attach(client)
	case 1, 2:
		c.renew(client, c.someLease(random))
	case 3, 4, 5:
		if len(c.someLease(random)) == 0 {
			c.attach(client)
		}
		c.take(client, c.someLease(random))
	case 6, 7, 8:
		c.finish(client, random)
	default:
		c.read(client)
	}
}

// someLease is one that was given, most often the newest.
func (c *contest) someLease(random *rand.Rand) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.leases)
	if n == 0 {
		return ""
	}
	return c.leases[n-1-min(n-1, max(0, random.IntN(6)-3))]
}

func (c *contest) attach(client int) {
	c.note(client, asked{kind: "attach"}, func() answered {
		a, err := c.host().AttachExecutor(c.t.Context(), access.Owner(), "desk")
		if err != nil {
			return answered{word: "failed"}
		}
		c.mu.Lock()
		c.leases = append(c.leases, a.LeaseID)
		c.mu.Unlock()
		return answered{word: "ok", lease: a.LeaseID, expires: c.since(a.LeaseExpiresAt)}
	})
}

func (c *contest) since(timestamp string) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, timestamp)
	if err != nil {
		c.t.Error(err)
	}
	return at.Sub(c.begun)
}

func (c *contest) renew(client int, lease string) {
	c.note(client, asked{kind: "renew", lease: lease}, func() answered {
		a, err := c.host().RenewLease(access.Owner(), "desk", lease)
		switch {
		case err == nil:
			return answered{word: "ok", expires: c.since(a.LeaseExpiresAt)}
		case isRefusal(err):
			return answered{word: "refused"}
		}
		return answered{word: "failed"}
	})
}

func isRefusal(err error) bool {
	return errors.Is(err, host.ErrWrongLease) || errors.Is(err, host.ErrLeaseExpired)
}

// take connects, and takes what is there.
func (c *contest) take(client int, lease string) {
	c.note(client, asked{kind: "take", lease: lease}, func() (out answered) {
		conn, err := c.host().ConnectExecutor(access.Owner(), "desk", lease)
		if err != nil {
			return answered{word: "refused"} // or failed: nothing changes
		}
		defer conn.Close()
		pass(time.Duration(client) * 100 * time.Millisecond) // a call may be issued now that somebody is there
		list, err := conn.Next()
		if err != nil {
			return answered{word: "refused"}
		}
		conn.Wrote(nil)
		for _, data := range list {
			rec, err := narad.DecodeStrict(data)
			if err != nil {
				c.t.Error(err)
			}
			if e, ok := rec.(*narad.ClientToolExecute); ok {
				out.taken = append(out.taken, deskCall{e.ToolCallID, e.LeaseID, e.ExecutionToken, c.since(e.ExecutionTokenExpiresAt), "open"})
			}
		}
		c.mu.Lock()
		c.calls = append(c.calls, out.taken...)
		c.mu.Unlock()
		return out
	})
}

// someCall is one that was taken, most often the newest.
func (c *contest) someCall(random *rand.Rand) (call, other deskCall, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.calls)
	if n == 0 {
		return call, other, false
	}
	return c.calls[n-1-min(n-1, random.IntN(3))], c.calls[random.IntN(n)], true
}

func (c *contest) finish(client int, random *rand.Rand) {
	call, other, ok := c.someCall(random)
	if !ok {
		return
	}
	in := asked{kind: "finish", lease: call.lease, call: call.id, token: call.token, response: fmt.Sprint(1 + random.IntN(4)/3)}
	switch random.IntN(8) {
	case 0:
		in.token = other.token
	case 1:
		in.lease = c.someLease(random)
	}
	c.note(client, in, func() answered {
		a, err := c.host().FinishClientTool(c.t.Context(), access.Owner(), &narad.ClientToolFinish{
			Lease: narad.Lease{ClientExecutorID: "desk", LeaseID: in.lease}, ExecutionToken: in.token, ToolCallID: in.call,
			Outcome: narad.OutcomeSuccess, Response: narad.Raw(in.response),
		})
		if err != nil {
			return answered{word: "failed"}
		}
		return answered{word: string(a.Status)}
	})
}

// read looks up in the journal how each call that was taken has ended.
func (c *contest) read(client int) {
	c.mu.Lock()
	known := slices.Clone(c.calls)
	c.mu.Unlock()
	for _, call := range known {
		c.note(client, asked{kind: "read", call: call.id}, func() answered { return answered{word: c.endOf(call.id)} })
	}
}

func (c *contest) endOf(id string) string {
	for rec, err := range journal.All(c.t.Context(), c.journal, c.session, 0) {
		if err != nil {
			c.t.Error(err)
			break
		}
		fact, err := narad.Decode(rec.Bytes)
		if err != nil {
			c.t.Error(err)
		}
		f, ok := fact.(*narad.ToolCallFinished)
		switch {
		case !ok || f.ToolCallID != id:
		case f.Outcome == narad.OutcomeSuccess:
			return "done " + string(f.Response)
		case f.Code == decide.CodeExecutionExpired:
			return "expired"
		default:
			return f.Code
		}
	}
	return "open"
}

// told counts what operations were told, so that a round that does nothing is seen.
func (c *contest) told() string {
	counts := map[string]int{}
	for _, o := range c.history {
		counts[o.Input.(asked).kind+" "+o.Output.(answered).word]++
	}
	return fmt.Sprint(counts)
}

// The model refuses what must not be told, and takes what may.
func TestModelOfExecutors(t *testing.T) {
	attach := func(lease string) (asked, answered) {
		return asked{kind: "attach"}, answered{word: "ok", lease: lease, expires: contestLease}
	}
	taken := deskCall{"t", "l1", "x", contestToken, "open"}
	type told struct {
		in  asked
		out answered
	}
	pair := func(in asked, out answered) told { return told{in, out} }
	take := func(lease string) told {
		c := taken
		c.lease = lease
		return told{asked{kind: "take", lease: lease}, answered{taken: []deskCall{c}}}
	}
	finish := func(response, word string, at time.Duration) told {
		return told{asked{kind: "finish", lease: "l1", call: "t", token: "x", response: response, from: at, to: at}, answered{word: word}}
	}
	renew := func(lease, word string, at time.Duration) told {
		return told{asked{kind: "renew", lease: lease, from: at, to: at}, answered{word: word, expires: at + contestLease}}
	}
	read := func(word string, at time.Duration) told {
		return told{asked{kind: "read", call: "t", from: at, to: at}, answered{word: word}}
	}
	first, second := pair(attach("l1")), pair(attach("l2"))
	for name, tt := range map[string]struct {
		history []told
		ok      bool
	}{
		"a call":                            {[]told{first, take("l1"), finish("1", "accepted", 1), finish("1", "already_applied", 2), read("done 1", 3)}, true},
		"an old lease finishes":             {[]told{first, take("l1"), second, finish("1", "accepted", 1)}, true},
		"expired":                           {[]told{first, take("l1"), finish("1", "expired", contestToken), read("expired", contestToken)}, true},
		"accepted twice":                    {[]told{first, take("l1"), finish("1", "accepted", 1), finish("1", "accepted", 2)}, false},
		"another is a repeat":               {[]told{first, take("l1"), finish("1", "accepted", 1), finish("2", "already_applied", 2)}, false},
		"accepted late":                     {[]told{first, take("l1"), finish("1", "accepted", contestToken)}, false},
		"expired early":                     {[]told{first, take("l1"), finish("1", "expired", 1)}, false},
		"refused though right":              {[]told{first, take("l1"), finish("1", "forbidden", 1)}, false},
		"an old lease takes":                {[]told{first, second, take("l1")}, false},
		"two leases take":                   {[]told{first, take("l1"), second, take("l2")}, false},
		"an old lease is renewed":           {[]told{first, second, renew("l1", "ok", 1)}, false},
		"an ended lease is renewed":         {[]told{first, renew("l1", "ok", contestLease)}, false},
		"a lease is refused that holds":     {[]told{first, renew("l1", "refused", 1)}, false},
		"an acknowledged finish is lost":    {[]told{first, take("l1"), finish("1", "accepted", 1), read("open", 2)}, false},
		"another finish is recorded":        {[]told{first, take("l1"), finish("1", "accepted", 1), read("done 2", 2)}, false},
		"a finish is recorded, not told so": {[]told{first, take("l1"), read("done 1", 2)}, false},
	} {
		var history []porcupine.Operation
		for i, o := range tt.history {
			history = append(history, porcupine.Operation{Input: o.in, Output: o.out, Call: int64(2 * i), Return: int64(2*i + 1)})
		}
		if got := porcupine.CheckOperations(deskModel, history); got != tt.ok {
			t.Errorf("%s: got %v, want %v", name, got, tt.ok)
		}
	}
}
