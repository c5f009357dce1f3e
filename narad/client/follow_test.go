package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
	"github.com/mahati-host/mahati/narad/session"
)

var turn = int64(clienttest.TurnLength)

// stateOf is a follower's state as JSON.
func stateOf(t *testing.T, f *client.Follower) string {
	t.Helper()
	state, ok := f.Detach()
	if !ok {
		t.Fatal("no state to detach")
	}
	return string(state.SnapshotJSON())
}

func TestFollowShowsTheBytesOfEveryFact(t *testing.T) {
	bubble(t, clienttest.Options{PageSize: 4}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Story(2)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if live(u, s) {
				h.Append("s", clienttest.Turn(3)...)
			}
			return at(3*turn)(u, s)
		})
		wantRun(t, s.sequences, 1, 3*turn)
		for i, raw := range h.Facts("s") {
			if s.raws[i] != string(raw) {
				t.Errorf("fact %d: got %s, want %s", i+1, s.raws[i], raw)
			}
		}
		want := []client.Phase{client.Connecting, client.Replaying, client.Live}
		if !slices.Equal(s.phases, want) {
			t.Errorf("phases %v, want %v", s.phases, want)
		}
		if diff := cmp.Diff(h.Snapshot("s"), stateOf(t, f)); diff != "" {
			t.Errorf("the client's state is not the host's (-host +client):\n%s", diff)
		}
	})
}

func TestTheLoopBodySeesTheStateOfItsUpdate(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		follow(t.Context(), f, func(u client.Update, s *seen) bool {
			switch r := u.Record.(type) {
			case *narad.RunPaused:
				run, ok := f.Run("run-1")
				i, asked := f.Interrupt("ask-1")
				if !ok || run.State != session.Paused || !asked || !i.Open || f.Last() != r.SessionSequence {
					t.Errorf("at the pause: run %+v, interrupt %+v, last %d", run, i, f.Last())
				}
			case *narad.ToolCallFinished:
				if tool, ok := f.Tool("call-1"); !ok || tool.Open || f.ActiveRootRunID() != "run-1" {
					t.Errorf("at the finish: tool %+v, active %q", tool, f.ActiveRootRunID())
				}
			}
			return live(u, s)
		})
		if m := f.Messages(); len(m) != 2 || m[1].Content != "I will now." || len(f.Snapshot().Runs) != 1 || f.ResyncRequired() {
			t.Errorf("messages %+v", m)
		}
	})
}

// Two clients that come from different cursors reduce to the same state.
func TestClientsFromDifferentCursorsHaveTheSameState(t *testing.T) {
	bubble(t, clienttest.Options{PageSize: 7}, func(t *testing.T, h *clienttest.Host) {
		c := dial(t, h, client.Options{})
		h.Append("s", clienttest.Turn(1)...)
		early := c.Follow("s", client.FollowOptions{})
		follow(t.Context(), early, live) // leaves in the middle of the story
		h.Append("s", clienttest.Story(3)[turn:]...)
		kept, ok := early.Detach()
		if !ok {
			t.Fatal("no state")
		}
		for name, f := range map[string]*client.Follower{
			"from the first fact":     c.Follow("s", client.FollowOptions{}),
			"with a state":            c.Follow("s", client.FollowOptions{State: kept, Epoch: early.Position().Epoch}),
			"shown from the middle":   c.Follow("s", client.FollowOptions{After: turn + 3}),
			"with the messages first": c.Follow("s", client.FollowOptions{Messages: true}),
		} {
			from := int64(1)
			switch name {
			case "with a state":
				from = turn + 1
			case "shown from the middle":
				from = turn + 4
			}
			s := follow(t.Context(), f, func(u client.Update, s *seen) bool { return f.Last() == 3*turn && f.Phase() == client.Live })
			wantRun(t, s.sequences, from, 3*turn)
			got := f.Snapshot()
			got.Covers = 0 // how the transcript came, not what it is
			if diff := cmp.Diff(text(t, snapshotOf(h, "s")), text(t, got)); diff != "" {
				t.Errorf("%s (-host +client):\n%s", name, diff)
			}
		}
	})
}

func text(t *testing.T, s session.Snapshot) string {
	t.Helper()
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func snapshotOf(h *clienttest.Host, id string) session.Snapshot {
	s := session.New(session.Options{SessionID: id})
	for _, raw := range h.Facts(id) {
		s.ApplyJSON(raw, false)
	}
	return s.Snapshot()
}

func TestFollowGoesOnWhereTheLoopWasLeft(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		for from := int64(1); from <= turn; from += 2 {
			s := follow(t.Context(), f, at(min(from+1, turn)))
			wantRun(t, s.sequences, from, min(from+1, turn))
		}
	})
}

func TestFollowWithoutStateReadsNothingBefore(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Story(2)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{NoState: true, After: turn + 2})
		s := follow(t.Context(), f, at(2*turn))
		wantRun(t, s.sequences, turn+3, 2*turn)
		if got := afters(h, "/events"); got != "15" {
			t.Errorf("history was asked after %q, want 15", got)
		}
		if got := f.Position(); got != (client.Position{SessionID: "s", Sequence: 2 * turn, Epoch: "epoch-1"}) {
			t.Errorf("position %+v", got)
		}
		if _, ok := f.Detach(); ok || f.Messages() != nil {
			t.Error("there is a state")
		}
	})
}

func TestMessagesComeFirst(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{Messages: true})
		var first narad.Record
		follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if first == nil && u.Record != nil {
				first = u.Record
				if m := f.Messages(); len(m) != 2 || f.Last() != 0 {
					t.Errorf("after the transcript: %d messages, cursor %d", len(m), f.Last())
				}
			}
			return live(u, s)
		})
		if _, ok := first.(*narad.MessagesSnapshot); !ok {
			t.Errorf("the first record is %T", first)
		}
		if q := queriesOf(h, "/stream")[0]; !strings.Contains(q, "hydrate=messages") || !strings.Contains(q, "afterSessionSequence=0") {
			t.Errorf("stream query %q", q)
		}
		if n := len(h.Requests("/events")); n != 0 {
			t.Errorf("history was asked %d times for what the stream brings", n)
		}
	})
}

func TestWatchEventsComeAfterTheirFacts(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{Watch: true})
		follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if live(u, s) {
				h.Append("s", clienttest.Turn(2)...)
			}
			r, ok := u.Record.(*narad.Revision)
			if ok && (r.Revision != f.Last() || u.Result.Kind != session.Applied) {
				t.Errorf("revision %d at cursor %d: %+v", r.Revision, f.Last(), u.Result)
			}
			return ok
		})
	})
}

func TestUnclaimedFactsTakeTheirPlace(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{Profiles: narad.Progress.IDs()})
		skipped := 0
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if _, ok := u.Record.(*narad.Skipped); ok {
				skipped++
				if u.Result.Kind != session.Ignored || u.Result.Code != session.ProfileNotClaimed {
					t.Errorf("skipped event: %+v", u.Result)
				}
			}
			return live(u, s)
		})
		wantRun(t, s.sequences, 1, turn)
		if skipped != 5 || len(f.Messages()) != 0 {
			t.Errorf("%d skipped, %d messages; want the five facts of the conversation skipped", skipped, len(f.Messages()))
		}
	})
}

func TestSilentHostIsLeft(t *testing.T) {
	bubble(t, clienttest.Options{Heartbeat: 10 * time.Second}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		var frozen time.Time
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			switch {
			case live(u, s) && frozen.IsZero():
				pass(95 * time.Second) // heartbeats alone keep it; a slow body does not break it
				frozen = time.Now()
				h.Freeze(true)
			case u.Err != nil:
				h.Freeze(false)
				h.Append("s", clienttest.Turn(2)...)
			}
			return at(2*turn)(u, s)
		})
		wantRun(t, s.sequences, 1, 2*turn)
		if len(s.broken) != 1 || s.broken[0].Code != client.CodeStreamSilent {
			t.Fatalf("broken by %v, want stream_silent once", s.broken)
		}
		if took := time.Since(frozen); took < 25*time.Second || took > 31*time.Second {
			t.Errorf("left after %v, want about three heartbeats of 10 s", took)
		}
	})
}

func TestHeartbeatsKeepAQuietStream(t *testing.T) {
	bubble(t, clienttest.Options{Heartbeat: time.Second}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := follow(ctx, dial(t, h, client.Options{}).Follow("s", client.FollowOptions{}), never)
		wantCode(t, s.err, client.CodeCanceled, client.GiveUp)
		if len(s.broken) != 0 || !errors.Is(s.err, context.DeadlineExceeded) {
			t.Errorf("broken by %v, ended by %v", s.broken, s.err)
		}
	})
}

func TestReconnectBacksOffAndObeysTheHost(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		h.Refuse(3, "/attach", http.StatusBadGateway, "bad_gateway", "")
		h.Refuse(1, "/attach", http.StatusServiceUnavailable, "recovering", "9")
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		var waits []time.Duration
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if u.Phase == client.Waiting {
				waits = append(waits, u.Wait)
			}
			return live(u, s)
		})
		want := []time.Duration{9 * time.Second, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}
		if !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		wantRun(t, s.sequences, 1, turn)
	})
}

func TestExponentialIsBoundedAndSpread(t *testing.T) {
	low := client.Exponential(100*time.Millisecond, time.Second, func() float64 { return 0 })
	high := client.Exponential(100*time.Millisecond, time.Second, func() float64 { return 0.999 })
	for attempt, whole := range map[int]time.Duration{1: 100, 2: 200, 4: 800, 5: 1000, 1000: 1000} {
		whole *= time.Millisecond
		if l, h := low(attempt), high(attempt); l != whole/2 || h <= l || h >= whole {
			t.Errorf("attempt %d: from %v to %v, want from half of %v to below it", attempt, l, h, whole)
		}
	}
}

func TestAttemptsMayBeBounded(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Refuse(99, "/attach", http.StatusBadGateway, "bad_gateway", "")
		s := follow(t.Context(), dial(t, h, client.Options{}).Follow("s", client.FollowOptions{MaxAttempts: 3}), never)
		wantCode(t, s.err, "bad_gateway", client.Retry)
		if n := len(h.Requests("/attach")); n != 3 || len(s.broken) != 2 {
			t.Errorf("%d attempts, %d waits; want 3 and 2", n, len(s.broken))
		}
	})
}

func TestRefusalsEndFollowing(t *testing.T) {
	for status, code := range map[int]client.Code{401: "unauthenticated", 403: "forbidden", 404: "not_found", 410: "gone", 409: "profiles_required"} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			h.Refuse(1, "/attach", status, string(code), "")
			s := follow(t.Context(), dial(t, h, client.Options{Token: secret}).Follow("s", client.FollowOptions{}), never)
			wantCode(t, s.err, code, client.GiveUp)
		})
	}
}

func TestAnotherStoreAsksForAResync(t *testing.T) {
	for name, change := range map[string]func(h *clienttest.Host){
		"another epoch": func(h *clienttest.Host) { h.SetEpoch("epoch-2") },
		"fewer facts":   func(h *clienttest.Host) { h.Drop("s"); h.Put("s") },
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			h.Append("s", clienttest.Turn(1)...)
			f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
			s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
				if live(u, s) {
					change(h)
					h.CutStreams()
				}
				return false
			})
			want := map[string]client.Code{"another epoch": client.CodeEpochChanged, "fewer facts": client.CodeCursorAhead}[name]
			wantCode(t, s.err, want, client.Resync)
		})
	}
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{NoState: true, After: 3, Epoch: "epoch-0"})
		wantCode(t, follow(t.Context(), f, never).err, client.CodeEpochChanged, client.Resync)
	})
}

func TestHoleInHistoryAsksForAResync(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 2)
		started(h, 4, 5)
		s := follow(t.Context(), dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{}), never)
		wantRun(t, s.sequences, 1, 2)
		wantCode(t, s.err, client.CodeGap, client.Resync)
	})
}

func TestHoleThatHistoryCannotFillYetIsAskedForAgain(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		jumps := make(chan string)
		jumpingStream(h, jumps)
		go func() {
			jumps <- frame(3)
			jumps <- frame(4)
			pass(20 * time.Millisecond) // history lags behind the stream
			started(h, 2, 4)
		}()
		s := follow(t.Context(), dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{}), at(4))
		wantRun(t, s.sequences, 1, 4)
		if len(s.broken) > 0 {
			t.Errorf("broken by %v", s.broken)
		}
	})
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		streams(h, frame(3)) // and history never has 2
		s := follow(t.Context(), dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{}), never)
		wantRun(t, s.sequences, 1, 1)
		wantCode(t, s.err, client.CodeGap, client.Resync)
		if n := len(h.Requests("/events")); n != 6 {
			t.Errorf("history was asked %d times, want once for the boundary and five times for the hole", n)
		}
	})
}

func TestFactsThatCannotStandEndFollowing(t *testing.T) {
	twice := strings.Replace(clienttest.Started(sessionID, 2), "run-2", "run-1", 2)
	conflict := strings.Replace(clienttest.Started(sessionID, 2), "evt-2", "evt-1", 1)
	unknown := strings.Replace(clienttest.Started(sessionID, 2), "run.started", "run.exploded", 1)
	for record, want := range map[string]struct {
		code   client.Code
		action client.Action
	}{
		twice:    {client.CodeRecordRefused, client.GiveUp},
		conflict: {client.CodeEventConflict, client.Resync},
		unknown:  {client.CodeRecordRefused, client.GiveUp},
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			h.Put(sessionID, clienttest.Started(sessionID, 1), record)
			f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
			s := follow(t.Context(), f, never)
			wantCode(t, s.err, want.code, want.action)
			if f.Last() != 1 {
				t.Errorf("the cursor went to %d", f.Last())
			}
		})
	}
}

func TestCutFrameIsReadFromHistory(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		parts := make(chan string)
		jumpingStream(h, parts)
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if live(u, s) && f.Last() == 1 {
				started(h, 2, 2)
				parts <- strings.Replace(frame(2), "}\n\n", "\n\n", 1)
			}
			return at(2)(u, s)
		})
		wantRun(t, s.sequences, 1, 2)
		if len(s.broken) != 1 || s.broken[0].Code != client.CodeInvalidFrame {
			t.Errorf("broken by %v, want invalid_frame once", s.broken)
		}
	})
}

// While history is read, the stream is not: more than the buffer holds may happen
// meanwhile, and nothing is lost.
func TestBusySessionDoesNotOverrunAClientThatReplays(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 10)
		h.Wrap(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/events") {
					next.ServeHTTP(w, r)
					started(h, 11, 600)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{MaxPending: 4})
		s := follow(t.Context(), f, at(600))
		wantRun(t, s.sequences, 1, 600)
		if len(s.broken) != 0 {
			t.Errorf("broken by %v", s.broken)
		}
	})
}

func TestForeignAndRepeatedRecordsAreNotShown(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 2)
		streams(h, frame(1)+frame(2)+"id: evt-3\ndata: "+clienttest.Started("other", 3)+"\n\n"+frame(3)+frame(3)+frame(4))
		for _, stateless := range []bool{false, true} {
			f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{NoState: stateless})
			wantRun(t, follow(t.Context(), f, at(4)).sequences, 1, 4)
		}
	})
}

func TestOneLoopAtATime(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Turn(1)...)
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if _, ok := f.Detach(); ok {
				t.Error("the state was handed out of a loop")
			}
			wantCode(t, follow(t.Context(), f, never).err, client.CodeInvalidRequest, client.GiveUp)
			return live(u, s)
		})
		wantRun(t, s.sequences, 1, turn)
		if f.Phase() != client.Idle {
			t.Errorf("phase %s after the loop", f.Phase())
		}
	})
}

// Anybody may ask a follower anything while it follows; the race detector is the
// judge. The state delta leaves work for whoever asks first.
func TestFollowerAnswersOthersWhileItFollows(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", &narad.StateSnapshot{Kind: narad.TypeStateSnapshot, Scope: narad.ScopeSession, Revision: 1, State: narad.Raw(`{"a":{"n":0}}`)})
		f := dial(t, h, client.Options{}).Follow("s", client.FollowOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		for range 4 {
			others.Go(func() {
				for ctx.Err() == nil {
					_ = f.Snapshot()
					_, _ = f.Run("run-1")
					_ = f.Position()
					pass(time.Millisecond)
				}
			})
		}
		next := int64(1)
		follow(ctx, f, func(u client.Update, s *seen) bool {
			if f.Phase() == client.Live && f.Last() == next {
				h.Append("s", &narad.StateDelta{
					Kind: narad.TypeStateDelta, Scope: narad.ScopeSession, BaseRevision: next, Revision: next + 1,
					Patch: narad.Raw(`[{"op":"replace","path":"/a/n","value":1}]`),
				})
				next++
				pass(time.Millisecond)
			}
			_ = f.Snapshot()
			return next == 50
		})
		cancel()
		others.Wait()
	})
}

func TestLeavingTheLoopLeavesNothingBehind(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Append("s", clienttest.Story(30)...)
		ended := make(chan struct{}, 1)
		h.Wrap(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				if strings.HasSuffix(r.URL.Path, "/stream") {
					ended <- struct{}{}
				}
			})
		})
		c := dial(t, h, client.Options{})
		for _, stop := range []int64{1, turn, 30 * turn} {
			follow(t.Context(), c.Follow("s", client.FollowOptions{MaxPending: 1}), at(stop))
			synctest.Wait() // who has told its end may not have returned yet
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			if strings.Contains(string(stacks), "client.(*subscription).read") {
				t.Errorf("the reader of the stream outlived the loop that was left at %d", stop)
			}
			<-ended // the host sees the client leave
			synctest.Wait()
		}
	})
}

// TestRefusalOfAStreamThatNeverEnds has a host that refuses a stream and then says no
// more: the wait for a stream to open has its bound all the same.
func TestRefusalOfAStreamThatNeverEnds(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Wrap(func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := dial(t, h, client.Options{Timeout: time.Minute}).Stream(ctx, sessionID, client.StreamQuery{})
		if e := wantCode(t, err, "service_unavailable", client.Retry); e.Status != http.StatusServiceUnavailable {
			t.Errorf("got %v, want the status that the host gave", e)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the refusal took %v, want Options.Timeout, a minute", took)
		}
		synctest.Wait()
	})
}

// TestSilenceIsMeasuredWhileReading opens a stream and lets it lie: what is not being
// read does not make a host silent, before the first read neither.
func TestSilenceIsMeasuredWhileReading(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		streams(h, "data: {\"type\":\"server.heartbeat\",\"protocolVersion\":\"narad/v1\"}\n\n")
		s, err := dial(t, h, client.Options{}).Stream(t.Context(), sessionID, client.StreamQuery{Silence: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		pass(time.Hour)
		if frame, err := s.Next(); err != nil {
			t.Fatalf("got %v, %v; want the heartbeat that was sent an hour ago", frame, err)
		}
		began := time.Now()
		_, err = s.Next()
		wantCode(t, err, client.CodeStreamSilent, client.Retry)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("silent after %v of reading, want a minute", took)
		}
	})
}
