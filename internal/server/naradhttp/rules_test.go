package naradhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// The eleven rules of §11.3, each on the wire. docs/executor.md lists them.

const controls = "/executors/desk/controls"

// started returns the start of the session's last call, finished its end or nil.
func (r *rig) lastCall(session string) (start *narad.ToolCallStarted, finish *narad.ToolCallFinished) {
	r.t.Helper()
	synctest.Wait()
	for _, f := range r.facts(session) {
		switch f := f.(type) {
		case *narad.ToolCallStarted:
			start, finish = f, nil
		case *narad.ToolCallFinished:
			finish = f
		}
	}
	return start, finish
}

// ends demands how the session's last call ended.
func (r *rig) ends(session string, outcome narad.Outcome, code string) {
	r.t.Helper()
	if _, f := r.lastCall(session); f == nil || f.Outcome != outcome || f.Code != code {
		r.t.Errorf("the call ended as %+v, want %s %s", f, outcome, code)
	}
}

// Rule 1: no other executor's connection gets the call, not even one that was attached
// with the same rights.
func TestRule1OneExecutorGetsTheCall(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		mine := r.channel(r.attachExecutor())
		lease := r.want(r.post("/executors/other/attach", ""), 200).field("leaseId")
		request := r.request("GET", "/executors/other/stream", "")
		request.Header.Set("Narad-Lease", lease)
		response, err := r.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		theirs := make(chan string, 1)
		go func() { theirs <- readAll(response) }()
		r.say("s", "call")
		e := mine.execute()
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 202, "accepted")
		pass(time.Minute)
		_ = response.Body.Close()
		if got := <-theirs; strings.Contains(got, "execute") || strings.Contains(got, e.ToolCallID) {
			t.Errorf("another executor was sent %s", got)
		}
	})
}

// scripted is a host that is there for one executor: it gives it these frames, and keeps
// what it is told.
type scripted struct {
	frames func(lease string) []string
	told   chan []byte
	done   chan struct{}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const lease = "mxl_scripted"
	switch {
	case strings.HasSuffix(r.URL.Path, "/attach"):
		fmt.Fprintf(w, `{"type":"client.attached","protocolVersion":"narad/v1","clientExecutorId":"desk","leaseId":%q,"heartbeatIntervalMs":15000,"leaseExpiresAt":%q}`,
			lease, narad.Timestamp(time.Now().Add(time.Hour)))
	case strings.HasSuffix(r.URL.Path, "/stream"):
		w.Header().Set("Content-Type", "text/event-stream")
		for _, f := range s.frames(lease) {
			fmt.Fprintf(w, "data: %s\n\n", f)
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.done:
		case <-r.Context().Done():
		}
	default:
		body := new(bytes.Buffer)
		_, _ = body.ReadFrom(r.Body)
		if strings.Contains(body.String(), "client.tool.finish") {
			s.told <- body.Bytes()
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"status":"accepted"}`))
	}
}

// executeWith runs the Go client's executor against a scripted host for a minute, and
// returns what it has told.
func executeWith(t *testing.T, path string, tool client.ToolFunc, frames func(lease string) []string) []*narad.ClientToolFinish {
	t.Helper()
	s := &scripted{frames: frames, told: make(chan []byte, 16), done: make(chan struct{})}
	listener := servertest.NewListener()
	server := &http.Server{Handler: s}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	web := listener.Client()
	c, err := client.New("http://localhost", client.Options{HTTPClient: web})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	l := ledger(t, path)
	go func() {
		ended <- c.Execute(ctx, "desk", l, client.ExecutorOptions{Tools: map[string]client.ToolFunc{"open.file": tool}})
	}()
	pass(time.Minute)
	cancel()
	<-ended
	close(s.done)
	_ = server.Close()
	<-served
	web.CloseIdleConnections()
	close(s.told)
	var out []*narad.ClientToolFinish
	for data := range s.told {
		rec, err := narad.DecodeStrict(data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rec.(*narad.ClientToolFinish))
	}
	if len(out) == 0 {
		t.Fatal("it told nothing")
	}
	return out
}

// execute is a frame that orders a call.
func execute(t *testing.T, lease, token, call string) string {
	t.Helper()
	data, err := narad.Encode(&narad.ClientToolExecute{
		Lease: narad.Lease{ClientExecutorID: "desk", LeaseID: lease}, ExecutionToken: token,
		ExecutionTokenExpiresAt: narad.Timestamp(time.Now().Add(time.Hour)), ToolCallID: call, ToolName: "open.file",
		Args: narad.Raw(`{"n":1.10}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Rule 2: a tool runs because of client.tool.execute alone, never because its start is
// seen, on whichever stream and however often.
func TestRule2OnlyAnExecuteRunsATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := `{"type":"tool.call.started","protocolVersion":"narad/v1","eventId":"e1","timestamp":"2026-01-01T00:00:00.000Z",` +
			`"sessionId":"s","sessionSequence":4,"runId":"r","rootRunId":"r","sequence":3,"toolCallId":"shown","toolName":"open.file",` +
			`"executor":"client","args":{}}`
		if _, err := narad.Decode([]byte(started)); err != nil {
			t.Fatalf("the fact of this test is none: %v", err)
		}
		var ran []string
		executeWith(t, filepath.Join(t.TempDir(), "l"), func(_ context.Context, c client.ToolCall) (narad.Raw, error) {
			ran = append(ran, c.ToolCallID)
			return nil, nil
		}, func(lease string) []string {
			started := started + "\nid: e1"
			return []string{started, started, execute(t, lease, "mxt_1", "ordered"), started}
		})
		if got := strings.Join(ran, " "); got != "ordered" {
			t.Errorf("ran %q, want the call that was ordered alone", got)
		}
	})
}

// Rule 3: name and arguments are those of the fact, byte for byte.
func TestRule3TheCallIsThatOfItsStart(t *testing.T) {
	const args = `{"z":1.10,"a":[1e2,"\u00e9é\ud83d\ude00",{}],"z2":123456789012345678901234567890}`
	asks := func(ctx context.Context, h agent.Handle) agent.Ending {
		_, _ = h.CallClient(ctx, agent.Tool{Name: "open.file", Args: narad.Raw(args)}, nil)
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.bound("s")
		c := r.channel(r.attachExecutor())
		r.say("s", "go")
		e := c.execute()
		start, _ := r.lastCall("s")
		if e.ToolName != start.ToolName || !bytes.Equal(e.Args, start.Args) || e.ToolCallID != start.ToolCallID {
			t.Errorf("the call is %s %s %s, its start %s %s %s", e.ToolCallID, e.ToolName, e.Args, start.ToolCallID, start.ToolName, start.Args)
		}
		if string(e.Args) != args {
			t.Errorf("the arguments are %s, want %s", e.Args, args)
		}
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 202, "accepted")
	})
}

// Rule 4: a token is of one principal, one lease, one call and one time.
func TestRule4ATokenIsBound(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		r.bound("s2")
		lease := r.attachExecutor()
		c := r.channel(lease)
		r.say("s", "call")
		e := c.execute()
		r.say("s2", "call")
		other := c.execute()
		for what, change := range map[string]func(*narad.ClientToolFinish){
			"another call": func(f *narad.ClientToolFinish) { f.ToolCallID = other.ToolCallID },
			"no call":      func(f *narad.ClientToolFinish) { f.ToolCallID = "nothing" },
			"other token":  func(f *narad.ClientToolFinish) { f.ExecutionToken = other.ExecutionToken },
			"cut token":    func(f *narad.ClientToolFinish) { f.ExecutionToken = f.ExecutionToken[:20] },
			"other lease":  func(f *narad.ClientToolFinish) { f.LeaseID = "mxl_other" },
		} {
			if got := r.post(controls, finishOf(e, "1", change)); got.status != 403 || got.field("status") != "forbidden" {
				t.Errorf("%s: got %s, want 403 forbidden", what, got)
			}
		}
		admin := r.token
		r.token = r.newToken("same executor", access.Grant{Roles: []access.Role{access.Execute}, Executors: []string{"desk"}})
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 403, "forbidden")
		r.token = admin
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 202, "accepted")
		pass(6 * time.Minute)
		r.wantWord(r.post(controls, finishOf(other, "1", nil)), 410, "expired")
	})
}

// Rule 5: when a tool begins, its token stands in the ledger, and a token that stands
// there runs nothing, in this process or in a later one.
func TestRule5ATokenIsAcceptedBeforeItsTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "l")
		copied := path + ".copy"
		ran := 0
		tool := func(context.Context, client.ToolCall) (narad.Raw, error) {
			ran++
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), `"mxt_1"`) {
				t.Errorf("the tool begins, and the ledger is %q, %v", text, err)
			}
			if err := os.WriteFile(copied, text, 0o600); err != nil { // as a crash would leave it now
				t.Error(err)
			}
			return narad.Raw("1"), nil
		}
		twice := func(lease string) []string {
			return []string{execute(t, lease, "mxt_1", "a"), execute(t, lease, "mxt_1", "a")}
		}
		executeWith(t, path, tool, twice)
		if ran != 1 {
			t.Fatalf("the tool ran %d times, want once", ran)
		}
		told := executeWith(t, copied, tool, twice)
		for _, f := range told {
			if ran != 1 || f.Outcome != narad.OutcomeError || !strings.Contains(string(f.Response), "outcome_unknown") {
				t.Errorf("after a crash it ran %d times and told %s %s; want once, and that nobody knows", ran, f.Outcome, f.Response)
			}
		}
	})
}

// Rule 6: the finish holds the token, the outcome and the response.
func TestRule6TheFinishSaysWhatWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := executeWith(t, filepath.Join(t.TempDir(), "l"), func(context.Context, client.ToolCall) (narad.Raw, error) {
			return narad.Raw(`{"n":1.10}`), nil
		}, func(lease string) []string { return []string{execute(t, lease, "mxt_1", "a")} })
		f := told[0]
		if f.ExecutionToken != "mxt_1" || f.LeaseID != "mxl_scripted" || f.ClientExecutorID != "desk" || f.ToolCallID != "a" ||
			f.Outcome != narad.OutcomeSuccess || string(f.Response) != `{"n":1.10}` {
			t.Errorf("it told %+v", f)
		}
	})
}

// Rule 7: nothing is recorded before the token is judged, and the fact is the finish.
func TestRule7TheFactIsTheFinish(t *testing.T) {
	for _, outcome := range []narad.Outcome{narad.OutcomeSuccess, narad.OutcomeError, narad.OutcomeCancelled} {
		t.Run(string(outcome), func(t *testing.T) {
			bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
				r.bound("s")
				c := r.channel(r.attachExecutor())
				r.say("s", "call")
				e := c.execute()
				synctest.Wait()
				before := r.heads()
				r.wantWord(r.post(controls, finishOf(e, "1", func(f *narad.ClientToolFinish) { f.ExecutionToken = "mxt_guess" })), 403, "forbidden")
				if now := r.heads(); now != before {
					t.Errorf("a finish without its token moved the store from %v to %v", before, now)
				}
				const response = `{"n":1.10,"x":["\u00e9"]}`
				r.wantWord(r.post(controls, finishOf(e, response, func(f *narad.ClientToolFinish) { f.Outcome = outcome })), 202, "accepted")
				if _, f := r.lastCall("s"); f == nil || f.Outcome != outcome || string(f.Response) != response {
					t.Errorf("the call ended as %+v, want %s %s", f, outcome, response)
				}
			})
		})
	}
}

// Rule 8: the same finish again is acknowledged and recorded once; another one is refused;
// a superseded lease may still finish, and the new one cannot.
func TestRule8OneFinish(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		c := r.channel(r.attachExecutor())
		r.say("s", "call")
		e := c.execute()
		later := r.attachExecutor()
		r.wantWord(r.post(controls, finishOf(e, "1", func(f *narad.ClientToolFinish) { f.LeaseID = later })), 403, "forbidden")
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 202, "accepted")
		for range 3 {
			r.wantWord(r.post(controls, finishOf(e, " 1 ", nil)), 200, "already_applied")
		}
		r.wantWord(r.post(controls, finishOf(e, "2", nil)), 409, "conflict")
		r.wantWord(r.post(controls, finishOf(e, "1", func(f *narad.ClientToolFinish) { f.Outcome = narad.OutcomeError })), 409, "conflict")
		synctest.Wait()
		if n := r.count("s", narad.TypeToolCallFinished); n != 1 {
			t.Errorf("%d ends were recorded, want 1", n)
		}
	})
}

// Rule 9: a token that expires ends its call, and a stop ends it as cancelled.
func TestRule9ATokenExpires(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		r.bound("s2")
		c := r.channel(r.attachExecutor())
		r.say("s", "call")
		e := c.execute()
		run := r.say("s2", "call")
		stopped := c.execute()
		expires, err := time.Parse(time.RFC3339Nano, e.ExecutionTokenExpiresAt)
		if err != nil {
			t.Fatal(err)
		}
		r.want(r.post("/commands/stop-active-root", `{"sessionId":"s2","rootRunId":"`+run+`"}`), 202)
		pass(time.Until(expires) - time.Second)
		if _, f := r.lastCall("s"); f != nil {
			t.Errorf("the call ended before its token: %+v", f)
		}
		pass(2 * time.Second)
		r.ends("s", narad.OutcomeError, "client_execution_expired")
		r.ends("s2", narad.OutcomeCancelled, "stopped")
		r.wantWord(r.post(controls, finishOf(e, "1", nil)), 410, "expired")
		r.wantWord(r.post(controls, finishOf(stopped, "1", nil)), 409, "conflict")
	})
}

// Rule 10: a call that was taken is ordered from nobody else; a retry is a new call.
func TestRule10ACallIsNotGivenAgain(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		c := r.channel(r.attachExecutor())
		r.say("s", "call call")
		first := c.execute()
		later := r.channel(r.attachExecutor())
		pass(6 * time.Minute) // the lease of later ends, and so does the token of the first
		again := r.channel(r.attachExecutor())
		second := again.execute()
		if second.ToolCallID == first.ToolCallID || second.ExecutionToken == first.ExecutionToken {
			t.Errorf("the call %s was ordered again", first.ToolCallID)
		}
		if rec := later.next(); rec != nil {
			t.Errorf("the lease in between got %+v", rec)
		}
		r.wantWord(r.post(controls, finishOf(second, "1", nil)), 202, "accepted")
	})
}

// Rule 11: a call that was not taken ends as such, and a stop as cancelled.
func TestRule11ACallThatNobodyTakes(t *testing.T) {
	for _, tt := range []struct {
		name     string
		host     host.Options
		stop     bool
		attached bool // and the connection breaks while the call is written
		outcome  narad.Outcome
		code     string
	}{
		{"nobody comes", host.Options{}, false, false, narad.OutcomeError, "client_unavailable"},
		{"nobody is there", host.Options{FailAbsent: true}, false, false, narad.OutcomeError, "client_unavailable"},
		{"a stop", host.Options{}, true, false, narad.OutcomeCancelled, "stopped"},
		{"the write fails", host.Options{}, false, true, narad.OutcomeError, "delivery_failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, rigOptions{agent: orders, host: tt.host}, func(t *testing.T, r *rig) {
				r.bound("s")
				var conn *host.ExecutorConnection
				if tt.attached {
					a, err := r.host.AttachExecutor(t.Context(), access.Owner(), "desk")
					if err != nil {
						t.Fatal(err)
					}
					if conn, err = r.host.ConnectExecutor(access.Owner(), "desk", a.LeaseID); err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
				}
				run := r.say("s", "call")
				synctest.Wait()
				switch {
				case tt.stop:
					r.want(r.post("/commands/stop-active-root", `{"sessionId":"s","rootRunId":"`+run+`"}`), 202)
				case tt.attached:
					if list, err := conn.Next(); err != nil || len(list) != 1 {
						t.Fatalf("got %d records, %v", len(list), err)
					}
					conn.Wrote(context.Canceled)
				default:
					pass(6 * time.Minute)
				}
				r.ends("s", tt.outcome, tt.code)
			})
		})
	}
}

func readAll(response *http.Response) string {
	body := new(bytes.Buffer)
	_, _ = body.ReadFrom(response.Body)
	_ = response.Body.Close()
	return body.String()
}
