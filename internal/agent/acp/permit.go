package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Why a permission expires that nobody decided.
const (
	withdrawn = "withdrawn"  // the agent took its request back
	turnOver  = "turn_ended" // it ended the turn without an answer
	agentGone = "agent_gone" // there is nobody to answer any more
)

// asking is a permission that waits for a person.
type asking struct {
	id        json.RawMessage // of the request
	ctx       context.Context // ends with the request or with what it waits for
	cancel    context.CancelFunc
	withdrawn bool // guarded by turn.mu
}

// permit asks for a permission. The call is announced, and the question recorded, before
// the next line is read; the answer is waited for aside.
func (t *turn) permit(id json.RawMessage, r *request) {
	tool := t.gated(r)
	if tool == nil {
		t.nobody(id)
		return
	}
	a := t.begin(id)
	if a == nil {
		t.nobody(id)
		return
	}
	options, chosen := offers(r.Options)
	interrupt, err := tool.by.h.OpenGate(a.ctx, agent.Permission{
		ToolCallID: tool.id, Title: tool.title, Kind: tool.knownKind(), Paths: t.files(tool), Resource: tool.resource(), Detail: tool.detail(), Options: options,
	})
	if err != nil {
		t.unanswered(tool, err)
		t.finished(a)
		t.nobody(id)
		return
	}
	t.asks.Go(func() {
		defer t.finished(a)
		t.await(a, tool, interrupt, chosen)
	})
}

// nobody answers that nobody decided, which permits nothing.
func (t *turn) nobody(id json.RawMessage) { _ = t.peer.conn.answer(id, outcomeOf("")) }

// begin notes an open permission, within the bound; nil beyond it.
func (t *turn) begin(id json.RawMessage) *asking {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.asked) >= maxOpen {
		return nil
	}
	a := &asking{id: id}
	a.ctx, a.cancel = context.WithCancel(t.asking)
	t.asked = append(t.asked, a)
	return a
}

func (t *turn) finished(a *asking) {
	a.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = slices.DeleteFunc(t.asked, func(known *asking) bool { return known == a })
}

// cancelled reads which request the agent takes back.
func (t *turn) cancelled(params json.RawMessage) error {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return err
	}
	t.withdraw(p.RequestID)
	return nil
}

// withdraw ends a permission that the agent does not want any more.
func (t *turn) withdraw(id json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.asked {
		if bytes.Equal(a.id, id) {
			a.withdrawn = true
			a.cancel()
		}
	}
}

// await hands the answer of a permission to the agent. A question that needs none any
// more is closed; but for those of a run that is stopped, which the host closes.
func (t *turn) await(a *asking, tool *tool, interrupt string, chosen map[string]string) {
	answer, err := tool.by.h.Await(a.ctx, interrupt)
	switch {
	case err == nil && answer.Decision == narad.DecisionExpired:
		t.nobody(a.id) // the call has ended meanwhile
	case err == nil:
		if !strings.HasPrefix(answer.Decision, "approve") {
			t.deny(tool, answer.Said)
		}
		_ = t.peer.conn.answer(a.id, outcomeOf(chosen[answer.Decision]))
	case a.ctx.Err() == nil || t.stopped():
		t.unanswered(tool, err)
		t.nobody(a.id)
	default:
		t.giveUp(a, tool, interrupt)
	}
}

// giveUp closes a question that nobody waits for, and tells the agent so.
func (t *turn) giveUp(a *asking, tool *tool, interrupt string) {
	t.mu.Lock()
	reason := t.over
	if a.withdrawn {
		reason = withdrawn
	}
	t.mu.Unlock()
	t.took(tool.by, tool.by.h.Retract(t.record, interrupt, reason))
	if reason == withdrawn {
		_ = t.peer.conn.refuse(a.id, codeCancelled, "request cancelled")
		return
	}
	t.nobody(a.id)
}

// gated returns the open call that a permission is about, announced; nil if it may not
// start any more.
func (t *turn) gated(r *request) *tool {
	tool := t.find(r.ToolCall.ToolCallID)
	if tool == nil {
		if tool = t.newTool(&r.ToolCall, true); tool == nil {
			return nil
		}
	}
	if err := tool.learn(&r.ToolCall); err != nil || !t.announce(tool) {
		return nil
	}
	return tool
}

// unanswered takes the error of a permission that nobody decided. That the run is
// stopped or has ended is none.
func (t *turn) unanswered(tool *tool, err error) {
	if t.asking.Err() == nil {
		t.took(tool.by, err)
	}
}

// words are the actions under which an agent's options are offered (R11), in this order:
// what is offered first may look like the usual answer.
var words = []struct {
	kind   wire.PermissionOptionKind
	action string
}{
	{wire.PermissionOptionKindAllowOnce, "approve"},
	{wire.PermissionOptionKindAllowAlways, "approve_always"},
	{wire.PermissionOptionKindRejectOnce, "deny"},
	{wire.PermissionOptionKindRejectAlways, "deny_always"},
}

// offers returns what a person may answer, and the agent's option behind each word. Of
// several options of one kind the first is offered. To deny is always possible: an agent
// without that option is told that nobody decided, which permits nothing.
func offers(list []wire.PermissionOption) ([]agent.Option, map[string]string) {
	var offered []agent.Option
	chosen := map[string]string{}
	for _, word := range words {
		i := slices.IndexFunc(list, func(o wire.PermissionOption) bool {
			return o.Kind == word.kind && o.OptionId != ""
		})
		switch {
		case i >= 0:
			chosen[word.action] = string(list[i].OptionId)
			offered = append(offered, agent.Option{
				ID: string(list[i].OptionId), Name: label(list[i].Name, maxName), Action: word.action,
			})
		case word.action == "deny":
			offered = append(offered, agent.Option{Name: "Deny", Action: word.action})
		}
	}
	return offered, chosen
}

// outcomeOf is the answer to a permission request: the option that was chosen, or that
// none was.
func outcomeOf(option string) wire.RequestPermissionResponse {
	if option == "" {
		return wire.RequestPermissionResponse{Outcome: wire.NewRequestPermissionOutcomeCancelled()}
	}
	return wire.RequestPermissionResponse{
		Outcome: wire.NewRequestPermissionOutcomeSelected(wire.PermissionOptionId(option)),
	}
}

// maxDetail bounds what is shown of a call when a permission is asked for it. The whole
// stands in its arguments.
const maxDetail = 8 << 10

// resource says what a call touches: the command that it runs, else its first file, else
// the argument that names it.
func (tool *tool) resource() string {
	if command := tool.argument("command"); command != "" {
		return command
	}
	if len(tool.paths) > 0 {
		return tool.paths[0]
	}
	for _, name := range []string{"url", "path", "file_path", "filePath", "query", "pattern"} {
		if s := tool.argument(name); s != "" {
			return s
		}
	}
	return ""
}

// argument returns an argument as text, "" if it is none.
func (tool *tool) argument(name string) string {
	value := tool.args.Field(name)
	if s, ok := value.IsString(); ok {
		return short(s, maxDetail)
	}
	words, _ := value.Elements()
	return short(joined(words), maxDetail)
}

func joined(words []narad.Raw) string {
	var list []string
	for _, w := range words {
		if s, ok := w.IsString(); ok {
			list = append(list, s)
		}
	}
	return strings.Join(list, " ")
}

// detail says what a call is about to do: its text, and the changes of files.
func (tool *tool) detail() string {
	parts := []string{tool.content.Text}
	for _, d := range tool.content.Diffs {
		old := ""
		if d.Old != nil {
			old = *d.Old
		}
		parts = append(parts, "--- "+d.Path+"\n"+short(old, maxDetail)+"\n+++ "+d.Path+"\n"+short(d.New, maxDetail))
	}
	return short(strings.TrimSpace(strings.Join(parts, "\n")), maxDetail)
}
