package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is executors over a store in memory, with what they told.
type bed struct {
	*executor.Executors
	t     *testing.T
	store journal.Journal

	mu      sync.Mutex
	arrived []string
	lost    []string // tool call ids
}

// inBed runs a test in a bubble of virtual time.
func inBed(t *testing.T, o executor.Options, test func(t *testing.T, b *bed)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := journal.NewMemory(journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		test(t, newBed(t, store, o))
	})
}

func newBed(t *testing.T, store journal.Journal, o executor.Options) *bed {
	t.Helper()
	b := &bed{t: t, store: store}
	o.Arrived = func(id string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.arrived = append(b.arrived, id)
	}
	o.Undelivered = func(c executor.Call) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lost = append(b.lost, c.ToolCallID)
	}
	b.Executors = executor.New(store, o)
	if err := b.Load(t.Context()); err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(b.Close)
	return b
}

func (b *bed) undelivered() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lost)
}

func principal(t *testing.T, id string) access.Principal {
	t.Helper()
	p, err := access.NewPrincipal(id, id, access.Grant{
		Roles: []access.Role{access.Execute}, Executors: []string{"desk", "other"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bed) attach(p access.Principal, id string) string {
	b.t.Helper()
	a, err := b.Attach(b.t.Context(), p, id)
	if err != nil {
		b.t.Fatalf("attach: %v", err)
	}
	return a.LeaseID
}

func (b *bed) connect(p access.Principal, id, lease string) *executor.Connection {
	b.t.Helper()
	c, err := b.Connect(p, id, lease)
	if err != nil {
		b.t.Fatalf("connect: %v", err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// issue gives a call a token, and stores its row as a session's owner does.
func (b *bed) issue(id string) (executor.Grant, bool) {
	b.t.Helper()
	g, ok, err := b.Issue(executor.Call{
		Executor: "desk", Session: "s", RunID: "r", ToolCallID: id, ToolName: "open.file", Args: narad.Raw(`{"n":1.10}`),
	})
	if err != nil {
		b.t.Fatalf("issue: %v", err)
	}
	return g, ok
}

func (b *bed) deliver(id string) {
	b.t.Helper()
	g, ok := b.issue(id)
	if !ok {
		b.t.Fatal("no connection takes the call")
	}
	b.Deliver(g)
}

// records reads what a connection has to write now, and says that it was written.
func records(t *testing.T, c *executor.Connection, wrote error) []narad.Record {
	t.Helper()
	list, err := c.Next()
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	var out []narad.Record
	for _, data := range list {
		r, err := narad.DecodeStrict(data)
		if err != nil {
			t.Fatalf("a record is not one that a host may write: %v", err)
		}
		out = append(out, r)
	}
	c.Wrote(wrote)
	return out
}

func executes(list []narad.Record) []*narad.ClientToolExecute {
	var out []*narad.ClientToolExecute
	for _, r := range list {
		if e, ok := r.(*narad.ClientToolExecute); ok {
			out = append(out, e)
		}
	}
	return out
}

// A new attach supersedes: the old lease takes nothing any more (§11.1).
func TestAttachSupersedes(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		first := b.attach(p, "desk")
		old := b.connect(p, "desk", first)
		second := b.attach(p, "desk")
		if first == second {
			t.Fatal("two attaches gave one lease")
		}
		if _, err := old.Next(); err == nil {
			t.Error("the connection of the superseded lease goes on")
		}
		if _, err := b.Renew(p, "desk", first); !errors.Is(err, executor.ErrWrongLease) {
			t.Errorf("heartbeat of the superseded lease: %v, want ErrWrongLease", err)
		}
		if _, err := b.Connect(p, "desk", first); !errors.Is(err, executor.ErrWrongLease) {
			t.Errorf("connect with the superseded lease: %v, want ErrWrongLease", err)
		}
		if _, err := b.Renew(p, "desk", second); err != nil {
			t.Errorf("heartbeat of the new lease: %v", err)
		}
	})
}

// A heartbeat moves the end of the lease, and the stream tells the client (R31); without
// one the executor is gone, and must attach again.
func TestLeaseIsRenewedOrExpires(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		lease := b.attach(p, "desk")
		c := b.connect(p, "desk", lease)
		_ = records(t, c, nil)
		time.Sleep(executor.DefaultLease - time.Second)
		answer, err := b.Renew(p, "desk", lease)
		if err != nil {
			t.Fatalf("renew: %v", err)
		}
		want := narad.Timestamp(time.Now().Add(executor.DefaultLease))
		if answer.LeaseID != lease || answer.LeaseExpiresAt != want {
			t.Errorf("renewed to %s, want the same lease until %s", answer.LeaseExpiresAt, want)
		}
		told := records(t, c, nil)
		if len(told) != 1 || told[0].(*narad.ClientAttached).LeaseExpiresAt != want {
			t.Errorf("the stream tells %v, want the new expiry once", told)
		}
		time.Sleep(executor.DefaultLease - time.Second)
		if !b.Present("desk", "") {
			t.Error("the executor is gone before its lease has ended")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if b.Present("desk", "") {
			t.Error("the executor is there after its lease has ended")
		}
		if _, err := c.Next(); !errors.Is(err, executor.ErrLeaseExpired) {
			t.Errorf("the stream of the ended lease: %v, want ErrLeaseExpired", err)
		}
		if _, err := b.Renew(p, "desk", lease); !errors.Is(err, executor.ErrLeaseExpired) {
			t.Errorf("heartbeat after the end: %v, want ErrLeaseExpired", err)
		}
		for r, err := range journal.Each[journal.LeaseRow](t.Context(), b.store, journal.Leases{}, noDamage(t)) {
			t.Errorf("what is stored of the ended lease stays: %v %v", r.Executor, err)
		}
	})
}

// After a restart the newest lease holds for one lease time, and its holder goes on.
func TestLeaseOverRestart(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		superseded := b.attach(p, "desk")
		lease := b.attach(p, "desk")
		b.Close()
		time.Sleep(time.Hour)
		b = newBed(t, b.store, executor.Options{})
		if b.Present("desk", "") {
			t.Error("an executor without a connection is there")
		}
		if _, err := b.Connect(p, "desk", superseded); !errors.Is(err, executor.ErrWrongLease) {
			t.Errorf("the superseded lease after the restart: %v, want ErrWrongLease", err)
		}
		c := b.connect(p, "desk", lease)
		b.deliver("c1")
		if got := executes(records(t, c, nil)); len(got) != 1 || got[0].LeaseID != lease {
			t.Errorf("got %v, want the call under the same lease", got)
		}
		time.Sleep(executor.DefaultLease)
		synctest.Wait()
		if b.Present("desk", "") {
			t.Error("the lease holds longer than one lease time")
		}
	})
}

// A call goes to the connection of its lease, once; a reconnect under the same lease gets
// it again, the same bytes; a new lease never does (R32).
func TestDelivery(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		lease := b.attach(p, "desk")
		c := b.connect(p, "desk", lease)
		b.deliver("c1")
		first, err := c.Next()
		if err != nil || len(first) != 1 {
			t.Fatalf("next gives %d records, %v; want the call", len(first), err)
		}
		c.Wrote(nil)
		if again, _ := c.Next(); len(again) != 0 {
			t.Errorf("one connection is given the call twice")
		}
		if !b.Delivered("desk", "c1") {
			t.Error("the call does not count as taken")
		}
		newer := b.connect(p, "desk", lease)
		if _, err := c.Next(); err == nil {
			t.Error("the older connection goes on beside the newer")
		}
		again, err := newer.Next()
		if err != nil || len(again) != 1 || !bytes.Equal(again[0], first[0]) {
			t.Errorf("the reconnect gets %d records, %v; want the same bytes", len(again), err)
		}
		newer.Wrote(nil)

		next := b.connect(p, "desk", b.attach(p, "desk"))
		if got := executes(records(t, next, nil)); len(got) != 0 {
			t.Errorf("a new lease gets the calls of the one before: %v", got)
		}
		if lost := b.undelivered(); len(lost) != 0 {
			t.Errorf("%v count as undelivered, but a connection took them", lost)
		}
		b.Settle("desk", "c1")
		if b.Delivered("desk", "c1") {
			t.Error("a settled call is remembered")
		}
	})
}

// What no connection took is told once, for each way in which that comes about.
func TestUndelivered(t *testing.T) {
	refused := errors.New("broken pipe")
	ways := map[string]func(t *testing.T, b *bed, p access.Principal, lease string, c *executor.Connection){
		"the lease is superseded before": func(t *testing.T, b *bed, p access.Principal, _ string, _ *executor.Connection) {
			b.deliver("c1")
			b.attach(p, "desk")
		},
		"the lease is superseded between issue and delivery": func(t *testing.T, b *bed, p access.Principal, _ string, _ *executor.Connection) {
			g, _ := b.issue("c1")
			b.attach(p, "desk")
			b.Deliver(g)
		},
		"the connection is lost and the lease ends": func(t *testing.T, b *bed, _ access.Principal, _ string, c *executor.Connection) {
			b.deliver("c1")
			c.Close()
			time.Sleep(executor.DefaultLease)
			synctest.Wait()
		},
		"the write fails": func(t *testing.T, b *bed, _ access.Principal, _ string, c *executor.Connection) {
			b.deliver("c1")
			_ = records(t, c, refused)
		},
		"the write fails after the lease was superseded": func(t *testing.T, b *bed, p access.Principal, _ string, c *executor.Connection) {
			b.deliver("c1")
			if _, err := c.Next(); err != nil {
				t.Fatal(err)
			}
			b.attach(p, "desk")
			c.Wrote(refused)
		},
		"the connection closes in the middle of writing": func(t *testing.T, b *bed, _ access.Principal, _ string, c *executor.Connection) {
			b.deliver("c1")
			if _, err := c.Next(); err != nil {
				t.Fatal(err)
			}
			c.Close()
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
				p := principal(t, "p")
				lease := b.attach(p, "desk")
				c := b.connect(p, "desk", lease)
				way(t, b, p, lease, c)
				c.Close()
				if got := b.undelivered(); !slices.Equal(got, []string{"c1"}) {
					t.Errorf("undelivered: %v, want c1 once", got)
				}
				if b.Delivered("desk", "c1") {
					t.Error("the call counts as taken, too")
				}
			})
		})
	}
}

// A write that ends well after the lease was superseded has handed the call over: the
// finish under the old lease is right.
func TestTakenWhileSuperseded(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		c := b.connect(p, "desk", b.attach(p, "desk"))
		b.deliver("c1")
		if _, err := c.Next(); err != nil {
			t.Fatal(err)
		}
		b.attach(p, "desk")
		c.Wrote(nil)
		if lost := b.undelivered(); len(lost) != 0 || !b.Delivered("desk", "c1") {
			t.Errorf("undelivered %v, delivered %v; want it delivered", lost, b.Delivered("desk", "c1"))
		}
	})
}

// A call waits for a reconnect while its lease holds.
func TestCallWaitsForReconnect(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		lease := b.attach(p, "desk")
		c := b.connect(p, "desk", lease)
		b.deliver("c1")
		c.Close()
		if _, ok := b.issue("c2"); ok {
			t.Error("a token is issued although no connection is there")
		}
		again := b.connect(p, "desk", lease)
		if got := executes(records(t, again, nil)); len(got) != 1 || got[0].ToolCallID != "c1" {
			t.Errorf("the reconnect gets %v, want c1", got)
		}
	})
}

// Who may be which executor is asked first, and a lease is its principal's alone (R34).
func TestAuthorisation(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p, q := principal(t, "p"), principal(t, "q")
		lease := b.attach(p, "desk")
		if _, err := b.Attach(t.Context(), p, "third"); !errors.Is(err, access.ErrForbidden) {
			t.Errorf("attach as another executor: %v, want ErrForbidden", err)
		}
		if _, err := b.Renew(q, "desk", lease); !errors.Is(err, executor.ErrWrongLease) {
			t.Errorf("heartbeat of somebody else: %v, want ErrWrongLease", err)
		}
		if _, err := b.Connect(q, "desk", lease); !errors.Is(err, executor.ErrWrongLease) {
			t.Errorf("stream of somebody else: %v, want ErrWrongLease", err)
		}
		if _, err := b.Connect(p, "other", lease); !errors.Is(err, executor.ErrLeaseExpired) {
			t.Errorf("the lease of another executor: %v, want ErrLeaseExpired", err)
		}
		if _, err := b.Attach(t.Context(), access.Owner(), "a b"); !errors.Is(err, executor.ErrInvalidID) {
			t.Errorf("an id with a space: %v, want ErrInvalidID", err)
		}
	})
}

func TestTooMany(t *testing.T) {
	inBed(t, executor.Options{Max: 1}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		b.attach(p, "desk")
		if _, err := b.Attach(t.Context(), p, "other"); !errors.Is(err, executor.ErrTooMany) {
			t.Errorf("one too many: %v, want ErrTooMany", err)
		}
		time.Sleep(executor.DefaultLease)
		synctest.Wait()
		b.attach(p, "other")
	})
}

// Each verdict of R33.
func TestJudge(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p, q := principal(t, "p"), principal(t, "q")
		lease := b.attach(p, "desk")
		c := b.connect(p, "desk", lease)
		g, _ := b.issue("c1")
		b.Deliver(g)
		e := executes(records(t, c, nil))[0]
		finish := func(change func(*narad.ClientToolFinish)) *narad.ClientToolFinish {
			f := &narad.ClientToolFinish{
				Lease: e.Lease, ExecutionToken: e.ExecutionToken, ToolCallID: "c1",
				Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{"n":1.10}`),
			}
			change(f)
			return f
		}
		same := finish(func(*narad.ClientToolFinish) {})
		spaced := finish(func(f *narad.ClientToolFinish) { f.Response = narad.Raw(`{ "n" : 1.10 }`) })
		other := finish(func(f *narad.ClientToolFinish) { f.Response = narad.Raw(`{"n":1.1}`) })
		failed := finish(func(f *narad.ClientToolFinish) { f.Outcome = narad.OutcomeError })
		guessed := finish(func(f *narad.ClientToolFinish) { f.ExecutionToken = "mxt_guess" })
		newLease := finish(func(f *narad.ClientToolFinish) { f.LeaseID = b.attach(p, "desk") })

		done, err := executor.Finished(g.Row, same)
		if err != nil {
			t.Fatal(err)
		}
		closed := func(why executor.Closing) journal.TokenRow {
			r, err := executor.Closed(g.Row, why)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		now, over := time.Now(), g.ExpiresAt
		for _, c := range []struct {
			name string
			row  journal.TokenRow
			p    access.Principal
			f    *narad.ClientToolFinish
			now  time.Time
			want executor.Verdict
		}{
			{"the first finish", g.Row, p, same, now, executor.Accept},
			{"the last moment", g.Row, p, same, over.Add(-time.Microsecond), executor.Accept},
			{"too late", g.Row, p, same, over, executor.Late},
			{"the same again", done, p, same, now, executor.Repeat},
			{"the same again, with white space", done, p, spaced, now, executor.Repeat},
			{"the same again, after the expiry", done, p, same, over.Add(time.Hour), executor.Repeat},
			{"another response", done, p, other, now, executor.Differs},
			{"another outcome", done, p, failed, now, executor.Differs},
			{"after a stop", closed(executor.Cancelled), p, same, now, executor.Differs},
			{"after it was not delivered", closed(executor.Undelivered), p, same, now, executor.Differs},
			{"after it expired", closed(executor.Expired), p, same, now, executor.Late},
			{"a guessed token", g.Row, p, guessed, now, executor.Foreign},
			{"a new lease claims the token", g.Row, p, newLease, now, executor.Foreign},
			{"somebody else", g.Row, q, same, now, executor.Foreign},
			{"somebody else, of a call that ended", done, q, same, now, executor.Foreign},
		} {
			got, err := executor.Judge(c.row, c.p, c.f, c.now)
			if err != nil || got != c.want {
				t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
			}
		}
		if _, err := executor.Closed(done, executor.Expired); err == nil {
			t.Error("a finished token is closed once more")
		}
	})
}

// No lease and no token is stored, and none stands in an error.
func TestSecretsAreNotStored(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		lease := b.attach(p, "desk")
		c := b.connect(p, "desk", lease)
		g, _ := b.issue("c1")
		b.Deliver(g)
		e := executes(records(t, c, nil))[0]
		stored := fmt.Appendf(nil, "%s", g.Row.Value)
		for r, err := range journal.Each[journal.LeaseRow](t.Context(), b.store, journal.Leases{}, noDamage(t)) {
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, r.Value...)
		}
		_, wrong := b.Renew(p, "other", lease)
		_, wrong2 := b.Connect(principal(t, "q"), "desk", lease)
		stored = fmt.Appendf(stored, "%v %v", wrong, wrong2)
		for _, secret := range []string{lease, e.ExecutionToken} {
			if len(secret) < 40 || bytes.Contains(stored, []byte(secret)) {
				t.Errorf("a secret is short or stands where it must not")
			}
		}
	})
}

// Whatever attaches, connects, breaks and reconnects at once: each call that was
// delivered is taken under its own lease or told as undelivered once, never both.
func TestEachCallHasOneFate(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := principal(t, "p")
		var mu sync.Mutex
		taken, issued := map[string]string{}, map[string]bool{}
		lease := b.attach(p, "desk")
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { // attaches anew now and then
			r := rand.New(rand.NewPCG(seed, 1))
			for ctx.Err() == nil {
				time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
				a, err := b.Attach(ctx, p, "desk")
				if err != nil {
					return
				}
				mu.Lock()
				lease = a.LeaseID
				mu.Unlock()
			}
		})
		for i := range 4 { // connections that break
			work.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(10+i)))
				for ctx.Err() == nil {
					time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
					mu.Lock()
					l := lease
					mu.Unlock()
					c, err := b.Connect(p, "desk", l)
					if err != nil {
						continue
					}
					for range r.IntN(6) {
						list, err := c.Next()
						if err != nil {
							break
						}
						time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond) // the write
						if r.IntN(4) == 0 {
							c.Wrote(errors.New("cut"))
							break
						}
						mu.Lock()
						for _, data := range list {
							rec, err := narad.DecodeStrict(data)
							if err != nil {
								t.Errorf("decode: %v", err)
							}
							if e, ok := rec.(*narad.ClientToolExecute); ok {
								if before := taken[e.ToolCallID]; before != "" && before != e.LeaseID {
									t.Errorf("%s went to two leases", e.ToolCallID)
								}
								taken[e.ToolCallID] = e.LeaseID
							}
						}
						mu.Unlock()
						c.Wrote(nil)
						time.Sleep(time.Millisecond)
					}
					c.Close()
				}
			})
		}
		for i := range 2_000 {
			id := fmt.Sprintf("c%d", i)
			if g, ok := b.issue(id); ok {
				issued[id] = true
				if i%7 == 0 {
					time.Sleep(time.Millisecond)
				}
				b.Deliver(g)
			}
			if i%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		cancel()
		work.Wait()
		time.Sleep(2 * executor.DefaultLease)
		synctest.Wait()
		lost := map[string]int{}
		for _, id := range b.undelivered() {
			lost[id]++
		}
		for id := range issued {
			switch {
			case lost[id] > 1:
				t.Errorf("%s was told as undelivered %d times", id, lost[id])
			case lost[id] == 0 && !b.Delivered("desk", id):
				t.Errorf("%s has no fate", id)
			case lost[id] == 1 && b.Delivered("desk", id):
				t.Errorf("%s has two fates", id)
			}
		}
		t.Logf("%d issued, %d undelivered", len(issued), len(lost))
		if len(issued) < 100 || len(lost) == 0 {
			t.Errorf("%d issued and %d undelivered: the test shows little", len(issued), len(lost))
		}
	})
}

// noDamage fails a test whose list has a damaged row.
func noDamage(t *testing.T) func(journal.Damage) {
	return func(d journal.Damage) { t.Error(d.Err()) }
}

// A lease that cannot be read costs its executor an attach, and the others nothing.
func TestDamagedLease(t *testing.T) {
	inBed(t, executor.Options{}, func(t *testing.T, b *bed) {
		p := access.Owner()
		lost, whole := b.attach(p, "lost"), b.attach(p, "whole")
		b.attach(p, "odd")
		b.Close()
		_, err := b.store.Append(t.Context(), journal.Batch{Session: journal.RowStream, Changes: []journal.Change{
			journal.Put{Row: journal.LeaseRow{Executor: "odd", Value: []byte("no lease")}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		b.store.(*journal.Memory).Damage(journal.LeaseKey("lost"))
		var told []string
		b = newBed(t, b.store, executor.Options{Damaged: func(d journal.Damage) { told = append(told, d.Key.ID) }})
		if slices.Sort(told); !slices.Equal(told, []string{"lost", "odd"}) {
			t.Errorf("told of %q, want lost and odd", told)
		}
		if _, err := b.Connect(p, "whole", whole); err != nil {
			t.Errorf("the whole lease: %v", err)
		}
		if _, err := b.Connect(p, "lost", lost); !errors.Is(err, executor.ErrLeaseExpired) {
			t.Errorf("the lost lease: %v, want ErrLeaseExpired", err)
		}
		if _, err := b.Connect(p, "lost", b.attach(p, "lost")); err != nil {
			t.Errorf("attached anew: %v", err)
		}
	})
}
