package client

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// answering answers every request with one refusal.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusForbidden, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))),
	}, nil
}

// A host that repeats a lease or an execution token in a refusal is not quoted (§8).
func TestSecretsOfAnExecutionAreNotQuoted(t *testing.T) {
	refusal := answering(`{"code":"forbidden","detail":"lease-5ecret and token-5ecret do not belong together"}`)
	c, err := New("http://127.0.0.1:1", Options{HTTPClient: &http.Client{Transport: refusal}})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	x := &executor{
		client: c, id: "laptop", ledger: openLedger(t, t.TempDir()+"/ledger"), last: t.Context(),
		opt: ExecutorOptions{Notify: func(n ExecutorNotice) { said = append(said, fmt.Sprintf("%+v", n)) }},
	}
	x.tell(entry{
		Token: "token-5ecret", Lease: "lease-5ecret", Executor: "laptop", Call: "call", Tool: "tool",
		Expires: time.Now().Add(time.Hour).UnixMilli(), Outcome: narad.OutcomeSuccess, Response: narad.Raw("null"),
	})
	got := strings.Join(said, "\n")
	if strings.Contains(got, "5ecret") || !strings.Contains(got, "[token] and [token] do not belong together") {
		t.Errorf("the executor said %q, want the refusal without the secrets", got)
	}
}
