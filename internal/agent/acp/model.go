package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
)

// What agents let their clients choose: settings of a session, each of a category. Agents
// of before these settings list models on their own.
const (
	categoryModel   = "model"
	categoryThought = "thought_level"
	methodSetModel  = "session/set_model"
	maxChoices      = 256
	maxChoice       = 256
)

// settings are what an agent tells of the choices of its session.
type settings struct {
	ConfigOptions []setting `json:"configOptions"`
	Models        struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
}

// setting is one choice. Its values stand in a list, or in groups of them.
type setting struct {
	ID       string `json:"id"`
	Category string `json:"category"`
	Type     string `json:"type"`
	Current  value  `json:"currentValue"`
	Options  []struct {
		Value   value `json:"value"`
		Options []struct {
			Value value `json:"value"`
		} `json:"options"`
	} `json:"options"`
}

// value is that of a setting; of one that is no text nothing is known.
type value string

// UnmarshalJSON takes any value.
func (v *value) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil && len(text) <= maxChoice {
		*v = value(text)
	}
	return nil
}

func (s *setting) values() []string {
	var list []string
	for _, o := range s.Options {
		if o.Value != "" {
			list = append(list, string(o.Value))
		}
		for _, in := range o.Options {
			list = append(list, string(in.Value))
		}
	}
	return list[:min(len(list), maxChoices)]
}

// of returns the setting of a category.
func (s *settings) of(category string) (setting, bool) {
	i := slices.IndexFunc(s.ConfigOptions, func(o setting) bool { return o.Category == category && o.ID != "" })
	if i < 0 {
		return setting{}, false
	}
	return s.ConfigOptions[i], true
}

// catalogue is what the agents of a kind have told of the models that they run on.
type catalogue struct {
	mu    sync.Mutex
	told  bool          // guarded by mu
	known []agent.Model // guarded by mu
}

// Models returns the configured models, or those of which an agent told when it made or
// loaded its last session.
func (k *kind) Models() (list []agent.Model, known bool) {
	if len(k.opt.Models) > 0 {
		return slices.Clone(k.opt.Models), true
	}
	k.opt.catalogue.mu.Lock()
	defer k.opt.catalogue.mu.Unlock()
	return slices.Clone(k.opt.catalogue.known), k.opt.catalogue.told
}

// DefaultModel is the first that is configured. What an agent told may be gone tomorrow, so
// nobody gets that who did not choose it.
func (k *kind) DefaultModel() (agent.Model, bool) {
	if len(k.opt.Models) == 0 {
		return agent.Model{}, false
	}
	return k.opt.Models[0], true
}

// learn notes what an agent offers, the model first that it has now.
func (c *catalogue) learn(s *settings) {
	models, variants, current := s.models()
	list := make([]agent.Model, 0, len(models))
	for _, id := range models {
		m := modelOf(id)
		m.Variants = variants
		if id == current {
			list = slices.Insert(list, 0, m)
			continue
		}
		list = append(list, m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.told = list, true
}

// models returns what an agent calls its models and their variants, and the model that it
// has now.
func (s *settings) models() (models, variants []string, current string) {
	if o, ok := s.of(categoryThought); ok {
		variants = o.values()
	}
	if o, ok := s.of(categoryModel); ok {
		return o.values(), variants, string(o.Current)
	}
	for _, m := range s.Models.Available[:min(len(s.Models.Available), maxChoices)] {
		if m.ID != "" && len(m.ID) <= maxChoice {
			models = append(models, m.ID)
		}
	}
	return models, variants, s.Models.Current
}

// modelOf is a model by what an agent calls it: provider/model, else one of a provider of
// which nothing is known (R42).
func modelOf(id string) agent.Model {
	if m, err := agent.ParseModel(id); err == nil {
		return m
	}
	return agent.Model{Provider: provider, ID: id}
}

var errModel = &failure{code: agent.CodeNoModel, message: "The agent does not offer the model that was chosen: choose another one."}

// choose lets the agent run on what was chosen. A preset that it does not know is left out.
func (p *peer) choose(ctx context.Context, is agent.Chosen) error {
	if is.Model == "" {
		return nil
	}
	models, _, current := p.settings.models()
	named := func(id string) bool { return id == is.Model || id == is.Provider+"/"+is.Model }
	at := slices.IndexFunc(models, named)
	switch {
	case at < 0:
		return errModel
	case models[at] == current:
	default:
		if err := p.setModel(ctx, models[at]); err != nil {
			return err
		}
	}
	o, ok := p.settings.of(categoryThought)
	if !ok || is.Variant == "" || string(o.Current) == is.Variant || !slices.Contains(o.values(), is.Variant) {
		return nil
	}
	return p.set(ctx, o.ID, is.Variant)
}

func (p *peer) setModel(ctx context.Context, id string) error {
	if o, ok := p.settings.of(categoryModel); ok {
		return p.set(ctx, o.ID, id)
	}
	ask := map[string]string{"sessionId": p.sessionID, "modelId": id}
	if err := p.conn.ask(ctx, methodSetModel, ask, new(json.RawMessage)); err != nil {
		return fmt.Errorf("choose a model: %w", err)
	}
	p.settings.Models.Current = id
	return nil
}

// set changes a setting. The answer tells all settings as they are then.
func (p *peer) set(ctx context.Context, id, to string) error {
	ask := map[string]string{"sessionId": p.sessionID, "configId": id, "value": to}
	var answer settings
	if err := p.conn.ask(ctx, wire.AgentMethodSessionSetConfigOption, ask, &answer); err != nil {
		return fmt.Errorf("change a setting: %w", err)
	}
	if len(answer.ConfigOptions) > 0 {
		p.settings.ConfigOptions = answer.ConfigOptions
		return nil
	}
	for i, o := range p.settings.ConfigOptions {
		if o.ID == id {
			p.settings.ConfigOptions[i].Current = value(to)
		}
	}
	return nil
}

// preface is what stands in front of a prompt: the style in which to answer, and what was
// said before the agent knew the session.
func preface(info agent.Info) []wire.ContentBlock {
	var blocks []wire.ContentBlock
	if len(info.Before) > 0 {
		var text strings.Builder
		text.WriteString("This conversation goes on from an earlier one. Its last messages were:\n")
		for _, m := range info.Before {
			text.WriteString("\n" + m.Role + ": " + m.Content + "\n")
		}
		blocks = append(blocks, wire.TextBlock(text.String()))
	}
	if info.Chosen.Style != "" {
		blocks = append(blocks, wire.TextBlock("How to answer: "+info.Chosen.Style))
	}
	return blocks
}
