package harnesshttp_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
)

// What stands on the wire, byte by byte: each record with the whole cursor as its id, and
// silence filled by what no reader takes for a record. The stream ends behind the final
// checkpoint, and whoever comes back then is told that there is nothing.
func TestFramesByteByByte(t *testing.T) {
	release := make(chan struct{})
	agent := func(ctx context.Context, h agent.Handle) agent.Ending { <-release; return speaks(ctx, h) }
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{})
		r := begin(t, rigOptions{agent: acts(agent)})
		run := r.run("in", "hi")
		synctest.Wait()
		response, err := r.http.Do(r.request("GET", "/runs/"+run+"/stream?subscriber=ci&credit=1000", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Harness-Version": "fak.harness.run/v1", "Harness-Subscriber": "ci",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		read := make(chan []byte, 1)
		go func() { body, _ := io.ReadAll(response.Body); read <- body }()
		pass(20 * time.Second)
		close(release)
		got := <-read
		whole := r.all(run)
		identity := r.journal.Identity()
		signer := harness.NewSigner(identity.Key, identity.Epoch)
		want := ""
		for i, line := range whole.lines {
			want += "id: " + signer.Cursor(run, uint64(i+1)).Token() + "\ndata: " + line + "\n\n"
			if i == 1 {
				want += ":\n\n"
			}
		}
		if string(got) != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		request := r.request("GET", "/runs/"+run+"/stream?credit=5", "")
		request.Header.Set("Last-Event-ID", whole.next)
		if a := r.send(request); a.status != 204 || a.body != "" {
			t.Errorf("behind the end: %s", a)
		}
		if a := r.send(r.request("HEAD", "/runs/"+run+"/stream", "")); a.status != 200 {
			t.Errorf("HEAD: %s", a)
		}
	})
}

// R38: the id of the last frame beats the cursor of the query, since a browser comes back
// with both.
func TestLastEventIDBeatsTheQuery(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		run := r.run("in", "hi")
		synctest.Wait()
		whole := r.all(run)
		request := r.request("GET", "/runs/"+run+"/stream?credit=100&cursor="+r.read(run, "", "credit=1").next, "")
		request.Header.Set("Last-Event-ID", r.read(run, "", "credit=3").next)
		if got := r.openStream(request).rest(t); !slices.Equal(got, whole.lines[3:]) {
			t.Errorf("got %v", got)
		}
		request.Header.Add("Last-Event-ID", "x")
		r.wantProblem(r.send(request), 400, "bad_request")
	})
}

// Field case 122: a stream gets what it was granted and no more, a grant that is told again
// counts once, and nothing of it is carried over a reconnect. Without credit nothing is sent,
// but the stream is alive.
func TestCredit(t *testing.T) {
	bubble(t, rigOptions{agent: talks(30)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		whole := r.all(run)
		s := r.stream(run, "subscriber=a")
		s.waiting(t, time.Minute, 0)
		r.want(r.tell(run, "c-1", grant(10)), 202)
		got := s.waiting(t, time.Minute, 10)
		if a := r.want(r.tell(run, "c-1", grant(10)), 200); a.field("duplicate") != "true" || a.field("credit") != "0" {
			t.Errorf("a grant that was told again when its credit was spent: %s", a)
		}
		s.waiting(t, time.Minute, 0)
		r.wantProblem(r.tell(run, "c-1", grant(11)), 409, "input_conflict")
		if a := r.want(r.tell(run, "c-2", grant(4)+`,"correlation_id":"a"`), 202); a.field("subscriber") != "a" {
			t.Errorf("got %s", a)
		}
		got = append(got, s.waiting(t, time.Minute, 4)...)
		r.want(r.tell(run, "c-3", grant(1000)+`,"correlation_id":"a"`), 202)
		s.close()
		synctest.Wait()

		r.wantProblem(r.tell(run, "c-4", grant(5)), 409, "no_subscriber")
		s = r.stream(run, "subscriber=a&credit=3&cursor="+url.QueryEscape(r.read(run, "", "credit=14").next))
		got = append(got, s.waiting(t, time.Minute, 3)...)
		r.want(r.tell(run, "c-3", grant(5)), 202) // another stream, another ledger
		got = append(got, s.waiting(t, time.Minute, 5)...)
		r.want(r.tell(run, "c-5", grant(1000)), 202)
		if got = append(got, s.rest(t)...); !slices.Equal(got, whole.lines) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(whole.lines, "\n"))
		}
	})
}

// A ledger takes no more than it can hold, and a grant that it refuses changes nothing.
func TestCreditHasABound(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		s := r.stream(run, "subscriber=a&credit=4294967295")
		s.take(t, 2)
		for _, credit := range []string{"0", "-1", "4294967296", "1.5", `"5"`, "null"} {
			r.wantProblem(r.tell(run, "c-"+credit[:1], `"type":"flow.credit","credit":`+credit), 400, "invalid_input")
		}
		r.wantProblem(r.tell(run, "c-1", grant(3)), 422, "credit_exceeded")
		r.want(r.tell(run, "c-1", grant(2)), 202) // the id was not used by what was refused
		r.wantProblem(r.tell(run, "c-2", grant(1)), 422, "credit_exceeded")
		for _, query := range []string{"credit=4294967296", "credit=-1", "subscriber=", "subscriber=a+b", "subscriber=" + strings.Repeat("x", 129)} {
			r.wantProblem(r.get("/runs/"+run+"/stream?"+query), 400, "invalid_field")
		}
	})
}

// Credit is for a stream of one's own: of the only one, or of the one that is named.
func TestWhoseCreditItIs(t *testing.T) {
	bubble(t, rigOptions{agent: talks(5)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		watcher := r.as("watcher", access.Observe)
		theirs := watcher.stream(run, "subscriber=a")
		r.wantProblem(r.tell(run, "c-1", grant(5)+`,"correlation_id":"a"`), 409, "no_subscriber")
		mine, second := r.stream(run, ""), r.stream(run, "")
		name := mine.response.Header.Get("Harness-Subscriber")
		if name == "" || name == second.response.Header.Get("Harness-Subscriber") {
			t.Fatalf("the streams are named %q and %q", name, second.response.Header.Get("Harness-Subscriber"))
		}
		r.wantProblem(r.tell(run, "c-1", grant(5)), 409, "subscriber_ambiguous")
		r.want(r.tell(run, "c-1", grant(2)+`,"correlation_id":"`+name+`"`), 202)
		r.want(watcher.tell(run, "c-1", grant(3)), 202)
		mine.waiting(t, time.Second, 2)
		second.waiting(t, time.Second, 0)
		theirs.waiting(t, time.Second, 3)
	})
}

// R21: a grant that is told again is a duplicate, whatever streams were opened since; for
// another stream its id is used.
func TestAGrantThatIsToldAgain(t *testing.T) {
	bubble(t, rigOptions{agent: talks(5)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		first := r.stream(run, "subscriber=a")
		r.want(r.tell(run, "c-1", grant(2)), 202)
		first.waiting(t, time.Second, 2)
		second := r.stream(run, "subscriber=b")
		r.want(r.tell(run, "c-1", grant(2)), 200)
		r.want(r.tell(run, "c-1", grant(2)+`,"correlation_id":"a"`), 200)
		r.wantProblem(r.tell(run, "c-1", grant(2)+`,"correlation_id":"b"`), 409, "input_conflict")
		r.wantProblem(r.tell(run, "c-1", grant(3)), 409, "input_conflict")
		first.waiting(t, time.Second, 0)
		second.waiting(t, time.Second, 0)
	})
}

// A grant and what is kept with the run have one space of ids.
func TestAnInputIDMeansOneThing(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		s := r.stream(run, "")
		r.want(r.tell(run, "c-1", grant(5)), 202)
		s.take(t, 2)
		r.wantProblem(r.tell(run, "c-1", say("more")), 409, "input_conflict")
		r.want(r.tell(run, "m-1", say("more")), 202)
		r.wantProblem(r.tell(run, "m-1", grant(5)), 409, "input_conflict")
		r.wantProblem(r.tell(run, "in", grant(5)), 409, "input_conflict")
	})
}

// A subscriber that opens another stream ends its first one, at a frame boundary; its credit
// goes to the new one alone.
func TestTheNewestStreamOfASubscriberWins(t *testing.T) {
	bubble(t, rigOptions{agent: talks(5)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		old := r.stream(run, "subscriber=a&credit=2")
		old.waiting(t, time.Second, 2)
		newest := r.stream(run, "subscriber=a&credit=1")
		if got := old.rest(t); len(got) > 0 {
			t.Errorf("the old stream got %v", got)
		}
		r.want(r.tell(run, "c-1", grant(3)), 202)
		newest.waiting(t, time.Second, 4)
		if !strings.Contains(r.log.String(), `"ended":"superseded"`) {
			t.Errorf("why the stream ended is not logged:\n%s", r.log)
		}
	})
}

// A cancel reaches a stream that waits: with credit it gets the end, without it stays.
func TestStreamsOfARunThatIsCanceled(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		poor, rich := r.stream(run, "subscriber=poor"), r.stream(run, "subscriber=rich&credit=100")
		rich.waiting(t, time.Second, 2)
		r.want(r.tell(run, "stop", cancel), 202)
		if got := rich.rest(t); len(got) != 2 || !strings.Contains(got[0], `"run.canceled"`) || !strings.Contains(got[1], `"checkpoint"`) {
			t.Errorf("got %v", got)
		}
		poor.waiting(t, time.Minute, 0)
		r.want(r.tell(run, "c-1", grant(100)), 202)
		if got := poor.rest(t); len(got) != 4 {
			t.Errorf("got %v", got)
		}
	})
}

// Streams end with the token behind them and with the host, and the run knows nothing of it
// (field case 64).
func TestTheEndOfAStreamIsNoStop(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits), heartbeat: 5 * time.Second}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		guest := r.as("guest", access.Decide)
		s, cut := guest.stream(run, "credit=10"), r.stream(run, "credit=10&subscriber=b")
		s.take(t, 2)
		cut.take(t, 2)
		heads := r.heads()
		cut.close()
		if _, err := r.tokens.Revoke(guest.tokenID, time.Now()); err != nil {
			t.Fatal(err)
		}
		if got := s.rest(t); len(got) > 0 {
			t.Errorf("got %v", got)
		}
		last := r.stream(run, "credit=10&subscriber=b")
		last.take(t, 2)
		synctest.Wait()
		if open := r.streams.Counters().Open; open != 1 || r.heads() != heads {
			t.Errorf("%d streams are open, the store moved from %v to %v", open, heads, r.heads())
		}
		r.close()
		last.rest(t)
	})
}

// The property of the issue: followed live, resumed anywhere with any credit, or read when it
// is over, a log has the same bytes.
func TestFollowedResumedAndReadAreTheSame(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, rigOptions{agent: random(seed)}, func(t *testing.T, r *rig) { sameBytes(t, r, seed) })
		})
	}
	t.Run("demo", func(t *testing.T) {
		demo, err := script.Builtin("demo")
		if err != nil {
			t.Fatal(err)
		}
		bubble(t, rigOptions{agent: demo}, func(t *testing.T, r *rig) { sameBytes(t, r, 0) })
	})
}
