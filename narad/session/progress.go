package session

import "github.com/mahati-host/mahati/narad"

// Activity is one item of progress as the facts tell it.
type Activity struct {
	ProgressID string               `json:"progressId"`
	RunID      string               `json:"-"`
	RootRunID  string               `json:"rootRunId"`
	Category   string               `json:"category"`
	Label      string               `json:"label"`
	Detail     string               `json:"detail,omitzero"`
	Status     narad.ProgressStatus `json:"status"`
	Privacy    narad.Privacy        `json:"privacy"`
	Usage      *narad.Usage         `json:"usage,omitzero"`
	RecordedAt string               `json:"recordedAt,omitzero"`
	UpdatedAt  string               `json:"updatedAt,omitzero"`
}

// activities is the progress of one run, in the order of first mention.
type activities struct {
	byID  map[string]*Activity
	order []string
}

func (s *State) guardProgress(p *narad.ProgressRecorded) Code {
	switch run := s.runs[p.RunID]; {
	case run == nil:
		return RunNotStarted
	case run.State.Ended():
		return RunEnded
	}
	return ""
}

func (s *State) progressRecorded(p *narad.ProgressRecorded) {
	of := s.progress[p.RunID]
	if of == nil {
		of = &activities{byID: map[string]*Activity{}}
		s.progress[p.RunID] = of
	}
	if s.opt.NoDisplay && p.Status != narad.ProgressActive {
		of.drop(p.ProgressID)
		return
	}
	a := of.byID[p.ProgressID]
	if a == nil {
		a = &Activity{ProgressID: p.ProgressID, RecordedAt: p.Timestamp}
		of.byID[p.ProgressID] = a
		of.order = append(of.order, p.ProgressID)
	}
	a.RunID, a.RootRunID, a.Category, a.Label = p.RunID, p.RootRunID, p.Category, p.Label
	a.Status, a.Privacy, a.UpdatedAt = p.Status, p.Privacy, p.Timestamp
	if p.Detail != "" {
		a.Detail = p.Detail
	}
	if p.Usage != nil {
		a.Usage = p.Usage
	}
}

func (a *activities) drop(id string) {
	delete(a.byID, id)
	for i, known := range a.order {
		if known == id {
			a.order = append(a.order[:i], a.order[i+1:]...)
			return
		}
	}
}
