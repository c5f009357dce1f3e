package naryahttp

import (
	"context"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// sessionRoutes are the operations of the tag sessions.
func (b *Binding) sessionRoutes() routes {
	return routes{
		"POST /v1/sessions":                     b.createSession,
		"GET /v1/sessions":                      b.listSessions,
		"GET /v1/sessions/{sessionId}":          b.getSession,
		"GET /v1/sessions/{sessionId}/export":   b.exportSession,
		"POST /v1/sessions/{sessionId}/archive": b.archiveSession,
		"POST /v1/sessions/{sessionId}/restore": b.restoreSession,
		"POST /v1/sessions/{sessionId}/branch":  b.branchSession,
		"POST /v1/sessions/{sessionId}/move":    b.moveSession,
		"POST /v1/sessions/{sessionId}/viewed":  b.viewSession,
		"PUT /v1/sessions/{sessionId}/title":    b.titleSession,
		"PUT /v1/sessions/{sessionId}/model":    b.chooseModel,
		"PUT /v1/sessions/{sessionId}/variant":  b.chooseVariant,
		"PUT /v1/sessions/{sessionId}/style":    b.chooseStyle,
		"PUT /v1/sessions/{sessionId}/posture":  b.setPosture,
		"PUT /v1/sessions/{sessionId}/warming":  b.setWarming,
		"GET /v1/models":                        b.listModels,
		"GET /v1/styles":                        b.listStyles,
		"GET /v1/agents":                        b.listAgents,
	}
}

// getSession answers with everything that is known of a session.
func (b *Binding) getSession(w http.ResponseWriter, r *request) error {
	view, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	s, err := whole(r.Context(), view)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, s)
}

// whole is a session with what stands on no list.
func whole(ctx context.Context, view *host.View) (*narya.Session, error) {
	summary, err := view.Summary(ctx)
	if err != nil {
		return nil, err
	}
	s := sessionOf(summary)
	if round := summary.Spent.LastRound; round != nil {
		s.LastTurnUsage = &narya.TokenUsage{
			InputTokens: round.Input, OutputTokens: round.Output, CacheReadTokens: round.CacheRead,
			CacheWriteTokens: round.CacheWrite, CostUSD: round.CostUSD,
		}
	}
	tasks, err := view.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		s.Tasks = append(s.Tasks, narya.Task{Content: t.Content, Status: narya.TaskStatus(t.Status)})
	}
	if s.Status != narya.Running && s.Status != narya.Waiting {
		return s, nil // nothing waits, so the session's facts are not looked at
	}
	waiting, err := view.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range waiting {
		s.PendingInputs = append(s.PendingInputs, narya.PendingInput{
			EntryID: narya.MessageEntryID(summary.SessionID, q.MessageID), TurnID: narya.UUID(narya.KindRun, q.RunID),
			Kind: narya.InputFollowUp, Sequence: q.Sequence, EnqueuedAt: q.EnqueuedAt,
		})
	}
	return s, nil
}

// sessionOf is a session as a list shows it.
func sessionOf(s host.Summary) *narya.Session {
	is := &narya.Session{
		ID: narya.UUID(narya.KindSession, s.SessionID), Title: s.Title, Repository: s.Cwd, Status: narya.Status(s.State),
		Provider: s.Provider, Model: s.Model, Variant: s.Variant, Style: s.Style, ClientKind: narya.ClientKind(s.ClientKind),
		Posture: narya.Posture(s.Posture), ViewedAt: s.ViewedAt, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	if s.ParentSessionID != "" {
		is.ParentSessionID = narya.UUID(narya.KindSession, s.ParentSessionID)
	}
	if s.Warming != nil {
		is.Warming = &narya.Warming{Enabled: s.Warming.Enabled, CeilingUSD: s.Warming.CeilingUSD}
	}
	if spent := s.Spent; spent.Told {
		is.Usage = &narya.TokenUsage{
			InputTokens: spent.Input, OutputTokens: spent.Output, CacheReadTokens: spent.CacheRead, CacheWriteTokens: spent.CacheWrite,
		}
		if !spent.Unpriced {
			is.Usage.CostUSD = &spent.CostUSD
		}
	}
	is.LastOutcome = narya.Outcome(s.Spent.LastOutcome)
	is.Fit()
	return is
}

// maxScanned is how many sessions one page of a list looks at: one that is shorter than its
// limit may have a next one.
const maxScanned = 2_000

// listSessions lists the sessions that the caller may see, the newest first: those that are
// put away only where they are asked for.
func (b *Binding) listSessions(w http.ResponseWriter, r *request) error {
	status, err := r.word("status", string(narya.Idle), string(narya.Running), string(narya.Waiting), string(narya.Archived))
	if err != nil {
		return err
	}
	kind, err := r.word("clientKind", clientKinds...)
	if err != nil {
		return err
	}
	repository := r.query.Get("repository")
	if r.query.Has("repository") && repository == "" || server.CheckText("repository", repository, maxPath, oneLine) != nil {
		return malformed("repository is no path")
	}
	at, err := b.page(r, "narya sessions", status, kind, repository)
	if err != nil {
		return err
	}
	fits := func(cwd string, s *narya.Session) bool {
		return (status != "" || s.Status != narya.Archived) && (repository == "" || cwd == repository) &&
			(kind == "" || string(s.ClientKind) == kind)
	}
	var items []*narya.Session
	next := at.Cursor
	for scanned := 0; len(items) < at.Limit && scanned < maxScanned; {
		want := at.Limit - len(items)
		found, _, behind, err := b.host.Sessions(r.Context(), r.principal(), host.Filter{State: status, Cursor: next, Limit: want})
		if err != nil {
			return err
		}
		for _, s := range found {
			if is := sessionOf(s); s.Narya != 0 && fits(s.Cwd, is) {
				items = append(items, is)
			}
		}
		scanned, next = scanned+want, behind
		if next == "" {
			break
		}
	}
	return writeList(w, at, items, next)
}
