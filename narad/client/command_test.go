package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
)

func TestLostAnswerIsAskedForAgainUnderTheSameID(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.DropAnswers(2, "/message")
		c := dial(t, h, client.Options{})
		answer, err := c.Message(t.Context(), client.Message{SessionID: "s", Content: "hello"})
		if err != nil || answer.Status != client.Accepted || answer.RunID != "run-of-message" || answer.SessionSequence != 7 {
			t.Fatalf("answer %+v, %v", answer, err)
		}
		sent := h.Requests("/message")
		if len(sent) != 3 || sent[0].Body != sent[1].Body || sent[1].Body != sent[2].Body {
			t.Fatalf("sent %+v, want the same three times", sent)
		}
		if answer.CommandID == "" || h.Commands() != 1 {
			t.Errorf("command id %q, %d effects; want an id and one effect", answer.CommandID, h.Commands())
		}
	})
}

func TestCommandWithoutIDIsNotSentAgainWhenItsAnswerIsLost(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.DropAnswers(1, "/message")                                             // then: who knows, not again
		h.Refuse(1, "/message", http.StatusServiceUnavailable, "overloaded", "") // first: nothing done, again
		c := dial(t, h, client.Options{NewID: func() string { return "" }})
		_, err := c.Message(t.Context(), client.Message{SessionID: "s", Content: "hello"})
		wantCode(t, err, client.CodeUnreachable, client.Retry)
		if sent := h.Requests("/message"); len(sent) != 2 {
			t.Errorf("sent %d times, want 2", len(sent))
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Refuse(1, "/message", http.StatusServiceUnavailable, "recovering", "7")
		began := time.Now()
		if _, err := dial(t, h, client.Options{}).Message(t.Context(), client.Message{SessionID: "s", Content: "x"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("waited %v, want 7s", took)
		}
	})
}

func TestCallerDecidesAboutLongWaits(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Refuse(1, "/message", http.StatusInsufficientStorage, "storage_full", "3600")
		_, err := dial(t, h, client.Options{}).Message(t.Context(), client.Message{SessionID: "s", Content: "x"})
		e := wantCode(t, err, "storage_full", client.Retry)
		if e.RetryAfter != time.Hour || e.Status != 507 || e.RequestID != "req-1" {
			t.Errorf("error %+v", e)
		}
	})
}

func TestStatusWords(t *testing.T) {
	for status, http := range map[client.Status]int{
		client.Accepted: 202, client.AlreadyApplied: 200, client.NotFound: 404, client.Forbidden: 403,
		client.Expired: 410, client.Conflict: 409, client.Rejected: 422, client.Unsupported: 501,
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			answers(h, http, `{"status":"`+string(status)+`","decision":"deny","detail":"because","sessionSequence":12,"runId":"r","extra":[1]}`)
			answer, err := dial(t, h, client.Options{}).StopActiveRoot(t.Context(), client.StopActiveRoot{SessionID: "s"})
			if answer.Status != status || answer.Decision != "deny" || answer.SessionSequence != 12 || answer.RunID != "r" {
				t.Errorf("%s: answer %+v", status, answer)
			}
			if status.OK() {
				if err != nil {
					t.Errorf("%s: %v", status, err)
				}
				return
			}
			e := wantCode(t, err, client.Code(status), client.GiveUp)
			if e.Status != http || e.Detail != "because" {
				t.Errorf("%s: error %+v", status, e)
			}
			if n := len(h.Requests("")); n != 1 {
				t.Errorf("%s: sent %d times", status, n)
			}
		})
	}
}

// answers gives every request one answer.
func answers(h *clienttest.Host, status int, body string) {
	h.Wrap(func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	})
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   client.Code
		action client.Action
	}{
		{200, `{}`, client.CodeInvalidAnswer, client.GiveUp},
		{200, `null`, client.CodeInvalidAnswer, client.GiveUp},
		{200, `<html>`, client.CodeInvalidAnswer, client.GiveUp},
		{200, `{"status":7}`, client.CodeInvalidAnswer, client.GiveUp},
		{302, ``, client.CodeInvalidAnswer, client.GiveUp},
		{400, `{"code":"bad_request","detail":"no"}`, "bad_request", client.GiveUp},
		{401, ``, "unauthorized", client.GiveUp},
		{413, `{"code":"body_too_large"}`, "body_too_large", client.GiveUp},
		{429, `{"code":"too_many"}`, "too_many", client.Retry},
		{500, `{"code":"internal"}`, "internal", client.Retry},
		{502, `<html>proxy</html>`, "bad_gateway", client.Retry},
		{400, `{"code":"two words"}`, "bad_request", client.GiveUp},
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			answers(h, c.status, c.body)
			_, err := dial(t, h, client.Options{Attempts: 1}).Queue(t.Context(), client.Queue{SessionID: "s", Action: client.Release})
			if e := wantCode(t, err, c.code, c.action); c.status >= 300 && e.Status != c.status {
				t.Errorf("%d %s: status %d", c.status, c.body, e.Status)
			}
		})
	}
}

func TestLoserOfADecisionLearnsTheWinners(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		c := dial(t, h, client.Options{})
		var wg sync.WaitGroup
		answers := make([]client.Answer, 50)
		errs := make([]error, 50)
		for i := range answers {
			wg.Go(func() {
				decision := [...]string{"approve", "deny"}[i%2]
				answers[i], errs[i] = c.ResolveInterrupt(t.Context(), client.ResolveInterrupt{InterruptID: "i", Decision: decision})
			})
		}
		wg.Wait()
		winner := ""
		for i, a := range answers {
			if a.Status == client.Accepted {
				if winner != "" {
					t.Fatalf("two decisions were accepted")
				}
				winner = a.Decision
				again, err := c.ResolveInterrupt(t.Context(), client.ResolveInterrupt{
					InterruptID: "i", Decision: [...]string{"approve", "deny"}[i%2], CommandID: a.CommandID,
				})
				if err != nil || again != a {
					t.Errorf("the winner's retry: %+v, %v; want %+v", again, err, a)
				}
			}
		}
		for i, a := range answers {
			if a.Decision != winner || a.Status != client.Accepted && a.SessionSequence != 9 {
				t.Errorf("client %d learned %+v, want %q", i, a, winner)
			}
			if (errs[i] == nil) != a.Status.OK() {
				t.Errorf("client %d: status %s with error %v", i, a.Status, errs[i])
			}
		}
	})
}

func TestRequiredFieldsAreAskedForBeforeAnyRequest(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		c := dial(t, h, client.Options{})
		ctx := t.Context()
		_, message := c.Message(ctx, client.Message{SessionID: "s"})
		_, stop := c.StopActiveRoot(ctx, client.StopActiveRoot{})
		_, resolve := c.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: "i"})
		_, queue := c.Queue(ctx, client.Queue{SessionID: "s"})
		_, redact := c.Redact(ctx, client.Redact{SessionID: "s"})
		_, attach := c.Attach(ctx, "..", client.AttachQuery{})
		_, history := c.History(ctx, "", client.HistoryQuery{})
		_, stream := c.Stream(ctx, "a\nb", client.StreamQuery{})
		for _, err := range []error{message, stop, resolve, queue, redact, attach, history, stream, c.DeleteSession(ctx, ".")} {
			wantCode(t, err, client.CodeInvalidRequest, client.GiveUp)
		}
		if sent := h.Requests(""); len(sent) != 0 {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestEveryCommandsRouteAndBody(t *testing.T) {
	revision, replacement := int64(4), ""
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		c := dial(t, h, client.Options{})
		ctx := t.Context()
		send := func(_ client.Answer, err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		send(c.Message(ctx, client.Message{SessionID: "s", Content: "a<b", MessageID: "m", AttachmentIDs: []string{"x"}, WhenBusy: client.SteerMessage, CommandID: "1"}))
		send(c.StopActiveRoot(ctx, client.StopActiveRoot{SessionID: "s", RootRunID: "r", Reason: "enough", CommandID: "2"}))
		send(c.ResolveInterrupt(ctx, client.ResolveInterrupt{
			InterruptID: "i", Decision: "deny", Reason: "no", ExpectedRevision: &revision, CommandID: "3",
			Members: []client.MemberDecision{{RequestID: "p", Decision: "deny"}}, Answers: []client.QuestionAnswer{{Options: []string{"0"}, Text: "t"}},
		}))
		send(c.Queue(ctx, client.Queue{SessionID: "s", Action: client.Withdraw, RunID: "r", CommandID: "4"}))
		send(c.Redact(ctx, client.Redact{SessionID: "s", MessageID: "m", Reason: "pii", DisplayReplacement: &replacement, CommandID: "5"}))
		want := []struct{ path, body string }{
			{"message", `{"sessionId":"s","content":"a<b","messageId":"m","attachmentIds":["x"],"whenBusy":"steer","commandId":"1"}`},
			{"stop-active-root", `{"sessionId":"s","rootRunId":"r","reason":"enough","commandId":"2"}`},
			{"resolve-interrupt", `{"interruptId":"i","decision":"deny","reason":"no","expectedRevision":4,"members":[{"requestId":"p","decision":"deny"}],"answers":[{"options":["0"],"text":"t"}],"commandId":"3"}`},
			{"queue", `{"sessionId":"s","action":"withdraw","runId":"r","commandId":"4"}`},
			{"redact", `{"sessionId":"s","messageId":"m","reason":"pii","displayReplacement":"","commandId":"5"}`},
		}
		for i, r := range h.Requests("") {
			if r.Path != "/api/narad/v1/commands/"+want[i].path || r.Body != want[i].body {
				t.Errorf("got %s %s\nwant %s %s", r.Path, r.Body, want[i].path, want[i].body)
			}
		}
	})
}

func TestCallEndsWithItsContext(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Delay("/message", func() time.Duration { return time.Hour })
		c := dial(t, h, client.Options{Attempts: 2})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { pass(time.Second); cancel() }()
		_, err := c.Message(ctx, client.Message{SessionID: "s", Content: "x"})
		wantCode(t, err, client.CodeCanceled, client.GiveUp)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v is not context.Canceled", err)
		}
		began := time.Now()
		_, err = c.Message(t.Context(), client.Message{SessionID: "s", Content: "x"})
		wantCode(t, err, client.CodeTimeout, client.Retry)
		if took := time.Since(began); took < 60*time.Second || took > 61*time.Second {
			t.Errorf("two attempts took %v, want 30 s each", took)
		}
		synctest.Wait()
	})
}
