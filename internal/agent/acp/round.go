package acp

import (
	"encoding/json"

	"github.com/mahati-host/mahati/internal/agent"
)

// provider is who runs the model of an agent, as far as anybody can tell (R42).
const provider = "acp"

// beginRound records that the model is asked again, where what is said next can be of no
// earlier round: the calls of that have ended, and their results went to the model. The
// protocol tells of no rounds.
func (t *turn) beginRound(v *voice) {
	t.mu.Lock()
	begins := v.worked
	v.worked = false
	t.mu.Unlock()
	if !begins {
		return
	}
	t.endMessage(v)
	t.took(v, v.h.Round(t.record, t.round(v)))
}

// round is who answers in a run: what was chosen, else the model that the agent says to
// have. Where it says nothing the agent counts as a model, and so does a delegate, which
// may have another (R42).
func (t *turn) round(v *voice) agent.Round {
	if v == t.root {
		if is := v.h.Info().Chosen; is.Model != "" {
			return agent.Round{Provider: is.Provider, Model: is.Model}
		}
		if _, _, current := t.peer.settings.models(); current != "" && len(current) <= maxChoice {
			is := modelOf(current)
			return agent.Round{Provider: is.Provider, Model: is.ID}
		}
	}
	return agent.Round{Provider: provider, Model: t.peer.opt.Name}
}

// resettle takes over that the settings of the session are others now: an agent may change
// its model by itself.
func (t *turn) resettle(told json.RawMessage) error {
	var list []setting
	if err := json.Unmarshal(told, &list); err != nil {
		return err
	}
	now := t.peer.settings
	now.ConfigOptions = list
	t.peer.learn(now)
	return nil
}
