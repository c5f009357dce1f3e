package acp

import (
	"encoding/json"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// figures are what the answer to a prompt tells of tokens. Gemini has places of its own
// for it.
type figures struct {
	Usage *struct {
		Input       *int64 `json:"inputTokens"`
		Output      *int64 `json:"outputTokens"`
		Total       *int64 `json:"totalTokens"`
		CachedRead  *int64 `json:"cachedReadTokens"`
		CachedWrite *int64 `json:"cachedWriteTokens"`
		Thought     *int64 `json:"thoughtTokens"`
	} `json:"usage"`
	Meta struct {
		Quota struct {
			Tokens *struct {
				Input  *int64 `json:"input_tokens"`
				Output *int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	} `json:"_meta"`
}

// usageOf returns the figures of a turn, nil where the agent tells none.
func usageOf(answer json.RawMessage) *narad.Usage {
	var told figures
	if json.Unmarshal(answer, &told) != nil {
		return nil
	}
	if known := told.Meta.Quota.Tokens; told.Usage == nil && known != nil {
		return &narad.Usage{PromptTokens: count(known.Input), CompletionTokens: count(known.Output)}
	}
	if told.Usage == nil {
		return nil
	}
	known := told.Usage
	u := &narad.Usage{
		PromptTokens: count(known.Input), CompletionTokens: count(known.Output), TotalTokens: count(known.Total),
	}
	for _, more := range []struct {
		name  string
		value *int64
	}{
		{"cachedReadTokens", known.CachedRead},
		{"cachedWriteTokens", known.CachedWrite},
		{"thoughtTokens", known.Thought},
	} {
		if n := count(more.value); n != nil {
			u.Extra = append(u.Extra, narad.Member{Name: more.name, Value: encode(*n)})
		}
	}
	return u
}

// count leaves out what is no count.
func count(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// tally is what an agent tells of a turn besides its answer: the window of its model, and
// what the session has cost in all.
type tally struct {
	before *float64 // what it had cost before the turn, nil if that is not known
	now    *float64 // what it has cost by now, nil if the turn did not tell
	window *int64
}

func (t *tally) learn(u *update) {
	if u.Size != nil && *u.Size > 0 {
		t.window = u.Size
	}
	if c := u.Cost; c != nil && c.Currency == "USD" && c.Amount >= 0 {
		t.now = &c.Amount
	}
}

// turn is what the turn took. Its cost is what it has added to that of the session.
func (t *tally) turn() facts.Turn {
	took := facts.Turn{ContextWindow: t.window}
	if t.before != nil && t.now != nil && *t.now >= *t.before {
		cost := *t.now - *t.before
		took.CostUSD = &cost
	}
	return took
}

// after is what the session has cost, nil if that is not known: a turn that does not tell
// was not free.
func (t *tally) after() *float64 { return t.now }
