package desk

import (
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Spent is what the runs of a session took, as far as their ends tell (R42). What no run
// has told is nil or empty, which is not zero.
type Spent struct {
	// Input, Output and the cache's are tokens of all runs; Told says that one told any.
	Input      int64  `json:"input,omitzero"`
	Output     int64  `json:"output,omitzero"`
	CacheRead  *int64 `json:"cacheRead,omitzero"`
	CacheWrite *int64 `json:"cacheWrite,omitzero"`
	Told       bool   `json:"told,omitzero"`
	// CostUSD is what all runs cost; it is known unless Unpriced says that one had no price.
	CostUSD  float64 `json:"costUsd,omitzero"`
	Unpriced bool    `json:"unpriced,omitzero"`
	// LastRound is the newest round of the session's own conversation.
	LastRound *facts.Tokens `json:"lastRound,omitzero"`
	// LastOutcome is finished or failed, as the last run of the conversation or the last
	// workflow ended; empty after one that was broken off.
	LastOutcome string `json:"lastOutcome,omitzero"`
}

// How a run ended.
const (
	OutcomeFinished = "finished"
	OutcomeFailed   = "failed"
)

// add counts a run that has ended. Gates take nothing.
func (s *Spent) add(terminal narad.Authority) {
	e := terminal.Envelope()
	if facts.Gate(e) {
		return
	}
	usage, outcome := endOf(terminal)
	s.count(usage)
	took := facts.TurnOf(e)
	if took.CostUSD == nil {
		s.Unpriced = true
	} else {
		s.CostUSD += *took.CostUSD
	}
	if e.RunID == e.RootRunID && e.WorkflowID == "" {
		s.LastOutcome = outcome
		if took.LastRound != nil {
			s.LastRound = took.LastRound
		}
	}
}

// endWorkflow notes how a workflow ended. What its runs took they have told.
func (s *Spent) endWorkflow(as narad.Type) {
	switch as {
	case narad.TypeWorkflowFinished:
		s.LastOutcome = OutcomeFinished
	case narad.TypeWorkflowError:
		s.LastOutcome = OutcomeFailed
	default:
		s.LastOutcome = ""
	}
}

func endOf(terminal narad.Authority) (usage *narad.Usage, outcome string) {
	switch f := terminal.(type) {
	case *narad.RunFinished:
		return f.Usage, OutcomeFinished
	case *narad.RunError:
		return f.Usage, OutcomeFailed
	case *narad.RunCancelled:
		return f.Usage, ""
	}
	return nil, ""
}

func (s *Spent) count(u *narad.Usage) {
	if u == nil || u.PromptTokens == nil && u.CompletionTokens == nil {
		return
	}
	s.Told = true
	s.Input, s.Output = s.Input+known(u.PromptTokens), s.Output+known(u.CompletionTokens)
	for _, m := range u.Extra {
		n, err := strconv.ParseInt(string(m.Value), 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch m.Name {
		case "cachedReadTokens":
			s.CacheRead = sum(s.CacheRead, n)
		case "cachedWriteTokens":
			s.CacheWrite = sum(s.CacheWrite, n)
		}
	}
}

func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return max(*n, 0)
}

// sum is a new number: the old one may be another desk's too.
func sum(so *int64, n int64) *int64 {
	n += known(so)
	return &n
}
