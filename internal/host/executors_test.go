package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// calls is an agent that calls the tools of the run's executor, one after another, and
// goes on after a restart with what it finds.
func calls(names ...string) acts {
	return acts{resumes: true, run: func(ctx context.Context, h agent.Handle) agent.Ending {
		done := map[string]string{} // by name: "" while it is open
		for _, f := range h.Info().Past {
			if s, ok := f.(*narad.ToolCallStarted); ok {
				done[s.ToolName] = s.ToolCallID
			}
		}
		for _, name := range names {
			var r agent.ToolResult
			var err error
			if id := done[name]; id != "" {
				r, err = h.AwaitClient(ctx, id)
			} else {
				r, err = h.CallClient(ctx, agent.Tool{Name: name, Args: narad.Raw(`{"n":1.10}`)}, nil)
			}
			if err != nil {
				return agent.Ending{Outcome: agent.Cancelled}
			}
			_ = h.Text(ctx, fmt.Sprintf("%s: %s %s %s. ", name, r.Outcome, r.Response, r.Code))
		}
		return agent.Ending{StopReason: "completed"}
	}}
}

// desk is the executor of a session, as its client sees it.
type desk struct {
	s     *stage
	id    string
	lease string
	conn  *executor.Connection
}

func (s *stage) bound(id string) {
	s.t.Helper()
	c := create()
	c.Payload.ClientExecutorID = "desk"
	s.do(access.CreateSession, id, c, "")
}

func (s *stage) attach() *desk {
	s.t.Helper()
	return s.attachAs("desk")
}

func (s *stage) attachAs(id string) *desk {
	s.t.Helper()
	a, err := s.host.AttachExecutor(s.t.Context(), access.Owner(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	d := &desk{s: s, id: id, lease: a.LeaseID}
	d.connect()
	return d
}

func (d *desk) connect() {
	d.s.t.Helper()
	c, err := d.s.host.ConnectExecutor(access.Owner(), d.id, d.lease)
	if err != nil {
		d.s.t.Fatal(err)
	}
	d.conn = c
	d.s.t.Cleanup(c.Close)
}

// take reads the calls that have come.
func (d *desk) take() []*narad.ClientToolExecute {
	d.s.t.Helper()
	synctest.Wait()
	list, err := d.conn.Next()
	if err != nil {
		d.s.t.Fatalf("next: %v", err)
	}
	d.conn.Wrote(nil)
	var out []*narad.ClientToolExecute
	for _, data := range list {
		r, err := narad.DecodeStrict(data)
		if err != nil {
			d.s.t.Fatal(err)
		}
		if e, ok := r.(*narad.ClientToolExecute); ok {
			out = append(out, e)
		}
	}
	return out
}

func (d *desk) one() *narad.ClientToolExecute {
	d.s.t.Helper()
	list := d.take()
	if len(list) != 1 {
		d.s.t.Fatalf("%d calls came, want one; %s", len(list), d.s.story("s"))
	}
	return list[0]
}

func ended(e *narad.ClientToolExecute, response string) *narad.ClientToolFinish {
	return &narad.ClientToolFinish{
		Lease: e.Lease, ExecutionToken: e.ExecutionToken, ToolCallID: e.ToolCallID,
		Outcome: narad.OutcomeSuccess, Response: narad.Raw(response),
	}
}

func (s *stage) finish(f *narad.ClientToolFinish, want decide.Status) {
	s.t.Helper()
	a, err := s.host.FinishClientTool(s.t.Context(), access.Owner(), f)
	if err != nil || a.Status != want {
		s.t.Errorf("finish: %+v, %v; want %s", a, err, want)
	}
	synctest.Wait()
}

// tool returns the end of the only call, or nil.
func (s *stage) toolEnd() *narad.ToolCallFinished {
	s.t.Helper()
	var end *narad.ToolCallFinished
	for _, f := range s.facts("s") {
		if f, ok := f.(*narad.ToolCallFinished); ok {
			if end != nil {
				s.t.Fatal("two calls have ended")
			}
			end = f
		}
	}
	return end
}

func inHost(t *testing.T, test func(t *testing.T, j journal.Journal)) {
	synctest.Test(t, func(t *testing.T) { test(t, memory(t, journal.Options{})) })
}

const (
	said  = "message.text.started message.text.delta message.text.completed run.finished"
	away  = "tool.call.started run.paused"
	comes = "run.resumed"
)

// §11.3: the executor gets the call exactly as the start tells it, and its finish is the
// call's end.
func TestClientTool(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		e := d.one()
		if e.ToolName != "open.file" || string(e.Args) != `{"n":1.10}` || e.LeaseID != d.lease {
			t.Errorf("got %+v, want the call as it was started", e)
		}
		s.finish(ended(e, `{"n":1.10}`), decide.Accepted)
		end := s.toolEnd()
		if end == nil || end.Outcome != narad.OutcomeSuccess || string(end.Response) != `{"n":1.10}` {
			t.Errorf("the call ended as %+v, want the finish word for word", end)
		}
		s.finish(ended(e, `{"n":1.10}`), decide.AlreadyApplied)
		s.finish(ended(e, `{"n":1.1}`), decide.Conflict)
		if got, want := s.story("s"), strings.Join([]string{created, begun, "tool.call.started tool.call.finished", said}, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// §11.2: a run whose executor is away waits for it, and goes on when it comes, whoever
// restarts meanwhile.
func TestClientToolWaitsForItsExecutor(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			inHost(t, func(t *testing.T, j journal.Journal) {
				s := open(t, j, calls("open.file"), host.Options{})
				s.bound("s")
				s.say("s", "go")
				synctest.Wait()
				if restart {
					s.close()
					s = open(t, j, calls("open.file"), host.Options{})
				}
				defer s.close()
				if got, want := s.story("s"), strings.Join([]string{created, begun, away}, " "); got != want {
					t.Fatalf("got  %s\nwant %s", got, want)
				}
				e := s.attach().one()
				s.finish(ended(e, `1`), decide.Accepted)
				if got, want := s.story("s"), strings.Join([]string{created, begun, away, comes, "tool.call.finished", said}, " "); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// Field case 42: a finish under the lease that a new one has superseded is right, and the
// new one cannot claim it. Also after a restart of the host, which sends nothing again.
func TestFinishUnderAnOldLease(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			inHost(t, func(t *testing.T, j journal.Journal) {
				s := open(t, j, calls("open.file"), host.Options{})
				s.bound("s")
				d := s.attach()
				s.say("s", "go")
				e := d.one()
				if restart {
					s.close()
					s = open(t, j, calls("open.file"), host.Options{})
				}
				defer s.close()
				later := s.attach()
				if again := later.take(); len(again) != 0 {
					t.Errorf("a new lease gets the call: %v", again)
				}
				claimed := ended(e, `1`)
				claimed.LeaseID = later.lease
				s.finish(claimed, decide.Forbidden)
				s.finish(ended(e, `1`), decide.Accepted)
				s.finish(ended(e, `1`), decide.AlreadyApplied)
				if end := s.toolEnd(); end == nil || string(end.Response) != `1` {
					t.Errorf("the call ended as %+v", end)
				}
			})
		})
	}
}

// Field case 43: an executor that accepts and vanishes costs the token's time and no
// more, also when the host is down meanwhile.
func TestClientToolExpires(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, accepted := range []bool{false, true} {
			t.Run(fmt.Sprintf("restart=%v accepted=%v", restart, accepted), func(t *testing.T) {
				inHost(t, func(t *testing.T, j journal.Journal) {
					o := host.Options{Executors: executor.Options{TokenLife: 5 * time.Minute}}
					s := open(t, j, calls("open.file"), o)
					s.bound("s")
					var e *narad.ClientToolExecute
					want := decide.CodeClientUnavailable
					if accepted {
						d := s.attach()
						s.say("s", "go")
						e = d.one()
						d.conn.Close()
						want = decide.CodeExecutionExpired
					} else {
						s.say("s", "go")
						synctest.Wait()
					}
					pass(time.Minute)
					if restart {
						s.close()
						pass(time.Hour)
						s = open(t, j, calls("open.file"), o)
					} else {
						pass(5 * time.Minute)
					}
					defer s.close()
					synctest.Wait()
					end := s.toolEnd()
					if end == nil || end.Code != want || end.Outcome != narad.OutcomeError {
						t.Errorf("the call ended as %+v, want an error %s", end, want)
					}
					if accepted {
						s.finish(ended(e, `1`), decide.Expired)
					}
					if sum := s.summary("s"); sum.State != "idle" {
						t.Errorf("the session is %s: %s", sum.State, s.story("s"))
					}
				})
			})
		}
	}
}

// §11.3 rule 11: a call that its connection does not take ends at once.
func TestClientToolIsNotDelivered(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		synctest.Wait()
		if _, err := d.conn.Next(); err != nil {
			t.Fatal(err)
		}
		d.conn.Wrote(errors.New("broken pipe"))
		synctest.Wait()
		if end := s.toolEnd(); end == nil || end.Code != decide.CodeDeliveryFailed {
			t.Errorf("the call ended as %+v, want delivery_failed", end)
		}
	})
}

// R32: a host may be told not to wait.
func TestClientToolFailsAtOnce(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{FailAbsent: true})
		defer s.close()
		s.bound("s")
		s.say("s", "go")
		synctest.Wait()
		if end := s.toolEnd(); end == nil || end.Code != decide.CodeClientUnavailable {
			t.Errorf("the call ended as %+v, want client_unavailable", end)
		}
	})
}

// A stop ends the call as cancelled, and what the executor says later changes nothing,
// also after a restart.
func TestStopEndsClientTool(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{})
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		e := d.one()
		s.do(access.StopRun, "s", decide.Stop{}, "")
		synctest.Wait()
		if end := s.toolEnd(); end == nil || end.Outcome != narad.OutcomeCancelled {
			t.Errorf("the call ended as %+v, want cancelled", end)
		}
		s.finish(ended(e, `1`), decide.Conflict)
		s.close()
		s = open(t, j, calls("open.file"), host.Options{})
		defer s.close()
		s.finish(ended(e, `1`), decide.Conflict)
		if s.toolEnd() == nil {
			t.Error("the call has no end")
		}
	})
}

// Guessed, foreign and misdirected finishes change nothing (R33).
func TestForeignFinishes(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file", "close.file"), host.Options{})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		first := d.one()
		s.finish(ended(first, `1`), decide.Accepted)
		second := d.one()
		for name, change := range map[string]func(*narad.ClientToolFinish){
			"a guessed token":        func(f *narad.ClientToolFinish) { f.ExecutionToken = "mxt_guess" },
			"an empty token":         func(f *narad.ClientToolFinish) { f.ExecutionToken = "" },
			"the token of another":   func(f *narad.ClientToolFinish) { f.ExecutionToken = first.ExecutionToken },
			"an unknown call":        func(f *narad.ClientToolFinish) { f.ToolCallID = "nothing" },
			"a call without an id":   func(f *narad.ClientToolFinish) { f.ToolCallID = "" },
			"another executor":       func(f *narad.ClientToolFinish) { f.ClientExecutorID = "other" },
			"a lease that is no one": func(f *narad.ClientToolFinish) { f.LeaseID = "mxl_none" },
		} {
			f := ended(second, `1`)
			change(f)
			if a, err := s.host.FinishClientTool(t.Context(), access.Owner(), f); err != nil || a.Status != decide.Forbidden {
				t.Errorf("%s: %+v, %v; want forbidden", name, a, err)
			}
		}
		stranger, err := access.NewPrincipal("q", "q", access.Grant{Roles: []access.Role{access.Execute}, Executors: []string{"desk"}})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := s.host.FinishClientTool(t.Context(), stranger, ended(second, `1`)); err != nil || a.Status != decide.Forbidden {
			t.Errorf("another principal: %+v, %v; want forbidden", a, err)
		}
		none, err := access.NewPrincipal("r", "r", access.Grant{Roles: []access.Role{access.Observe}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.host.FinishClientTool(t.Context(), none, ended(second, `1`)); !errors.Is(err, access.ErrForbidden) {
			t.Errorf("somebody without the role: %v, want ErrForbidden", err)
		}
		s.finish(ended(second, `1`), decide.Accepted)
	})
}

// R7: a response that no fact can hold is refused, and the token stays open.
func TestFinishTooLarge(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		e := d.one()
		large := ended(e, `"`+strings.Repeat("x", 600_000)+`"`)
		if a, err := s.host.FinishClientTool(t.Context(), access.Owner(), large); err != nil || a.Err != decide.RefusedTooLarge {
			t.Errorf("got %+v, %v; want it refused as too large", a, err)
		}
		s.finish(ended(e, `1`), decide.Accepted)
	})
}

// No lease and no token is in any fact, and the store holds neither.
func TestExecutionSecretsStayOutOfTheJournal(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		e := d.one()
		s.finish(ended(e, `1`), decide.Accepted)
		for record, err := range journal.All(t.Context(), j, "s", 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{d.lease, e.ExecutionToken} {
				if strings.Contains(string(record.Bytes), secret) {
					t.Errorf("fact %d holds a secret", record.Sequence)
				}
			}
		}
		for row, err := range journal.Each[journal.TokenRow](t.Context(), j, journal.Tokens{Executor: "desk"}, noDamage(t)) {
			if err != nil || strings.Contains(string(row.Value), e.ExecutionToken) || strings.Contains(string(row.Value), d.lease) {
				t.Errorf("the row of the token holds a secret, or cannot be read: %v", err)
			}
		}
	})
}

// A record that a pause forbids is made when the run goes on.
func TestPausedRunLetsRecordsWait(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		both := acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			done := make(chan error, 1)
			go func() {
				_, err := h.CallClient(ctx, agent.Tool{Name: "open.file"}, nil)
				done <- err
			}()
			pass(time.Second) // the run is paused by then
			id, err := h.StartTool(ctx, agent.Tool{Name: "own"})
			if err == nil {
				err = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess})
			}
			if err = errors.Join(err, <-done); err != nil {
				return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
			}
			return agent.Ending{StopReason: "completed"}
		}}
		s := open(t, j, both, host.Options{})
		defer s.close()
		s.bound("s")
		s.say("s", "go")
		pass(time.Minute)
		d := s.attach()
		s.finish(ended(d.one(), `1`), decide.Accepted)
		want := strings.Join([]string{
			created, begun, away, comes, "tool.call.started tool.call.finished", "tool.call.finished run.finished",
		}, " ")
		if got := s.story("s"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// An executor whose token is limited to some workspaces gets the calls of no other, also
// after a restart: who may order runs in one cannot use the machines of another (§8, §10).
func TestExecutorOfAnotherWorkspace(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		limited, err := access.NewPrincipal("x", "x", access.Grant{
			Roles: []access.Role{access.Execute}, Executors: []string{"desk"}, Workspaces: []string{"theirs"},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, j, calls("open.file"), host.Options{})
		s.bound("s1")
		theirs := create()
		theirs.Payload.ClientExecutorID, theirs.Payload.WorkspaceID = "desk", "theirs"
		s.do(access.CreateSession, "s2", theirs, "")
		a, err := s.host.AttachExecutor(t.Context(), limited, "desk")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // before a restart, and after it
			conn, err := s.host.ConnectExecutor(limited, "desk", a.LeaseID)
			if err != nil {
				t.Fatal(err)
			}
			d := &desk{s: s, id: "desk", lease: a.LeaseID, conn: conn}
			s.say("s1", "go")
			synctest.Wait()
			if got := d.take(); len(got) != 0 {
				t.Fatalf("a call of another workspace came: %+v", got[0])
			}
			if story := s.story("s1"); !strings.HasSuffix(story, "run.paused") {
				t.Errorf("the session of the other workspace: %s, want it to wait", story)
			}
			s.do(access.StopRun, "s1", decide.Stop{}, "")
			s.say("s2", "go")
			d.one()
			s.do(access.StopRun, "s2", decide.Stop{}, "")
			conn.Close()
			s.close()
			s = open(t, j, calls("open.file"), host.Options{})
		}
		s.close()
	})
}
