package naradhttp_test

import (
	"bufio"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// orders calls the executor's tool as often as the prompt says.
func orders(ctx context.Context, h agent.Handle) agent.Ending {
	for range strings.Count(h.Info().Prompt.Content, "call") {
		r, err := h.CallClient(ctx, agent.Tool{Name: "open.file", Args: narad.Raw(`{"n":1.10,"path":"` + secretArgs + `"}`)}, nil)
		if err != nil {
			return agent.Ending{Outcome: agent.Cancelled}
		}
		_ = h.Text(ctx, string(r.Outcome)+" "+string(r.Response)+" ")
	}
	return agent.Ending{StopReason: "completed"}
}

// channel is an executor's stream, read frame by frame.
type channel struct {
	r     *rig
	body  interface{ Close() error }
	lines *bufio.Scanner
	raw   strings.Builder
}

func (r *rig) attachExecutor() (lease string) {
	r.t.Helper()
	a := r.want(r.post("/executors/desk/attach", ""), 200)
	if a.field("type") != "client.attached" || a.field("clientExecutorId") != "desk" || a.field("heartbeatIntervalMs") != "15000" {
		r.t.Errorf("attach answers %s", a)
	}
	return a.field("leaseId")
}

func (r *rig) channel(lease string) *channel {
	r.t.Helper()
	request := r.request("GET", "/executors/desk/stream", "")
	request.Header.Set("Narad-Lease", lease)
	response, err := r.http.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		r.t.Fatalf("the stream answers %d %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	r.t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &channel{r: r, body: response.Body, lines: lines}
}

// next returns the next record that is no heartbeat.
func (c *channel) next() narad.Record {
	c.r.t.Helper()
	for c.lines.Scan() {
		line := c.lines.Text()
		c.raw.WriteString(line + "\n")
		if strings.HasPrefix(line, "id:") || strings.HasPrefix(line, "event:") {
			c.r.t.Errorf("a frame of an executor has %q", line)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		rec, err := narad.DecodeStrict([]byte(data))
		if err != nil {
			c.r.t.Fatalf("%v: %s", err, data)
		}
		if _, beat := rec.(*narad.ServerHeartbeat); !beat {
			return rec
		}
	}
	return nil
}

func (c *channel) execute() *narad.ClientToolExecute {
	c.r.t.Helper()
	e, ok := c.next().(*narad.ClientToolExecute)
	if !ok {
		c.r.t.Fatal("the stream has ended, or gives something else than a call")
	}
	return e
}

func finishOf(e *narad.ClientToolExecute, response string, change func(*narad.ClientToolFinish)) string {
	f := &narad.ClientToolFinish{
		Lease: e.Lease, ExecutionToken: e.ExecutionToken, ToolCallID: e.ToolCallID,
		Outcome: narad.OutcomeSuccess, Response: narad.Raw(response),
	}
	if change != nil {
		change(f)
	}
	data, err := narad.Encode(f)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func heartbeatOf(lease string) string {
	return `{"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":"desk","leaseId":"` + lease + `"}`
}

func (r *rig) bound(id string) {
	r.t.Helper()
	r.want(r.post("/sessions", `{"sessionId":"`+id+`","clientExecutorId":"desk"}`), 201)
}

// §11, R31-R33: the whole way of a call over HTTP, with every answer to a finish.
func TestExecutorOverHTTP(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		lease := r.attachExecutor()
		c := r.channel(lease)
		r.send(r.request("HEAD", "/executors/desk/stream", "")) // takes nobody's place
		r.say("s", "call")
		e := c.execute()
		if e.LeaseID != lease || e.ToolName != "open.file" || !strings.Contains(string(e.Args), `"n":1.10`) {
			t.Errorf("the call is %+v", e)
		}
		controls := "/executors/desk/controls"
		r.wantWord(r.post(controls, finishOf(e, "1", func(f *narad.ClientToolFinish) { f.ExecutionToken = "mxt_guess" })), 403, "forbidden")
		large := strings.Replace(finishOf(e, `"large"`, nil), "large", strings.Repeat("x", 600_000), 1)
		r.wantProblem(r.post(controls, large), 413, "event_too_large")
		r.wantWord(r.post(controls, finishOf(e, `{"n":1.10}`, nil)), 202, "accepted")
		r.wantWord(r.post(controls, finishOf(e, `{"n":1.10}`, nil)), 200, "already_applied")
		r.wantWord(r.post(controls, finishOf(e, `{"n":1.1}`, nil)), 409, "conflict")

		r.say("s", "call")
		second := c.execute()
		pass(6 * time.Minute) // the lease has long ended, and the token, too
		r.wantWord(r.post(controls, finishOf(second, "1", nil)), 410, "expired")
		for _, f := range r.facts("s") {
			if f, ok := f.(*narad.ToolCallFinished); ok && f.ToolCallID == second.ToolCallID && f.Code != "client_execution_expired" {
				t.Errorf("the call ended with %q", f.Code)
			}
		}
		if c.next() != nil {
			t.Error("the stream of an ended lease goes on")
		}
	})
}

// R31: the answer to a heartbeat, and a record on the stream, is the lease's new end.
func TestExecutorHeartbeats(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		lease := r.attachExecutor()
		c := r.channel(lease)
		for range 10 {
			pass(15 * time.Second)
			a := r.want(r.post("/executors/desk/controls", heartbeatOf(lease)), 200)
			told, ok := c.next().(*narad.ClientAttached)
			if !ok || told.LeaseExpiresAt != a.field("leaseExpiresAt") || told.LeaseID != lease {
				t.Fatalf("answered %s, and told %+v", a, told)
			}
		}
		pass(2 * time.Minute)
		r.wantProblem(r.post("/executors/desk/controls", heartbeatOf(lease)), 410, "lease_expired")
	})
}

// A lease that was superseded, none, and another's: refused, with nothing changed.
func TestExecutorRefusals(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		old := r.attachExecutor()
		lease := r.attachExecutor()
		stream := func(lease string) reply {
			request := r.request("GET", "/executors/desk/stream", "")
			request.Header.Set("Narad-Lease", lease)
			return r.send(request)
		}
		r.wantProblem(stream(old), 403, "wrong_lease")
		r.wantProblem(stream(""), 403, "wrong_lease")
		r.wantProblem(stream(strings.Repeat("x", 4000)), 403, "wrong_lease")
		r.wantProblem(r.post("/executors/desk/controls", heartbeatOf(old)), 403, "wrong_lease")
		r.wantProblem(r.post("/executors/other/controls", heartbeatOf(lease)), 400, "invalid_field")
		r.wantProblem(r.post("/executors/desk/controls", `{"type":"server.heartbeat","protocolVersion":"narad/v1"}`), 400, "not_a_control")
		r.wantProblem(r.post("/executors/desk/controls", `{"type":"client.heartbeat"}`), 400, "unsupported_protocol")
		r.wantProblem(r.post("/executors/desk/controls", `[`), 400, "invalid_json")
		r.wantProblem(r.post("/executors/a%20b/attach", ""), 400, "invalid_field")
		admin := r.token
		r.token = r.newToken("reader", access.Grant{Roles: []access.Role{access.Observe, access.Drive, access.Decide}})
		r.wantProblem(r.post("/executors/desk/attach", ""), 403, "forbidden")
		r.token = r.newToken("other", access.Grant{Roles: []access.Role{access.Execute}, Executors: []string{"other"}})
		r.wantProblem(r.post("/executors/desk/attach", ""), 403, "forbidden")
		r.wantProblem(stream(lease), 403, "forbidden")
		r.token = r.newToken("same", access.Grant{Roles: []access.Role{access.Execute}, Executors: []string{"desk"}})
		r.wantProblem(stream(lease), 403, "wrong_lease") // a lease is its principal's
		r.token = admin
		r.channel(lease) // it still holds
	})
}

// Field case 101: lease, token and call are on the executor's own channel, and nowhere
// else: no stream, no history, no other executor's channel, no log.
func TestExecutionSecretsStayOnTheirChannel(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		lease := r.attachExecutor()
		c := r.channel(lease)
		other := r.want(r.post("/executors/other/attach", ""), 200).field("leaseId")
		request := r.request("GET", "/executors/other/stream", "")
		request.Header.Set("Narad-Lease", other)
		foreign, err := r.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var theirs strings.Builder
		var reading sync.WaitGroup
		reading.Go(func() {
			lines := bufio.NewScanner(foreign.Body)
			for lines.Scan() {
				theirs.WriteString(lines.Text())
			}
		})
		run := r.say("s", "call")
		e := c.execute()
		r.wantWord(r.post("/executors/desk/controls", finishOf(e, "1", nil)), 202, "accepted")
		pass(time.Second)
		hydrated := ""
		for _, f := range r.frames("/sessions/s/stream?hydrate=messages,graph&watch=1", nil, reaches(r.head("s"))) {
			hydrated += f.data
		}
		workspace := r.notices("/workspaces/default/stream?afterRevision=0", "")
		pass(time.Second)
		_ = foreign.Body.Close()
		reading.Wait()
		everywhere := map[string]string{
			"the channel of another": theirs.String(), "the log": r.log.String(),
			"history": r.want(r.get("/sessions/s/events"), 200).body, "the transcript": r.want(r.get("/sessions/s/messages"), 200).body,
			"the graph": r.want(r.get("/sessions/s/graph?rootRunId="+run), 200).body, "a stream with everything": hydrated,
			"the workspace": mustJSON(workspace.texts()),
			"the summary":   r.want(r.get("/sessions/s"), 200).body, "attach": r.want(r.get("/sessions/s/attach"), 200).body,
		}
		for where, text := range everywhere {
			for _, secret := range []string{lease, e.ExecutionToken, "client.tool.execute"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds what is secret", where)
				}
			}
		}
	})
}

// tools count how often each call ran.
type tools struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *tools) count(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	c.runs[id]++
}

func ledger(t *testing.T, path string) *client.Ledger {
	t.Helper()
	l, err := client.OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// execute runs the Go client's executor until the function returned is called.
func (r *rig) execute(l *client.Ledger, tool client.ToolFunc) (stop func() error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	c := r.client()
	go func() {
		ended <- c.Execute(ctx, "desk", l, client.ExecutorOptions{Tools: map[string]client.ToolFunc{"open.file": tool}})
	}()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-ended })
		return err
	}
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

// The Go client runs what a host orders, each call once, in the order of the run.
func TestGoExecutor(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		r.bound("s")
		var seen tools
		stop := r.execute(ledger(t, filepath.Join(t.TempDir(), "l")), func(_ context.Context, call client.ToolCall) (narad.Raw, error) {
			seen.count(call.ToolCallID)
			return call.Args.Field("n"), nil
		})
		r.say("s", "call call call")
		pass(10 * time.Minute) // many leases long
		r.say("s", "call")
		pass(time.Second)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		if got := r.count("s", narad.TypeToolCallFinished); got != 4 || len(seen.runs) != 4 {
			t.Errorf("%d calls ended and %d ran, want 4", got, len(seen.runs))
		}
		for _, f := range r.facts("s") {
			if f, ok := f.(*narad.ToolCallFinished); ok && (f.Outcome != narad.OutcomeSuccess || string(f.Response) != "1.10") {
				t.Errorf("a call ended %s %s", f.Outcome, f.Response)
			}
		}
		for id, n := range seen.runs {
			if n != 1 {
				t.Errorf("%s ran %d times", id, n)
			}
		}
	})
}

// What a tool says of its failure reaches the host if it is meant to, and not otherwise.
func TestGoExecutorFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		tool client.ToolFunc
		want string
	}{
		{"an error that is meant for the host", func(context.Context, client.ToolCall) (narad.Raw, error) {
			return nil, &client.ToolError{Code: "no_such_file", Message: "There is none."}
		}, `{"code":"no_such_file","message":"There is none."}`},
		{"an error that is not", func(context.Context, client.ToolCall) (narad.Raw, error) {
			return nil, errors.New("password=hunter2")
		}, `{"code":"execution_failed"}`},
		{"a panic", func(context.Context, client.ToolCall) (narad.Raw, error) { panic("hunter2") }, `{"code":"execution_failed"}`},
		{"no JSON", func(context.Context, client.ToolCall) (narad.Raw, error) { return narad.Raw("{"), nil },
			`{"code":"execution_failed","message":"the tool's response is not JSON"}`},
		{"too large", func(context.Context, client.ToolCall) (narad.Raw, error) {
			return narad.Quote(strings.Repeat("x", 600_000)), nil
		}, `{"code":"response_too_large","message":"the response has more than 500000 bytes"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
				r.bound("s")
				r.execute(ledger(t, filepath.Join(t.TempDir(), "l")), tt.tool)
				r.say("s", "call")
				pass(time.Second)
				for _, f := range r.facts("s") {
					if f, ok := f.(*narad.ToolCallFinished); ok && (f.Outcome != narad.OutcomeError || string(f.Response) != tt.want) {
						t.Errorf("got %s %s, want error %s", f.Outcome, f.Response, tt.want)
					}
				}
				if r.count("s", narad.TypeToolCallFinished) != 1 {
					t.Error("the call did not end once")
				}
			})
		})
	}
}

// Another process that attaches under the same id takes over, and the first one gives up:
// two that both came back would take the lease from each other for ever.
func TestGoExecutorIsSuperseded(t *testing.T) {
	bubble(t, rigOptions{agent: orders}, func(t *testing.T, r *rig) {
		var ran atomic.Int32
		tool := func(context.Context, client.ToolCall) (narad.Raw, error) { ran.Add(1); return nil, nil }
		first := make(chan error, 1)
		l := ledger(t, filepath.Join(t.TempDir(), "l"))
		go func() {
			first <- r.client().Execute(t.Context(), "desk", l, client.ExecutorOptions{Tools: map[string]client.ToolFunc{"open.file": tool}})
		}()
		pass(time.Second)
		r.execute(ledger(t, filepath.Join(t.TempDir(), "l2")), tool)
		err := <-first
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != client.CodeWrongLease {
			t.Errorf("the first ended with %v, want wrong_lease", err)
		}
		r.bound("s")
		r.say("s", "call")
		pass(time.Second)
		if ran.Load() != 1 || r.count("s", narad.TypeToolCallFinished) != 1 {
			t.Errorf("the tool ran %d times", ran.Load())
		}
	})
}

// A host that restarts finds its executor again, and a call that was under way meanwhile
// is told when the host is back. It has run once.
func TestGoExecutorOverRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{agent: orders})
		r.bound("s")
		let := make(chan struct{})
		var ran atomic.Int32
		path := filepath.Join(t.TempDir(), "l")
		l := ledger(t, path)
		stop := r.execute(l, func(ctx context.Context, _ client.ToolCall) (narad.Raw, error) {
			ran.Add(1)
			<-let
			return narad.Raw("1"), nil
		})
		r.say("s", "call")
		pass(time.Second)
		close(let) // the tool ends, and the executor is ended before it can say so
		r.close()
		pass(time.Second)
		_ = stop()
		_ = l.Close()

		again := start(t, rigOptions{agent: orders, before: r})
		stopAgain := again.execute(ledger(t, path), func(context.Context, client.ToolCall) (narad.Raw, error) {
			ran.Add(1)
			return narad.Raw("2"), nil
		})
		pass(time.Minute)
		_ = stopAgain()
		if ran.Load() != 1 {
			t.Errorf("the tool ran %d times, want once", ran.Load())
		}
		if got := again.count("s", narad.TypeToolCallFinished); got != 1 {
			t.Errorf("the call ended %d times", got)
		}
	})
}
