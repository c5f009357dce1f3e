package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
	"github.com/mahati-host/mahati/narad/session"
)

// seat is somebody at a terminal who follows the session s1 of a host in memory.
type seat struct {
	t     *testing.T
	host  *clienttest.Host
	typed interface{ WriteString(string) (int, error) }
	leave context.CancelFunc
	left  chan error
	hang  func()

	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

func (s *seat) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *seat) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return shown(s.out.String())
}

// askedAt is where clienttest.Turn has asked and paused.
const askedAt = 7

func sit(t *testing.T, present int) *seat {
	t.Helper()
	return sitAfter(t, present, 0)
}

// sitAfter comes back to a session that was left after a sequence.
func sitAfter(t *testing.T, present int, after int64) *seat {
	t.Helper()
	s := &seat{t: t, host: clienttest.New(t, clienttest.Options{}), left: make(chan error, 1)}
	s.host.Append("s1", clienttest.Turn(1)[:present]...)
	c, err := client.New(s.host.URL(), client.Options{HTTPClient: s.host.HTTP()})
	if err != nil {
		t.Fatal(err)
	}
	in, typed := pipe(t)
	keys, err := newKeyboard(in)
	if err != nil {
		t.Fatal(err)
	}
	s.typed, s.hang = typed, func() { typed.Close() }
	v := &viewer{client: c, follower: c.Follow("s1", client.FollowOptions{}), keys: keys, after: after}
	v.leave = func(u client.Update) bool {
		if fact, ok := u.Record.(narad.Authority); ok && v.follower.Position().Sequence != fact.Envelope().SessionSequence {
			t.Errorf("the follower stands at %d while fact %d is shown", v.follower.Position().Sequence, fact.Envelope().SessionSequence)
		}
		return terminal(u.Record)
	}
	v.teller = newTeller(&screen{console: console{Writer: s, terminal: true}}, v.follower, func(a facts.Actor) string { return a.ID })
	ctx, leave := context.WithCancel(t.Context())
	s.leave = leave
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer keys.close()
		s.left <- v.follow(ctx)
	}()
	t.Cleanup(func() { leave(); <-done; c.Close() })
	return s
}

// await waits until the terminal shows a text.
func (s *seat) await(text string) {
	s.t.Helper()
	s.until("the terminal shows "+text, func() bool { return strings.Contains(s.shown(), text) })
}

func (s *seat) until(what string, holds func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain until %s; the terminal shows\n%s", what, s.shown())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *seat) enter(line string) {
	s.t.Helper()
	if _, err := s.typed.WriteString(line + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// end waits until the viewer has left.
func (s *seat) end(want error) {
	s.t.Helper()
	select {
	case err := <-s.left:
		if !errors.Is(err, want) {
			s.t.Fatalf("following ended with %v, want %v", err, want)
		}
	case <-time.After(30 * time.Second):
		s.t.Fatalf("the viewer does not leave; the terminal shows\n%s", s.shown())
	}
}

const turnPrompt = "approve, deny? "

func TestViewerAsksInline(t *testing.T) {
	for name, present := range map[string]int{"asked before": askedAt, "asked while it looks": 1} {
		t.Run(name, func(t *testing.T) {
			s := sit(t, present)
			s.until("the viewer is live", func() bool { return len(s.host.Requests("/stream")) > 0 })
			s.host.Append("s1", clienttest.Turn(1)[present:askedAt]...)
			s.await(turnPrompt)
			s.enter("perhaps")
			s.await("one of: approve, deny")
			if n := s.host.Commands(); n != 0 {
				t.Fatalf("a word that is no decision sent %d commands", n)
			}
			s.enter("a because")
			s.until("the decision has come", func() bool { return s.host.Commands() == 1 })
			sent := s.host.Requests("/resolve-interrupt")
			if body := sent[0].Body; !strings.Contains(body, `"interruptId":"ask-1"`) || !strings.Contains(body, `"decision":"approve"`) || !strings.Contains(body, `"reason":"because"`) {
				t.Errorf("sent %s", body)
			}
			s.host.Append("s1", clienttest.Turn(1)[askedAt:]...)
			s.end(nil)
			if got := s.shown(); !strings.Contains(got, "→ approve") || strings.HasSuffix(got, turnPrompt) {
				t.Errorf("the terminal shows\n%s", got)
			}
		})
	}
}

// TestViewerComesBack: who comes back is shown again what still waits, with what it is
// about, and told where there is nothing new.
func TestViewerComesBack(t *testing.T) {
	s := sitAfter(t, askedAt, askedAt)
	s.await(turnPrompt)
	if got := s.shown(); !strings.Contains(got, "? ") || !strings.Contains(got, "ask-1") || strings.Contains(got, "› do it") {
		t.Errorf("the terminal shows\n%s", got)
	}
	s.enter("approve")
	s.until("the decision has come", func() bool { return s.host.Commands() == 1 })
	s.host.Append("s1", clienttest.Turn(1)[askedAt:]...)
	s.end(nil)

	s = sitAfter(t, 3, 3)
	s.await("nothing new since you left")
	s.host.Append("s1", clienttest.Turn(1)[3:]...)
	s.end(nil)
	if got := strings.Count(s.shown(), "ask-1"); got != 1 {
		t.Errorf("what was asked is shown %d times:\n%s", got, s.shown())
	}
}

// TestViewerSeesDecisionsOfOthers: the prompt goes as soon as somebody else has decided,
// and what is typed then decides nothing.
func TestViewerSeesDecisionsOfOthers(t *testing.T) {
	s := sit(t, askedAt)
	s.await(turnPrompt)
	s.host.Append("s1", clienttest.Turn(1)[askedAt:askedAt+2]...)
	s.until("the prompt is gone", func() bool { return !strings.Contains(s.shown(), turnPrompt) })
	s.enter("deny")
	s.host.Append("s1", clienttest.Turn(1)[askedAt+2:]...)
	s.end(nil)
	if n := s.host.Commands(); n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

func TestViewerDetaches(t *testing.T) {
	s := sit(t, askedAt)
	s.await(turnPrompt)
	s.leave()
	s.end(errLeft)
	if got := s.shown(); strings.Contains(got, turnPrompt) {
		t.Errorf("the prompt stays:\n%s", got)
	}
}

// TestViewerGoesOnWithoutKeyboard: the end of the input is no decision and no end.
func TestViewerGoesOnWithoutKeyboard(t *testing.T) {
	s := sit(t, askedAt)
	s.await(turnPrompt)
	s.hang()
	s.until("the prompt is gone", func() bool { return !strings.Contains(s.shown(), turnPrompt) })
	s.host.Append("s1", clienttest.Turn(1)[askedAt:]...)
	s.end(nil)
}

func TestViewerComesBackAfterABreak(t *testing.T) {
	s := sit(t, 2)
	s.await("› do it")
	s.host.CutStreams()
	s.await("(no connection")
	s.host.Append("s1", clienttest.Turn(1)[2:]...)
	s.end(nil)
	if got := strings.Count(s.shown(), "› do it"); got != 1 {
		t.Errorf("the prompt was told %d times", got)
	}
}

// everything is a state in which everything is known.
type everything struct{ text string }

func (e everything) Run(string) (session.Run, bool) { return session.Run{RunID: e.text}, true }
func (e everything) Tool(string) (session.Tool, bool) {
	return session.Tool{ToolName: e.text}, true
}

// TestTellerLetsNothingThrough: whatever field of whatever fact an agent can fill, no
// control character of it reaches the terminal.
func TestTellerLetsNothingThrough(t *testing.T) {
	const evil = "x\x1b[2J\r\a\u202e\u009by"
	quoted := narad.Quote(evil)
	object := narad.Raw(`{"action":` + string(quoted) + `,"resource":` + string(quoted) + `,"detail":` + string(quoted) +
		`,"members":[{"requestId":` + string(quoted) + `,"toolName":` + string(quoted) + `}]` +
		`,"questions":[{"text":` + string(quoted) + `,"options":[` + string(quoted) + `]}],"id":` + string(quoted) + `}`)
	in := func() narad.Event {
		e := narad.Event{SessionID: evil, RootRunID: "root", RunID: evil}
		for _, name := range []string{"title", "toolName", "agentName", "stopReason", "durationMs"} {
			e.SetOptional(name, quoted)
		}
		return e
	}
	custom := func(name string, payload any) *narad.Custom {
		c := facts.Session(name, payload)
		c.Event = in()
		return c
	}
	tokens := int64(7)
	list := []narad.Authority{
		&narad.RunStarted{Event: in(), ParentRunID: "root"}, &narad.RunPaused{Event: in(), Reason: evil, Message: evil, RetryAt: evil},
		&narad.RunStopRequested{Event: in(), TargetRunID: "root"}, &narad.RunFinished{Event: in(), Usage: &narad.Usage{TotalTokens: &tokens}},
		&narad.RunError{Event: in(), Code: evil, Message: evil}, &narad.RunCancelled{Event: in(), Code: evil, Message: evil},
		&narad.MessageUserRecorded{Event: in(), Content: evil}, &narad.MessageTextDelta{Event: in(), MessageID: evil, Delta: evil},
		&narad.MessageTextCompleted{Event: in(), MessageID: evil}, &narad.MessageRedacted{Event: in(), MessageID: evil, Reason: evil},
		&narad.ReasoningDelta{Event: in(), ReasoningID: evil, Delta: evil}, &narad.ReasoningCompleted{Event: in(), ReasoningID: evil},
		&narad.ToolCallStarted{Event: in(), ToolName: evil, Args: object},
		&narad.ToolCallFinished{Event: in(), Outcome: narad.OutcomeSuccess},
		&narad.ToolCallFinished{Event: in(), Outcome: narad.OutcomeError, Code: evil, Message: evil},
		&narad.ToolCallFinished{Event: in(), Outcome: narad.OutcomeCancelled, Code: evil, Message: evil},
		&narad.InterruptRequested{Event: in(), InterruptID: evil, Title: evil, Message: evil, Actions: []string{evil}, Input: object},
		&narad.InterruptResolved{Event: in(), InterruptID: evil, Decision: evil, Reason: evil, Actor: object},
		&narad.ProgressRecorded{Event: in(), Label: evil, Detail: evil, Status: narad.ProgressActive},
		&narad.ProgressRecorded{Event: in(), Label: evil, Detail: evil, Status: narad.ProgressStatus(evil)},
		custom(facts.SessionCreated, facts.Created{Title: evil, Agent: evil, Cwd: evil}),
		custom(facts.InputQueued, facts.Queued{Content: evil}), custom(facts.ToolOutput, facts.Output{Text: evil, Truncated: true}),
		custom(facts.Decision, facts.Decided{Members: []facts.MemberDecided{{RequestID: evil, Decision: evil}}, Actor: facts.Actor{ID: evil}}),
		custom(evil, nil),
	}
	namer := (&app{}).namer(t.TempDir())
	for _, fact := range list {
		var out bytes.Buffer
		newTeller(&screen{console: console{Writer: &out}}, everything{evil}, namer).tell(fact)
		if i := strings.IndexFunc(out.String(), harmful); i >= 0 {
			t.Errorf("%s lets %q through: %q", fact.Type(), out.String()[i:i+2], out.String())
		}
		st := newStory(namer)
		st.state.Apply(fact)
		st.decided(fact)
		st.timeline(fact)
		out.Reset()
		st.print(&screen{console: console{Writer: &out}}, client.Session{SessionID: evil, Title: evil, State: evil, Agent: evil, CWD: evil})
		if i := strings.IndexFunc(out.String(), harmful); i >= 0 {
			t.Errorf("the story of %s lets %q through: %q", fact.Type(), out.String()[i:i+2], out.String())
		}
	}
}
