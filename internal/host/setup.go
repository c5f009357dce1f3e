package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
)

// Models returns the models that an agent offers; none where it offers
// no choice, or has not told of one yet.
func (h *Host) Models(agentName string) []agent.Model {
	list, _ := h.modelsOf(agentName)
	return list
}

// DefaultModel returns the model that a session of an agent gets which names none, if it
// gets one.
func (h *Host) DefaultModel(agentName string) (agent.Model, bool) {
	kind, _ := h.agents.Kind(agentName)
	if offers, ok := kind.(agent.Offers); ok {
		return offers.DefaultModel()
	}
	return agent.Model{}, false
}

func (h *Host) modelsOf(agentName string) (list []agent.Model, known bool) {
	kind, _ := h.agents.Kind(agentName)
	if offers, ok := kind.(agent.Offers); ok {
		return offers.Models()
	}
	return nil, false
}

// Styles returns the names of the styles in which answers can be asked for, sorted.
func (h *Host) Styles() []string { return slices.Sorted(maps.Keys(h.opt.Styles)) }

// refusal says that a session cannot be set up so.
func refusal(why decide.Refusal, detail string) decide.Answer {
	return decide.Answer{Status: decide.Rejected, Detail: detail, Err: why}
}

// prepare completes a command that makes a session or sets one up with what the host alone
// knows, or refuses it. The answer has no status where nothing is wrong.
func (h *Host) prepare(ctx context.Context, id string, c decide.Command) (decide.Command, decide.Answer, error) {
	c, answer, err := h.complete(ctx, id, c)
	if err != nil || answer.Status == "" {
		return c, answer, err
	}
	switch c.(type) {
	case decide.Move, decide.ChooseModel, decide.ChooseVariant, decide.ChooseStyle:
		row, err := h.sessionRow(ctx, id)
		if err == nil && row.State == index.Archived { // that counts first, whatever was asked for
			answer = decide.Answer{Status: decide.Conflict, Detail: "the session is archived", Err: decide.RefusedArchived}
		}
	}
	return c, answer, nil
}

func (h *Host) complete(ctx context.Context, id string, c decide.Command) (decide.Command, decide.Answer, error) {
	switch c := c.(type) {
	case decide.Create:
		return h.prepareCreate(ctx, id, c)
	case decide.Branch:
		return h.prepareBranch(ctx, id, c)
	case decide.Move:
		c.Cwd = filepath.Clean(c.Cwd)
		detail := "repository must be an absolute path"
		if filepath.IsAbs(c.Cwd) {
			detail = h.outside(c.Cwd)
		}
		if detail != "" {
			return c, refusal(decide.RefusedDirectory, detail), nil
		}
		return c, decide.Answer{}, nil
	case decide.ChooseModel:
		of, err := h.setupOf(ctx, id)
		if err != nil {
			return c, decide.Answer{}, err
		}
		answer := h.choose(of.Agent, &c.Provider, &c.Model, &c.Variant)
		return c, answer, nil
	case decide.ChooseVariant:
		of, err := h.setupOf(ctx, id)
		if err != nil || c.Variant == "" {
			return c, decide.Answer{}, err
		}
		return c, h.checkVariant(of, c.Variant), nil
	case decide.ChooseStyle:
		return c, h.checkStyle(c.Style), nil
	}
	return c, decide.Answer{}, nil
}

// outside says why a session cannot work in a directory.
func (h *Host) outside(dir string) string {
	if h.opt.Roots == nil {
		return insideOf([]string{string(filepath.Separator)}, dir)
	}
	return insideOf(h.opt.Roots, dir)
}

func (h *Host) setupOf(ctx context.Context, id string) (index.Session, error) {
	row, err := h.sessionRow(ctx, id)
	if err != nil {
		return index.Session{}, fmt.Errorf("find session: %w", err)
	}
	return index.Read[index.Session](row.Value), nil
}

func (h *Host) prepareCreate(ctx context.Context, id string, c decide.Create) (decide.Command, decide.Answer, error) {
	if _, err := h.sessionRow(ctx, id); !errors.Is(err, journal.ErrNotFound) {
		return c, decide.Answer{}, err // one that exists was checked when it was made
	}
	if refused, err := h.checkCreate(ctx, id, &c); err != nil || refused.Status != "" {
		return c, refused, err
	}
	p := &c.Payload
	if answer := h.checkStyle(p.Style); answer.Status != "" {
		return c, answer, nil
	}
	if p.Model == "" && p.Provider == "" && p.Variant == "" {
		if m, ok := h.DefaultModel(p.Agent); ok {
			p.Provider, p.Model = m.Provider, m.ID
		}
		return c, decide.Answer{}, nil
	}
	return c, h.choose(p.Agent, &p.Provider, &p.Model, &p.Variant), nil
}

// choose finds the model of an agent that is meant: the default where none is named. A
// preset that the model has no use for is left out, and so told.
func (h *Host) choose(agentName string, provider, model, variant *string) decide.Answer {
	offered := h.Models(agentName)
	if len(offered) == 0 {
		return refusal(decide.RefusedNoModel, fmt.Sprintf("the agent %q offers no choice of models", agentName))
	}
	at := slices.IndexFunc(offered, func(m agent.Model) bool {
		return (*provider == "" || m.Provider == *provider) && (*model == "" || m.ID == *model)
	})
	if at < 0 {
		return refusal(decide.RefusedModel, "the agent offers no such model")
	}
	is := offered[at]
	*provider, *model = is.Provider, is.ID
	switch {
	case len(is.Variants) == 0:
		*variant = ""
	case *variant != "" && !slices.Contains(is.Variants, *variant):
		return refusal(decide.RefusedVariant, "the model has no such variant")
	}
	return decide.Answer{}
}

func (h *Host) checkVariant(of index.Session, variant string) decide.Answer {
	for _, m := range h.Models(of.Agent) {
		if m.Provider == of.Provider && m.ID == of.Model && slices.Contains(m.Variants, variant) {
			return decide.Answer{}
		}
	}
	return refusal(decide.RefusedVariant, "the model has no such variant")
}

func (h *Host) checkStyle(name string) decide.Answer {
	if _, known := h.opt.Styles[name]; name == "" || known {
		return decide.Answer{}
	}
	return refusal(decide.RefusedStyle, "the host has no such style")
}

// prepareBranch says what a branch is made with: what its parent has now.
func (h *Host) prepareBranch(ctx context.Context, id string, b decide.Branch) (decide.Command, decide.Answer, error) {
	if _, err := h.sessionRow(ctx, id); !errors.Is(err, journal.ErrNotFound) {
		return b, decide.Answer{}, err
	}
	row, err := h.sessionRow(ctx, b.ParentSessionID)
	if err != nil {
		return b, decide.Answer{}, fmt.Errorf("find the parent: %w", err)
	}
	head, err := h.journal.Head(ctx, b.ParentSessionID)
	if err != nil {
		return b, decide.Answer{}, fmt.Errorf("find the parent: %w", err)
	}
	of := index.Read[index.Session](row.Value)
	through := b.Through
	if through == 0 {
		through = int64(head.Sequence)
	}
	made := decide.Create{Payload: facts.Created{
		WorkspaceID: row.Workspace, Cwd: of.Cwd, ClientKind: b.ClientKind, Title: b.Title, Agent: of.Agent,
		ClientExecutorID: of.ClientExecutorID, RequiredProfiles: of.RequiredProfiles,
		ParentSessionID: b.ParentSessionID, Branch: &facts.Branched{Through: through},
		Provider: of.Provider, Model: of.Model, Variant: of.Variant, Style: of.Style,
	}}
	if b.Title == "" {
		made.Payload.Title = of.Title
	}
	refused, err := h.checkCreate(ctx, id, &made)
	b.Session = made.Payload
	return b, ofParent(refused, of), err
}

// ofParent says of a branch that cannot be made as its parent is that this is the parent's
// matter: the command itself names neither.
func ofParent(refused decide.Answer, parent index.Session) decide.Answer {
	switch refused.Err {
	case decide.RefusedDirectory:
		return decide.Answer{Status: decide.Conflict, Detail: fmt.Sprintf(
			"the session works in %q, where its branch cannot work: %s; move the session first", parent.Cwd, refused.Detail)}
	case decide.RefusedAgent:
		return decide.Answer{Status: decide.Conflict, Detail: fmt.Sprintf("the session's agent %q is not configured any more", parent.Agent)}
	}
	return refused
}

// authorizeBranch asks whether a caller may read the parent of a branch, and make a session
// where it is.
func (h *Host) authorizeBranch(ctx context.Context, p access.Principal, b decide.Branch) (string, error) {
	workspace, err := h.workspace(ctx, p, access.ReadSession, b.ParentSessionID)
	if err != nil || workspace == unknownSession {
		return workspace, err
	}
	return workspace, access.Authorize(p, access.CreateSession, workspace)
}

// offered are the models that the session's agent offers, as decisions know them; none
// while a workflow says what runs.
func (o *owner) offered() []decide.Model {
	if o.flow != nil {
		return nil
	}
	var list []decide.Model
	for _, m := range o.host.Models(o.agentName()) {
		list = append(list, decide.Model{Provider: m.Provider, Model: m.ID})
	}
	return list
}

// chosen is what agents are told of a session's setup.
func (h *Host) chosen(is desk.Setup) agent.Chosen {
	return agent.Chosen{Provider: is.Provider, Model: is.Model, Variant: is.Variant, Style: h.opt.Styles[is.Style]}
}

// lacksModel reports whether a model was chosen of an agent that offers none any more.
func (o *owner) lacksModel(r *activeRun) bool {
	offers, ok := r.kind.(agent.Offers)
	if !ok || r.handle.info.Chosen.Model == "" {
		return false
	}
	list, known := offers.Models()
	return known && len(list) == 0
}

// Waiting returns the messages that wait in the session, in their order.
func (v *View) Waiting(ctx context.Context) ([]desk.Waiting, error) {
	control, err := v.host.replay.Open(ctx, v.row.Session)
	if err != nil {
		return nil, err
	}
	return control.Desk.Queue, nil
}

// Remembered returns the decisions that the session remembers, in the order of the names of
// their rules, which is that of their age unless the clock went back.
func (v *View) Remembered(ctx context.Context) ([]facts.PermissionRule, error) {
	control, err := v.host.replay.Open(ctx, v.row.Session)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(control.Desk.Rules), func(a, b facts.PermissionRule) int { return cmp.Compare(a.Rule, b.Rule) }), nil
}
