package naryahttp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// madeAt is a store whose numbers begin where a clock says.
func madeAt(t *testing.T, o journal.Options, micro int64) journal.Journal {
	t.Helper()
	o.Now = func() time.Time { return time.UnixMicro(micro) }
	j, err := journal.NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// Case 14. A cursor of a store that is gone is merely old in the one that came after it; only
// one above what this store has given is refused.
func TestCase14AnotherStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, bedOptions{journal: madeAt(t, journal.Options{}, 1_000)})
		b.create("one", "hello")
		pass(0)
		old := b.newest()
		b.close()
		b = begin(t, bedOptions{journal: madeAt(t, journal.Options{}, 5_000)})
		s := b.stream("", narya.FormatID(old))
		b.create("two", "")
		got := s.now()
		if len(got) != 2 || got[0].ID != 5_000 {
			t.Errorf("behind %d of the old store came %v", old, kinds(got))
		}
		for range 2 {
			request := b.request("GET", "/v1/events", "")
			request.Header.Set("Last-Event-ID", narya.FormatID(b.newest()+1))
			b.wantError(b.send(request), narya.CodeCursorAhead)
		}
	})
}

// Case 17. Ids are numbers: what follows 99 is 100, and 9 has nothing to do with it.
func TestCase17IdsAreNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, bedOptions{journal: madeAt(t, journal.Options{}, 95)})
		b.create("one", "")
		for i := range 120 {
			b.publish("one", fmt.Sprint(i))
		}
		for _, last := range []int64{94, 97, 98, 99, 100, 101, 199} {
			for _, query := range []string{"", "sessionId=" + uuidOf("one")} {
				s := b.stream(query, narya.FormatID(last))
				b.wantEvents(t, query, last, s.now())
				s.close()
			}
		}
	})
}

// Case 75. Connections that are cut, wherever they are, leave nothing behind.
func TestCase75CutConnections(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		pass(0)
		first := int64(b.journal.Identity().FirstEvent)
		for i := range 400 {
			last := narya.FormatID(first + int64(i)%5)
			query := []string{"", "sessionId=" + uuidOf("one"), "hostEvents=true&sessionId=" + uuidOf("one"), "sessionId=" + uuidOf("nobody")}[i%4]
			if i%5 == 4 {
				last = narya.FormatID(b.newest() + 1)
			}
			request := b.request("GET", "/v1/events?"+query, "")
			request.Header.Set("Last-Event-ID", last)
			ctx, cut := context.WithCancel(t.Context())
			response, err := b.http.Do(request.WithContext(ctx))
			cut()
			if err == nil {
				response.Body.Close()
			}
		}
		pass(time.Second)
		if open := b.server.Counters().Streams.Open; open != 0 {
			t.Errorf("%d streams are open still", open)
		}
	})
}

// Case 76. One huge result makes no huge frame: the stream tells that it is there.
func TestCase76HugeResult(t *testing.T) {
	huge := strings.Repeat("x", 300_000)
	dumps := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		id, err := h.StartTool(ctx, agent.Tool{AgentID: "c", Name: "dump", Args: narad.Raw(`{"a":` + quote(huge) + `}`)})
		if err == nil {
			err = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(huge)})
		}
		if err != nil {
			return agent.Ending{Outcome: agent.Failed, Code: "x", Message: err.Error()}
		}
		return done
	})
	bubble(t, bedOptions{agent: dumps}, func(t *testing.T, b *bed) {
		s := b.stream("", "")
		b.create("one", "go")
		got := s.now()
		if !slices.Contains(kinds(got), narya.TypeToolCallFinished) {
			t.Fatalf("got %v", kinds(got))
		}
		for _, e := range got {
			if len(e.data) > 4096 {
				t.Errorf("a frame of %d bytes: %.200s", len(e.data), e.data)
			}
		}
	})
}

// Case 89. What is seen is there already, and what could not be written is never seen.
func TestCase89SeenIsThere(t *testing.T) {
	var fails atomic.Int64
	o := journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
		if stage == journal.StageBuilt && fails.Load() > 0 && fails.Add(1)%3 == 0 {
			return errors.New("a fault of the test")
		}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, bedOptions{journal: madeAt(t, o, 1_000)})
		b.create("one", "")
		begun := b.newest()
		s := b.stream("", "")
		fails.Store(1)
		told := 0
		for i := range 90 {
			a, err := b.host.Do(t.Context(), access.Owner(), host.Request{
				Action: access.PublishExtension, Session: "one", Command: decide.Publish{Extension: "lab/test", Name: fmt.Sprint(i)},
			})
			if err == nil && a.Status == decide.Accepted {
				told++
			}
		}
		fails.Store(0)
		pass(5 * time.Second)
		got := s.now()
		b.wantEvents(t, "", begun, got)
		if len(got) != told || told == 90 || told == 0 {
			t.Errorf("%d events of %d that were accepted, of 90", len(got), told)
		}
	})
}

// Case 107. Text and tools come in the order in which the agent made them, and nothing of a
// message after its end.
func TestCase107OneOrder(t *testing.T) {
	mixed := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, word := range []string{"one", "two"} {
			for _, letter := range word {
				_ = h.Text(ctx, string(letter))
			}
			id, err := h.StartTool(ctx, agent.Tool{AgentID: word, Name: word, Args: narad.Raw(`{}`)})
			if err == nil {
				_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{}`)})
			}
		}
		_ = h.Text(ctx, "end")
		return done
	})
	bubble(t, bedOptions{agent: mixed}, func(t *testing.T, b *bed) {
		s := b.stream("", "")
		b.create("one", "go")
		var order []string
		for _, e := range s.now() {
			switch p := e.Payload.(type) {
			case *narya.MessageDelta:
				if n := len(order); n > 0 && strings.HasPrefix(order[n-1], "text ") {
					order[n-1] += p.Delta
				} else {
					order = append(order, "text "+p.Delta)
				}
			case *narya.ToolCallStarted, *narya.ToolCallFinished, *narya.MessageEnd, *narya.TurnFinished:
				order = append(order, string(e.Type()))
			}
		}
		got := strings.Join(order, ", ")
		want := "text one, tool-call-started, tool-call-finished, text two, tool-call-started, tool-call-finished, text end, message-end, turn-finished"
		if strings.ReplaceAll(got, "message-end, tool", "tool") != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// Case 116. What is taken off the display stays on the record: the events are those that
// they were.
func TestCase116RecordStays(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		begun := b.newest()
		b.create("one", "")
		a, err := b.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.SendMessage, Session: "one", Command: decide.Message{MessageID: "m1", Content: "hello"},
		})
		if err != nil || a.Status != decide.Accepted {
			t.Fatal(a, err)
		}
		pass(0)
		before := b.stream("", narya.FormatID(begun)).now()
		removed := "(removed)"
		a, err = b.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.RedactMessage, Session: "one", Command: decide.Redact{MessageID: "m1", Reason: "private", DisplayReplacement: &removed},
		})
		if err != nil || a.Status != decide.Accepted {
			t.Fatal(a, err)
		}
		after := b.stream("", narya.FormatID(begun)).now()
		if len(after) < len(before) || len(before) == 0 {
			t.Fatalf("%d events were, %d are", len(before), len(after))
		}
		for i := range before {
			if after[i].data != before[i].data {
				t.Errorf("event %d was\n%s\nand is\n%s", i, before[i].data, after[i].data)
			}
		}
	})
}
