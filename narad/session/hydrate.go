package session

import (
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// judgeSnapshot says whether a transcript may be taken; whether it changes anything
// is only known after taking it.
func (s *State) judgeSnapshot(m *narad.MessagesSnapshot) Result {
	switch {
	case s.skips(m):
		return result(Ignored, ProfileNotClaimed)
	case s.sessionID != "" && m.SessionID != s.sessionID:
		return result(Rejected, OtherSession)
	}
	return Result{}
}

// takeSnapshot replaces the transcript that a snapshot covers (§9.3). It moves no
// cursor. Where the state is ahead of the snapshot, what came after it stays.
func (s *State) takeSnapshot(m *narad.MessagesSnapshot) Result {
	if r := s.judgeSnapshot(m); r.Kind != Applied {
		return r
	}
	s.sessionID = m.SessionID
	covered := snapshotMessages(m)
	if m.CoversThroughSessionSequence >= s.last || len(s.messages.order) == 0 {
		s.messages, s.reasoning = transcriptOf(covered), newThoughts()
		s.covers = m.CoversThroughSessionSequence
		return Result{}
	}
	merged := s.mergeTail(covered, m.CoversThroughSessionSequence)
	if slices.EqualFunc(merged, s.messages.order, sameMessage) {
		return result(Ignored, SnapshotUnchanged)
	}
	s.covers = max(s.covers, m.CoversThroughSessionSequence)
	s.messages = transcriptOf(merged)
	return Result{}
}

// mergeTail returns the snapshot's messages and then those that came after what it
// covers.
func (s *State) mergeTail(covered []*message, covers int64) []*message {
	inSnapshot := map[string]bool{}
	for _, m := range covered {
		inSnapshot[m.MessageID] = true
	}
	var tail []*message
	inTail := map[string]bool{}
	for _, m := range s.messages.order {
		if m.SessionSequence > covers || m.SessionSequence == 0 && !inSnapshot[m.MessageID] {
			tail = append(tail, m)
			inTail[m.MessageID] = true
		}
	}
	merged := slices.DeleteFunc(covered, func(m *message) bool { return inTail[m.MessageID] })
	return append(merged, tail...)
}

func sameMessage(a, b *message) bool {
	return a.MessageID == b.MessageID && a.Role == b.Role && string(a.content) == string(b.content)
}

func transcriptOf(list []*message) transcript {
	t := newTranscript()
	for _, m := range list {
		t.put(m)
	}
	return t
}

func snapshotMessages(m *narad.MessagesSnapshot) []*message {
	items := m.Items()
	list := make([]*message, len(items))
	for i, item := range items {
		list[i] = &message{
			MessageID: item.MessageID, Role: item.Role, Scope: item.MessageScope,
			RootRunID: item.RootRunID, RunID: item.RunID, Timestamp: item.Timestamp,
			SessionSequence: item.SessionSequence, AttachmentIDs: item.AttachmentIDs,
			content: []byte(item.Content), streaming: !item.Completed, redacted: item.Redacted,
		}
	}
	return list
}
