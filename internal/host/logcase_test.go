package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/harness/harnesstest"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// payload is what these tests look at.
type payload struct {
	SubrunID  string `json:"subrun_id"`
	MessageID string `json:"message_id"`
	Role      string `json:"role"`
	Text      string `json:"text"`
	CallID    string `json:"call_id"`
	Status    string `json:"status"`
	Response  int    `json:"response"`
}

func payloadOf(t *testing.T, e harness.Event) payload {
	t.Helper()
	var p payload
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatalf("%s: %v", e.Payload, err)
	}
	return p
}

// texts joins what is said in a log, by the nested run that says it, "" for the run itself.
func texts(t *testing.T, log []harness.Event) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, e := range log {
		if e.Type == harness.MessageDelta {
			p := payloadOf(t, e)
			all[p.SubrunID] += p.Text
		}
	}
	return all
}

// Field case 3: a run that nobody follows has the whole log, its end included.
func TestLogOfARunThatNobodyFollowed(t *testing.T) {
	alone(t, acts{run: speaks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "hi").RunID
		pass(1)
		log := s.log(run)
		if faults := harnesstest.Faults(run, log, true); len(faults) > 0 || texts(t, log)[""] != "Hello, world." {
			t.Errorf("%v\n%s", faults, encoded(t, log))
		}
	})
}

// Field case 50: calls of one tool that end in another order are told apart by their ids.
func TestLogOfParallelCalls(t *testing.T) {
	var ids [3]string
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		for i := range ids {
			ids[i], _ = h.StartTool(ctx, agent.Tool{AgentID: fmt.Sprint(i), Name: "fetch", Args: narad.Raw(`{}`)})
		}
		for _, i := range []int{2, 0, 1} {
			result := agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(fmt.Sprint(i))}
			if i == 0 {
				result.Outcome = narad.OutcomeError
			}
			_ = h.FinishTool(ctx, ids[i], result)
		}
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		synctest.Wait()
		got := ""
		for _, e := range s.log(run) {
			if p := payloadOf(t, e); e.Type == harness.ToolCompleted {
				got += fmt.Sprintf("%d %s %v\n", p.Response, p.Status, p.CallID == ids[p.Response] &&
					e.CorrelationID == p.CallID && e.CausationID == "tool:"+p.CallID+":started")
			}
		}
		if want := "2 completed true\n0 failed true\n1 completed true\n"; got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// Field case 68: what nested runs say is theirs, fragment by fragment.
func TestLogOfChildrenThatSpeak(t *testing.T) {
	var children [2]string
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		voices := []agent.Handle{h}
		for i := range children {
			child, err := h.StartRun(ctx, agent.Nested{AgentID: fmt.Sprint(i)})
			if err != nil {
				return agent.Ending{Outcome: agent.Failed}
			}
			voices, children[i] = append(voices, child), child.Info().RunID
		}
		for n := range 12 {
			_ = voices[n%3].Text(ctx, fmt.Sprintf("%d.%d ", n%3, n/3))
			pass(50_000_000) // the fragment is recorded before the next is said
		}
		for _, child := range voices[1:] {
			_ = child.End(ctx, agent.Ending{})
		}
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		pass(10_000_000_000)
		synctest.Wait()
		got := texts(t, s.log(run))
		for i, who := range []string{"", children[0], children[1]} {
			if want := fmt.Sprintf("%d.0 %d.1 %d.2 %d.3 ", i, i, i, i); got[who] != want {
				t.Errorf("run %d: got %q, want %q", i, got[who], want)
			}
		}
	})
}

// Field case 69: however a stop and the end of an agent meet, the log has the one ending
// that the run has.
func TestLogHasOneEnding(t *testing.T) {
	j := memory(t, journal.Options{})
	s := open(t, j, acts{run: speaks}, logging())
	defer s.close()
	ctx := t.Context()
	for round := range 100 {
		id := fmt.Sprintf("s%d", round)
		s.create(id)
		run := s.say(id, "go").RunID
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			_, _ = s.host.Do(ctx, access.Owner(), requestStop(id, run))
		}()
		l := s.openLog(run)
		f, err := l.Follow(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		var log []harness.Event
		for {
			records, err := f.Next(ctx)
			if err != nil {
				break
			}
			log = append(log, s.project(l, records)...)
		}
		f.Close()
		<-stopped
		if faults := harnesstest.Faults(run, log, true); len(faults) > 0 {
			t.Fatalf("round %d: %s\n%s", round, strings.Join(faults, "\n"), types(log))
		}
		ending := map[harness.Type]string{harness.RunCompleted: "run.finished", harness.RunCanceled: "run.cancelled"}[log[len(log)-2].Type]
		if !strings.HasSuffix(s.story(id), ending) {
			t.Fatalf("round %d: the log ends with %s, the session is %s", round, log[len(log)-2].Type, s.story(id))
		}
	}
}

// Field case 77: text that comes byte by byte is whole characters in the log.
func TestLogHasWholeCharacters(t *testing.T) {
	const said = "Zoë 漢字 👩‍🚀 e\u0301."
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		for i := range len(said) {
			_ = h.Text(ctx, said[i:i+1])
			pass(50_000_000)
		}
		_ = h.Text(ctx, "\xf0\x9f") // the end comes in the middle of a character
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		pass(100_000_000_000)
		if got := texts(t, s.log(run))[""]; strings.TrimRight(got, "\uFFFD") != said || got == said {
			t.Errorf("got %q, want %q and the broken end replaced", got, said)
		}
	})
}

// Field case 107: text and calls stand in the order in which they came, and the last
// fragment before the end of its message and the run.
func TestLogKeepsTheOrder(t *testing.T) {
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, word := range []string{"one", "two"} {
			for i := range len(word) {
				_ = h.Text(ctx, word[i:i+1])
			}
			id, _ := h.StartTool(ctx, agent.Tool{AgentID: word, Name: "t", Args: narad.Raw(`{}`)})
			_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw("0")})
		}
		_ = h.Text(ctx, "end")
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		pass(1)
		got := ""
		for _, e := range s.log(run) {
			switch p := payloadOf(t, e); {
			case e.Type == harness.MessageDelta:
				got += p.Text
			case p.Role != "user":
				got += map[harness.Type]string{
					harness.MessageCompleted: "|", harness.ToolStarted: "(", harness.ToolCompleted: ")", harness.RunCompleted: "!",
				}[e.Type]
			}
		}
		if want := "one|()two|()end|!"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
