package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

func invalid(detail string) error { return fmt.Errorf("%w: %s", agent.ErrInvalid, detail) }

func (h *handle) EndMessage(ctx context.Context) error {
	_, err := h.do(ctx, &task{command: decide.EndMessage{RunID: h.info.RunID}})
	return err
}

// maxResponse is where a tool's response is cut, so that its fact stays below the size
// of an event (R7).
const maxResponse = 480_000

func (h *handle) StartTool(ctx context.Context, t agent.Tool) (string, error) {
	id := h.o.host.opt.NewID()
	if t.Args == nil {
		t.Args = narad.Raw("{}")
	}
	_, err := h.do(ctx, &task{command: decide.StartTool{
		RunID: h.info.RunID, ToolCallID: id, AgentID: t.AgentID, Name: t.Name, Kind: t.Kind, Title: t.Title, Args: t.Args,
	}})
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	h.tools[id] = knownTool{Tool: t}
	h.mu.Unlock()
	return id, nil
}

func (h *handle) FinishTool(ctx context.Context, toolCallID string, r agent.ToolResult) error {
	finish := decide.FinishTool{
		RunID: h.info.RunID, ToolCallID: toolCallID, Outcome: r.Outcome, Response: r.Response,
		Code: shorten(r.Code), Message: shorten(r.Message), Touches: touched(r.Touches),
	}
	switch {
	case r.Response == nil:
		finish.Response = narad.Raw("null")
	case len(r.Response) > maxResponse:
		return h.finishLarge(ctx, finish)
	}
	_, err := h.do(ctx, &task{command: finish})
	if errors.Is(err, agent.ErrTooLarge) { // by its numbers, or because it nests too deep
		return h.finishLarge(ctx, finish)
	}
	return h.finished(toolCallID, err)
}

// Bounds of the files that a call touched: how many, and the bytes of a path.
const (
	maxTouches = 128
	maxPath    = 4096
)

// touched is as much of what a call touched as a fact may hold.
func touched(list []facts.FileTouch) []facts.FileTouch {
	fits := make([]facts.FileTouch, 0, min(len(list), maxTouches))
	for _, t := range list {
		if len(fits) == maxTouches {
			break
		}
		if t.Path != "" && len(t.Path) <= maxPath && utf8.ValidString(t.Path) {
			fits = append(fits, t)
		}
	}
	return fits
}

// finishLarge finishes a call whose response no event can hold.
func (h *handle) finishLarge(ctx context.Context, finish decide.FinishTool) error {
	response, artifacts, release := h.asArtifact(finish.Response, finish.ToolCallID)
	defer release()
	finish.Response, finish.Artifacts = response, artifacts
	_, err := h.do(ctx, &task{command: finish})
	return h.finished(finish.ToolCallID, err)
}

// finished forgets a call that has ended.
func (h *handle) finished(toolCallID string, err error) error {
	if err == nil {
		h.mu.Lock()
		delete(h.tools, toolCallID)
		h.mu.Unlock()
	}
	return err
}

// previewBytes is how much is shown of a value that no event can hold.
const previewBytes = 4 << 10

// cut replaces a value that no event can hold by its size and its beginning.
func cut(value narad.Raw) narad.Raw {
	text := value[:min(len(value), previewBytes)]
	small, err := facts.Value(struct {
		Truncated bool   `json:"truncated"`
		Bytes     int    `json:"bytes"`
		Preview   string `json:"preview"`
	}{true, len(value), string(text[:completeRunes(text)])})
	if err != nil {
		return narad.Raw(`{"truncated":true}`)
	}
	return small
}

func (h *handle) Progress(ctx context.Context, p agent.Progress) error {
	c := decide.Progress{
		RunID: h.info.RunID, ProgressID: p.ID, Category: p.Category, Label: p.Label, Detail: p.Detail,
		Status: p.Status, Privacy: p.Privacy,
	}
	if p.Plan != nil {
		c.InPlan, c.PlanLater, c.Plan = true, p.Plan.Later, p.Plan.Steps
	}
	_, err := h.do(ctx, &task{command: c})
	return err
}

func (h *handle) Tasks(ctx context.Context, agentID string, plan []facts.Planned) error {
	_, err := h.do(ctx, &task{command: decide.Tasks{RunID: h.info.RunID, AgentID: shorten(agentID), Plan: plan}})
	return err
}

// maxName bounds a name (DESIGN §10).
const maxName = 256

func (h *handle) Round(ctx context.Context, r agent.Round) error {
	for _, name := range []string{r.Provider, r.Model} {
		if name == "" || len(name) > maxName {
			return invalid("a round names its provider and its model")
		}
	}
	value, err := facts.Value(facts.Rounded{Provider: r.Provider, Model: r.Model})
	if err != nil {
		return invalid("the names of a round are no text")
	}
	_, err = h.do(ctx, &task{command: decide.Custom{RunID: h.info.RunID, Name: facts.Round, Value: value}})
	return err
}

func (h *handle) Custom(ctx context.Context, name string, value narad.Raw) error {
	if strings.HasPrefix(name, facts.Prefix) {
		return invalid("names under " + facts.Prefix + " are the host's")
	}
	_, err := h.do(ctx, &task{command: decide.Custom{RunID: h.info.RunID, Name: name, Value: value}})
	return err
}

func (h *handle) Remember(ctx context.Context, ref string) error {
	if h.forgets {
		return nil
	}
	_, err := h.do(ctx, &task{command: decide.Remember{RunID: h.info.RunID, Agent: h.agentName, Ref: ref}})
	return err
}
