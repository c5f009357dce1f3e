package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// acts is an agent that a test writes as a function.
type acts struct {
	run     func(context.Context, agent.Handle) agent.Ending
	resumes bool
	steers  func(agent.Message) error
	opens   func() error
	closed  chan struct{} // closed with the agent, if not nil
}

func (a acts) Open(context.Context, agent.Session) (agent.Agent, error) {
	if a.opens != nil {
		return a, a.opens()
	}
	return a, nil
}

func (a acts) Resumes() bool                                        { return a.resumes }
func (a acts) Steers() bool                                         { return a.steers != nil }
func (a acts) Run(ctx context.Context, h agent.Handle) agent.Ending { return a.run(ctx, h) }

func (a acts) Steer(_ context.Context, m agent.Message) error {
	if a.steers == nil {
		return errors.ErrUnsupported
	}
	return a.steers(m)
}

func (a acts) Close() error {
	if a.closed != nil {
		close(a.closed)
	}
	return nil
}

// cast names one agent.
type cast struct{ kind agent.Kind }

func (c cast) Kind(string) (agent.Kind, bool) { return c.kind, c.kind != nil }
func (cast) Default() string                  { return "test" }

// stage is a host over a journal in memory.
type stage struct {
	t       *testing.T
	journal journal.Journal
	feed    *feed.Feed
	host    *host.Host
}

// open starts a host. The journal may have seen another one before.
func open(t *testing.T, j journal.Journal, kind agent.Kind, o host.Options) *stage {
	t.Helper()
	if o.Numbers == nil { // verify counts, so the host does
		o.Numbers = numbers.Of
	}
	s := &stage{t: t, journal: j, feed: feed.New(j, feed.Options{})}
	s.host = host.New(j, s.feed, cast{kind}, o)
	if err := s.host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// alone is a host with one session, s1, on the time of a bubble.
func alone(t *testing.T, kind agent.Kind, o host.Options, play func(*testing.T, *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), kind, o)
		defer s.close()
		s.create("s1")
		play(t, s)
	})
}

// close ends the host as an orderly stop does; the journal goes on. Every fact of every
// session is then judged, and the rows are derived again.
func (s *stage) close() {
	s.t.Helper()
	s.end()
	for _, id := range s.sessions() {
		s.facts(id)
	}
	if s.journal.Err() != nil {
		return
	}
	report, err := s.journal.Verify(context.Background(), journal.VerifyOptions{Derive: index.Deriver(numbers.Of)})
	if err != nil || !report.OK() {
		s.t.Errorf("verify: %v %+v", err, report.Problems)
	}
}

// end ends the host without a look at what it left.
func (s *stage) end() {
	s.t.Helper()
	if err := s.host.Close(); err != nil {
		s.t.Error(err)
	}
	s.feed.Close()
}

func (s *stage) sessions() []string {
	s.t.Helper()
	var ids []string
	for row, err := range journal.Each[journal.SessionRow](context.Background(), s.journal, journal.Sessions{}, noDamage(s.t)) {
		if err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, row.Session)
	}
	return ids
}

// noDamage fails a test whose list has a damaged row.
func noDamage(t *testing.T) func(journal.Damage) {
	return func(d journal.Damage) { t.Error(d.Err()) }
}

// newFeed is the fan-out that a host needs.
func newFeed(j journal.Journal) *feed.Feed { return feed.New(j, feed.Options{}) }

func memory(t *testing.T, o journal.Options) journal.Journal {
	t.Helper()
	j, err := journal.NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func (s *stage) do(action access.Action, id string, c decide.Command, commandID string) host.Answer {
	s.t.Helper()
	a, err := s.host.Do(s.t.Context(), access.Owner(), host.Request{Action: action, Session: id, Command: c, CommandID: commandID})
	if err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
	return a
}

func (s *stage) create(id string) {
	s.t.Helper()
	s.do(access.CreateSession, id, create(), "")
}

func create() decide.Create {
	return decide.Create{Payload: facts.Created{
		WorkspaceID: "default", RequiredProfiles: []string{"narad.conversation/v1"},
	}}
}

func (s *stage) say(id, content string) host.Answer {
	s.t.Helper()
	return s.do(access.SendMessage, id, decide.Message{Content: content}, "")
}

// facts returns a session's facts, each judged as strictly as a host must be.
func (s *stage) facts(id string) []narad.Authority {
	s.t.Helper()
	state := session.New(session.Options{Remember: session.RememberAll})
	var list []narad.Authority
	for record, err := range journal.All(context.Background(), s.journal, id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if r := state.ApplyJSON(record.Bytes, true); r.Kind != session.Applied {
			s.t.Fatalf("fact %d: %v %s\n%s", record.Sequence, r.Kind, r.Code, record.Bytes)
		}
		rec, err := narad.Decode(record.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, rec.(narad.Authority))
	}
	return list
}

// story is the types of a session's facts, without the prefix that many share.
func (s *stage) story(id string) string {
	s.t.Helper()
	var types []string
	for _, f := range s.facts(id) {
		types = append(types, string(f.Type()))
	}
	return strings.Join(types, " ")
}

func (s *stage) inbox() []host.Asked {
	s.t.Helper()
	list, _, _, err := s.host.Inbox(s.t.Context(), access.Owner(), "", "", 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *stage) resolve(interrupt, decision string) host.Answer {
	s.t.Helper()
	return s.do(access.ResolveInterrupt, "", decide.Resolve{InterruptID: interrupt, Decision: decision}, "")
}

// asks calls a tool and asks for its permission.
func asks(ctx context.Context, h agent.Handle) agent.Ending {
	id, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{"n":1.10}`)})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	a, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "Write?", Options: []agent.Option{
		{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"},
	}})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(a.Decision)})
	return agent.Ending{StopReason: "completed"}
}

// pass lets time pass in a bubble, for code that stands outside of its function.
func pass(d time.Duration) { <-time.After(d) }

func speaks(ctx context.Context, h agent.Handle) agent.Ending {
	_ = h.Text(ctx, "Hello, ")
	_ = h.Text(ctx, "world.")
	return agent.Ending{StopReason: "completed"}
}

func waits(ctx context.Context, h agent.Handle) agent.Ending {
	<-ctx.Done()
	return agent.Ending{Outcome: agent.Cancelled}
}

const (
	created = "session.custom"
	begun   = "run.started message.user.recorded"
	gated   = "tool.call.started run.started interrupt.requested run.paused"
	decided = "interrupt.resolved run.resumed run.finished"
)

// text is what an agent says in a fact.
func (s *stage) text(f narad.Authority) string {
	if d, ok := f.(*narad.MessageTextDelta); ok {
		return d.Delta
	}
	return ""
}

// repeated is the answer to what is told again.
func repeated(first decide.Answer) decide.Answer {
	first.Repeated = true
	return first
}
