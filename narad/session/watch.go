package session

import "github.com/mahati-host/mahati/narad"

// revisions holds the last watch revision of each key, and what the workspace's
// watch events told. None of it is authority.
type revisions struct {
	last        map[revisionKey]int64
	workspaceID string
	sessions    map[string]bool // archived?
	order       []string
}

// revisionKey is what a revision counts for.
type revisionKey struct {
	kind narad.Type
	id   string
}

func newRevisions() revisions {
	return revisions{last: map[revisionKey]int64{}, sessions: map[string]bool{}}
}

// keyOfRevision returns what a watch event's revision counts for. The four workspace
// types count together.
func keyOfRevision(r *narad.Revision) revisionKey {
	switch r.Kind {
	case narad.TypeSessionRevision:
		return revisionKey{r.Kind, ""}
	case narad.TypeRunRevision:
		return revisionKey{r.Kind, r.RunID}
	case narad.TypeWorkflowRevision:
		return revisionKey{r.Kind, r.WorkflowID}
	case narad.TypeNodeRevision:
		return revisionKey{r.Kind, r.WorkflowID + ":" + r.NodeID}
	}
	return revisionKey{narad.TypeWorkspaceRevision, r.WorkspaceID}
}

// identity returns the id of a watch event within the space it shares: the
// session's, or its workspace's.
func identity(r *narad.Revision) string {
	if r.WorkspaceID != "" {
		return "workspace\x00" + r.WorkspaceID + "\x00" + r.EventID
	}
	return r.EventID
}

func (s *State) judgeRevision(r *narad.Revision, strict bool) Result {
	if r.WorkspaceID == "" && s.sessionID != "" && r.SessionID != s.sessionID {
		return result(Ignored, OtherSession)
	}
	if seen, same := s.seen.known(identity(r), r.Fingerprint()); seen && same {
		return Result{Kind: Duplicate}
	} else if seen {
		return result(Gap, EventConflict)
	}
	if s.skips(r) {
		return result(Ignored, ProfileNotClaimed)
	}
	switch {
	case r.Revision > s.revisions.last[keyOfRevision(r)]:
		return Result{}
	case strict:
		return result(Rejected, WatchRegressed)
	}
	return result(Ignored, WatchRegressed)
}

func (s *State) takeRevision(r *narad.Revision, strict bool) Result {
	res := s.judgeRevision(r, strict)
	switch res.Kind {
	case Gap:
		s.gap = true
	case Applied:
		s.revise(r)
	}
	return res
}

func (s *State) revise(r *narad.Revision) {
	s.seen.add(identity(r), r.Fingerprint())
	s.revisions.last[keyOfRevision(r)] = r.Revision
	if r.WorkspaceID == "" {
		s.sessionID = r.SessionID
		return
	}
	s.revisions.workspaceID = r.WorkspaceID
	if r.Kind == narad.TypeWorkspaceRevision {
		return
	}
	if _, known := s.revisions.sessions[r.SessionID]; !known {
		s.revisions.order = append(s.revisions.order, r.SessionID)
	}
	s.revisions.sessions[r.SessionID] = r.Kind == narad.TypeSessionArchived
}
