package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// TestKill plays the demo and kills its host with kill -9 at a random moment, sometimes
// the next one too while it starts, and demands that nothing is lost, doubled, stuck or
// left behind. MAHATI_DEMO_KILLS says how often; MAHATI_DEMO_SEED repeats one.
func TestKill(t *testing.T) {
	rounds := fromEnv(t, "MAHATI_DEMO_KILLS", 3)
	seed := fromEnv(t, "MAHATI_DEMO_SEED", uint64(time.Now().UnixNano()))
	for round := range rounds {
		t.Run(strconv.FormatUint(round+1, 10), func(t *testing.T) {
			seed := seed + round
			t.Logf("MAHATI_DEMO_KILLS=1 MAHATI_DEMO_SEED=%d repeats it", seed)
			o := &ordeal{t: t, random: rand.New(rand.NewPCG(seed, 0)), stage: stage{home: t.TempDir()}}
			o.choose()
			o.run()
			o.judge()
		})
	}
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
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

// killedPace is quick enough for many rounds, and slow enough that tools are hit, too.
var killedPace = demoPace{text: 4 * time.Millisecond, work: 60 * time.Millisecond}

// ordeal is one round.
type ordeal struct {
	stage
	t      *testing.T
	random *rand.Rand

	killAfter int           // facts
	delay     time.Duration // after that fact
	starting  time.Duration // kill the next host so long after its start; 0 does not
	early     bool          // approve before the kill already

	client  *client.Client
	session string
	runID   string
	seen    []narad.Raw // acknowledged: shown to the client
	before  int         // how many of them before the kill
	killed  bool
	ended   narad.Authority
}

// mostFacts is about how many facts a round has.
const mostFacts = 50

func (o *ordeal) choose() {
	o.killAfter = o.random.IntN(mostFacts)
	o.delay = time.Duration(o.random.Int64N(int64(40 * time.Millisecond)))
	o.early = o.random.IntN(2) == 0
	if o.random.IntN(3) == 0 {
		o.starting = 1 + time.Duration(o.random.Int64N(int64(60*time.Millisecond)))
	}
	o.t.Logf("kill after fact %d and %s, early approval %v, kill of the next start after %s", o.killAfter, o.delay, o.early, o.starting)
}

func (o *ordeal) must(err error) {
	o.t.Helper()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(o.home, childLog))
		o.t.Fatalf("%v\nthe host's log:\n%s", err, log)
	}
}

func (o *ordeal) run() {
	o.must(o.set(killedPace.script()))
	o.must(o.start())
	o.t.Cleanup(func() { o.must(o.close()) })
	var err error
	o.client, err = o.connect()
	o.must(err)
	o.t.Cleanup(o.client.Close)
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	created, _, err := o.client.CreateSession(ctx, client.NewSession{CWD: o.work()})
	o.must(err)
	o.session = created.SessionID
	sent, err := o.client.Message(ctx, client.Message{SessionID: o.session, Content: demoPrompt})
	o.must(err)
	o.runID = sent.RunID
	o.follow(ctx)
	if !o.killed {
		o.kill9() // an idle host, then
	}
}

// follow follows to the end of the run, with the accident on the way.
func (o *ordeal) follow(ctx context.Context) {
	v := &viewer{client: o.client, follower: o.client.Follow(o.session, client.FollowOptions{})}
	turns, stop := v.turns(ctx)
	defer stop()
	accident := time.NewTimer(time.Hour)
	if o.killAfter == 0 {
		accident.Reset(o.delay)
	}
	for o.ended == nil {
		// Without the approval nothing may be left to happen: then it is time, too.
		quiet := time.NewTimer(500 * time.Millisecond)
		select {
		case turn, ok := <-turns:
			if !ok || turn.err != nil {
				o.must(fmt.Errorf("following ended after %d facts: %w", len(o.seen), turn.err))
			}
			o.take(ctx, v, turn.update)
			turn.seen()
			if len(o.seen) == o.killAfter && !o.killed {
				accident.Reset(o.delay)
			}
		case <-accident.C:
			o.kill9()
		case <-quiet.C:
			if !o.killed {
				o.kill9()
			}
		case <-ctx.Done():
			o.must(fmt.Errorf("the session is stuck after %d facts: %w", len(o.seen), ctx.Err()))
		}
		quiet.Stop()
	}
}

func (o *ordeal) take(ctx context.Context, v *viewer, u client.Update) {
	if fact, ok := u.Record.(narad.Authority); ok {
		o.seen = append(o.seen, u.Raw)
		if terminal(fact) && fact.Envelope().RunID == o.runID {
			o.ended = fact
		}
	}
	_, asked := u.Record.(*narad.InterruptRequested)
	if (asked || u.Record == nil) && u.Phase == client.Live && (o.early || o.killed) {
		for _, i := range openInterrupts(v.follower.Snapshot()) {
			// What fails because of the accident is done again when the client is back.
			_, err := o.client.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: i.InterruptID, Decision: "approve", CommandID: "approve:" + i.InterruptID})
			if err != nil {
				o.t.Logf("approve: %v", err)
			}
		}
	}
}

// kill9 is the accident, and the next start.
func (o *ordeal) kill9() {
	o.killed, o.before = true, len(o.seen)
	o.must(o.kill())
	if o.starting > 0 {
		next, out, err := launchChild(o.childOptions())
		o.must(err)
		time.Sleep(o.starting)
		o.must(next.kill())
		o.must(out.Close())
	}
	o.must(o.start())
}

// judge demands that the round left nothing wrong.
func (o *ordeal) judge() {
	ctx := o.t.Context()
	export, err := exported(ctx, o.client, o.session)
	o.must(err)
	if err := sameFacts(o.seen[:o.before], export[:min(o.before, len(export))]); err != nil {
		o.t.Errorf("facts acknowledged before the kill: %v", err)
	}
	if err := sameFacts(o.seen, export); err != nil {
		o.t.Errorf("facts over the kill: %v", err)
	}
	if err := checkTrace(export); err != nil {
		o.t.Errorf("narad check: %v\n%s", err, export)
	}
	ran, err := toolsRan(o.work(), export)
	if err != nil {
		o.t.Errorf("tools: %v", err)
	}
	summary, err := o.client.Session(ctx, o.session)
	o.must(err)
	if o.ended.Type() != narad.TypeRunFinished || summary.State != "idle" || summary.ActiveRootRunID != "" {
		o.t.Errorf("the run ended as %s, the session is %s with active run %q; want finished, idle, none",
			o.ended.Type(), summary.State, summary.ActiveRootRunID)
	}
	for i, err := range o.client.Interrupts(ctx, client.InboxQuery{}) {
		o.must(err)
		o.t.Errorf("interrupt %s is still open", i.InterruptID)
	}
	o.must(o.stop())
	if err := nothingRuns(o.work()); err != nil {
		o.t.Error(err)
	}
	if err := o.verify(ctx); err != nil {
		o.t.Error(err)
	}
	o.t.Logf("%d facts, %d before the kill, %d tools ran", len(export), o.before, ran)
}
