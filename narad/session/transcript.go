package session

import "github.com/mahati-host/mahati/narad"

// Transcript returns the messages that a person is shown, in the order in which they
// appeared (§9.2). With an empty id it is the primary transcript: the messages of the
// session, and those of the active top-level run, or of the one that began last. With the
// id of a run it is what that run said, as somebody sees who opens it. What is shown of a
// message that was redacted is its DisplayReplacement.
func (s *State) Transcript(runID string) []Message {
	primary := runID == ""
	if primary {
		runID = s.lastTopLevelRun()
	}
	var shown []Message
	for _, m := range s.Messages() {
		ofSession := m.MessageScope == narad.ScopeSession || m.MessageScope == "" && m.RunID == ""
		ofRun := runID != "" && (m.RunID == runID || m.RunID == "" && m.RootRunID == runID)
		if primary && ofSession || ofRun {
			shown = append(shown, m)
		}
	}
	return shown
}

// lastTopLevelRun returns the top-level run that began last: an active one is always it.
func (s *State) lastTopLevelRun() (id string) {
	last := int64(0)
	for _, r := range s.runs {
		if r.RunID == r.RootRunID && r.StartedSequence > last {
			id, last = r.RunID, r.StartedSequence
		}
	}
	return id
}
