package transport

import (
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// 10,000 facts, with others at work beside them; then a decision, and a tool of the client.
const loadScript = `
script: 1
rules:
  - {contains: beside, play: beside}
  - {play: main}
scenarios:
  main:
    - repeat: {times: 10000, steps: [{progress: {id: a, category: work, label: "{{round}}"}}]}
    - ask: {title: "after ten thousand"}
    - client: {as: note, name: note.take, args: {text: "that was much"}}
    - say: "The note: {{note.outcome}}"
  beside:
    - repeat: {times: 1500, steps: [{progress: {id: b, category: work, label: "{{round}}"}}]}
`

// TestTransportUnderLoad: the transport's order of calls through an attach in the middle of
// 10,000 facts, others at work beside them, a restart of the host while they come, a
// decision and a client tool. Each fact comes once, and the tool runs once (R45).
func TestTransportUnderLoad(t *testing.T) {
	node := nodeOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	s := newStage(t, ctx, loadScript)
	for range 3 {
		s.say("work beside")
	}
	s.awaitHead(1000)
	front := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(s.target); r.Out.Host = s.target.Host },
	})
	t.Cleanup(front.Close)

	ledger, err := client.OpenLedger(filepath.Join(s.dir, "ledger.jsonl"))
	s.must(err)
	defer ledger.Close()
	var ran atomic.Int64
	executing, leave := context.WithCancel(ctx)
	var at int64 // where the session stood when the host went away
	s.deciding.Go(func() {
		at = s.awaitHead(4000)
		s.stop()
		if err := s.start(); err != nil {
			t.Error(err)
			cancel()
			return
		}
		s.approve("after ten thousand")
		_ = s.client.Execute(executing, "desk", ledger, client.ExecutorOptions{Tools: map[string]client.ToolFunc{
			"note.take": func(context.Context, client.ToolCall) (narad.Raw, error) {
				ran.Add(1)
				return narad.Raw(`"noted"`), nil
			},
		}})
	})
	seen := s.consume(node, front.URL)
	leave()
	s.deciding.Wait()
	s.compare(seen)
	switch {
	case seen.Applied < 10_000:
		t.Errorf("got %d facts, want 10,000 and more", seen.Applied)
	case at >= 10_000:
		t.Errorf("the host went away at %d, when all was over", at)
	case seen.Subscriptions < 2:
		t.Errorf("got %d subscriptions, want a return after the restart", seen.Subscriptions)
	case ran.Load() != 1 || len(seen.Tools) != 1:
		t.Errorf("got %d executions and %d calls, want one", ran.Load(), len(seen.Tools))
	}
	t.Logf("%d facts, restart at %d, %d buffered at most, %d subscriptions, %d failed catch-ups, %d repeated",
		seen.Applied, at, seen.MostBuffered, seen.Subscriptions, seen.Failures, seen.Repeated)
}

// awaitHead waits until the session has so many facts.
func (s *stage) awaitHead(n int64) int64 {
	for s.ctx.Err() == nil {
		if head := s.head(); head >= n {
			return head
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Errorf("the session never has %d facts", n)
	return 0
}
