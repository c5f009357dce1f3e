package host

import (
	"context"
	"fmt"
	"testing"
	"time"
	"errors"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

type fakeKind struct{}
func (fakeKind) Open(context.Context, agent.Session) (agent.Agent, error) { return fakeAgent{}, nil }
func (fakeKind) Resumes() bool { return false }
func (fakeKind) Steers() bool { return false }
type fakeAgent struct{}
func (fakeAgent) Run(ctx context.Context, h agent.Handle) agent.Ending {
	fmt.Println(h.Text(ctx, "hello "), h.Text(ctx, "world"))
	id, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{"a":1}`)})
	fmt.Println(id, err)
	a, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "ok?", Options: []agent.Option{{ID: "1", Action: "approve"}, {ID: "2", Action: "deny"}}})
	fmt.Println(a, err)
	h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`"done"`)})
	n, err := h.StartRun(ctx, agent.Nested{Name: "x", Prompt: "do"})
	n.Text(ctx, "nested")
	n.End(ctx, agent.Ending{})
	a, err = h.Ask(ctx, agent.Ask{Questions: []agent.Question{{Text: "color?", Options: []string{"red", "blue"}, Recommended: -1}}})
	fmt.Println(a, string(a.Answers), err)
	h.Text(ctx, "bye")
	return agent.Ending{StopReason: "completed"}
}
func (fakeAgent) Steer(context.Context, agent.Message) error { return errors.ErrUnsupported }
func (fakeAgent) Close() error { return nil }
type fakeAgents struct{}
func (fakeAgents) Kind(string) (agent.Kind, bool) { return fakeKind{}, true }
func (fakeAgents) Default() string { return "fake" }

func TestSmoke(t *testing.T) {
	j, err := journal.NewMemory(journal.Options{})
	if err != nil { t.Fatal(err) }
	f := feed.New(j, feed.Options{})
	h := New(j, f, fakeAgents{}, Options{})
	ctx := t.Context()
	if err := h.Start(ctx); err != nil { t.Fatal(err) }
	p := access.Owner()
	a, err := h.Do(ctx, p, Request{Action: access.CreateSession, Session: "s1", Command: decide.Create{Payload: facts.Created{WorkspaceID: "default"}}})
	fmt.Println(a, err)
	a, err = h.Do(ctx, p, Request{Action: access.SendMessage, Session: "s1", CommandID: "c1", Command: decide.Message{Content: "hi"}})
	fmt.Println(a, err)
	a, err = h.Do(ctx, p, Request{Action: access.SendMessage, Session: "s1", CommandID: "c1", Command: decide.Message{Content: "hi"}})
	fmt.Println(a, err)
	a, err = h.Do(ctx, p, Request{Action: access.SendMessage, Session: "s1", CommandID: "c2", Command: decide.Message{Content: "again"}})
	fmt.Println(a, err)
	for i := 0; i < 4; i++ {
		for {
			l, _, err := h.Inbox(ctx, p, "", "", 10)
			if err != nil { t.Fatal(err) }
			if len(l) > 0 {
				a, err = h.Do(ctx, p, Request{Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: l[0].InterruptID, Decision: l[0].Actions[0]}})
				fmt.Println("resolve", a, err)
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	time.Sleep(200 * time.Millisecond)
	v, err := h.Attach(ctx, p, access.ReadSession, "s1")
	if err != nil { t.Fatal(err) }
	c, err := v.Read(ctx, Cursor{}, Page{})
	for _, r := range c.Records { fmt.Println(string(r.Bytes)) }
	fmt.Println(v.Summary(ctx))
	f.Close()
	h.Close()
	j.Close()
}
