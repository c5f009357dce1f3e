package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// roundTrip is a host that a test writes as a function.
type roundTrip func(*http.Request, narad.Raw) (int, string, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status, answer, err := f(r, body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
	}, nil
}

// absence is a host that is away for some requests, and keeps the ids and types of the
// inputs that it is told.
type absence struct {
	away     int
	answer   string
	status   int
	ids      map[string]bool
	answered []string
}

func (a *absence) serve(r *http.Request, body narad.Raw) (int, string, error) {
	if r.Method == http.MethodGet {
		return http.StatusNoContent, "", nil
	}
	id, _ := body.Field("input_id").IsString()
	a.ids[id] = true
	if a.away--; a.away >= 0 {
		return 0, "", errors.New("connection refused")
	}
	kind, _ := body.Field("type").IsString()
	a.answered = append(a.answered, kind)
	return a.status, a.answer, nil
}

func headlessOn(host roundTrip, onApproval string) (*headless, *bytes.Buffer) {
	var told bytes.Buffer
	a := &app{Process: Process{Stdout: io.Discard, Stderr: &told}, out: newConsole(io.Discard, noEnv), err: newConsole(&told, noEnv)}
	c := &logClient{&apiClient{base: "http://host", http: &http.Client{Transport: host}}}
	return &headless{app: a, client: c, run: "r", onApproval: onApproval, json: true}, &told
}

func noEnv(string) string { return "" }

func approvalAsked(payload string) harness.Event {
	return harness.Event{Type: harness.ApprovalRequested, RunID: "r", CorrelationID: "ap", Payload: narad.Raw(payload)}
}

// A host that is away for a while is none of the run's business: what was wished is told when
// it is back, once.
func TestAnApprovalIsToldWhenTheHostIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &absence{away: 60, status: 202, answer: `{}`, ids: map[string]bool{}}
		h, told := headlessOn(host.serve, "approve")
		h.decide(t.Context(), approvalAsked(`{"approval_id":"ap","prompt":"Do it?"}`))
		if len(host.answered) != 1 || len(host.ids) != 1 || told.Len() > 0 {
			t.Errorf("the host was told %v under %d ids; standard error: %q", host.answered, len(host.ids), told)
		}
	})
}

func TestAnInterruptCancelsWhenTheHostIsBack(t *testing.T) {
	signal.Stop(watchSignals()) // the process begins to watch outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		host := &absence{away: 60, status: 202, answer: `{}`, ids: map[string]bool{}}
		h, told := headlessOn(host.serve, "wait")
		err := h.cancel(t.Context(), &logReader{client: h.client, run: "r"})
		if err != nil || strings.Join(host.answered, " ") != "run.cancel" || len(host.ids) != 1 {
			t.Errorf("the host was told %v under %d ids: %v; standard error: %q", host.answered, len(host.ids), err, told)
		}
	})
}

func watchSignals() chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	return c
}

// Who interrupts a start that is on its way learns of its run, so that it can be canceled.
func TestAnInterruptedStartIsFinished(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	h, _ := headlessOn(func(r *http.Request, _ narad.Raw) (int, string, error) {
		interrupt()
		<-ctx.Done()
		return 201, `{"run_id":"r","session_id":"s"}`, r.Context().Err()
	}, "wait")
	run, err := begin(ctx, h.client, newRun{InputID: "in", Text: "go"})
	if err != nil || run.RunID != "r" {
		t.Errorf("got %+v %v", run, err)
	}
}

// Field case 45: who starts a run and gets no answer is told how to find the run instead of
// starting another.
func TestAStartWithoutAnAnswer(t *testing.T) {
	h, _ := headlessOn(func(*http.Request, narad.Raw) (int, string, error) { return 0, "", io.ErrUnexpectedEOF }, "wait")
	_, err := begin(t.Context(), h.client, newRun{InputID: "in", Text: "go"})
	var f *fault
	if !errors.As(err, &f) || !strings.Contains(f.hint, "--input-id in") {
		t.Errorf("got %v, want a hint with the input id", err)
	}
}

// What is printed decides: it names what is offered, and nothing is said to wait that does not.
func TestWhatAnApprovalThatWaitsIsDecidedWith(t *testing.T) {
	for _, c := range []struct {
		name, payload, code, want string
		waits                     bool
	}{
		{"question", `{"kind":"question","actions":["0","1","dismiss"]}`, "decision_not_offered", "resolve ap 0|1|dismiss", true},
		{"hidden", `{"redacted":true}`, "forbidden", "resolve ap DECISION", true},
		{"decided", `{"actions":["approve","deny"]}`, "approval_boundary", "could not deny", false},
		{"expired", `{"actions":["approve","deny"]}`, "expired", "could not deny", false},
	} {
		host := &absence{status: 409, answer: `{"code":"` + c.code + `"}`, ids: map[string]bool{}}
		h, told := headlessOn(host.serve, "deny")
		h.decide(t.Context(), approvalAsked(c.payload))
		if text := told.String(); !strings.Contains(text, c.want) || strings.Contains(text, "waits for") != c.waits {
			t.Errorf("%s: got %q, want %q, waits %v", c.name, text, c.want, c.waits)
		}
	}
}
