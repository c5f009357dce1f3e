package naradhttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// inbox lists the open interrupts that the caller may decide.
func (b *Binding) inbox(w http.ResponseWriter, r *request) error {
	n, err := limit(r, maxPage)
	if err != nil {
		return err
	}
	if state := r.query.Get("state"); state != "" && state != "open" {
		return bad("bad_request", "state must be open")
	}
	session := r.query.Get("sessionId")
	if err := checkIDs(named{"sessionId", session}); err != nil {
		return err
	}
	scope := []string{"inbox", session}
	place, err := b.listCursor(r, scope...)
	if err != nil {
		return err
	}
	open, lost, next, err := b.host.Inbox(r.Context(), r.principal(), session, place, n)
	if err != nil {
		return err
	}
	items := make([]asked, 0, len(open))
	for _, a := range open {
		items = append(items, askedOf(a))
	}
	return write(w, http.StatusOK, page(items, lost, b.host.Seal(next, scope...)))
}

// asked is one open interrupt.
type asked struct {
	InterruptID     string    `json:"interruptId"`
	SessionID       string    `json:"sessionId"`
	WorkspaceID     string    `json:"workspaceId"`
	SessionTitle    string    `json:"sessionTitle,omitzero"`
	RootRunID       string    `json:"rootRunId,omitzero"`
	RunID           string    `json:"runId,omitzero"`
	WorkflowID      string    `json:"workflowId,omitzero"`
	Scope           string    `json:"scope"`
	WaitID          string    `json:"waitId"`
	Kind            string    `json:"kind"`
	Actions         []string  `json:"actions"`
	Title           string    `json:"title,omitzero"`
	Message         string    `json:"message,omitzero"`
	Input           narad.Raw `json:"input,omitzero"`
	RequestedAt     string    `json:"requestedAt"`
	ExpiresAt       string    `json:"expiresAt,omitzero"`
	SessionSequence uint64    `json:"sessionSequence"`
}

func askedOf(a host.Asked) asked {
	scope := narad.ScopeRun
	if a.WorkflowID != "" {
		scope = narad.ScopeWorkflow
	}
	return asked{
		InterruptID: a.InterruptID, SessionID: a.SessionID, WorkspaceID: a.WorkspaceID, SessionTitle: a.SessionTitle,
		RootRunID: a.RootRunID, RunID: a.RunID, WorkflowID: a.WorkflowID, Scope: string(scope), WaitID: a.WaitID, Kind: a.Kind,
		Actions: a.Actions, Title: a.Title, Message: a.Message, Input: a.Input, RequestedAt: a.RequestedAt,
		ExpiresAt: a.ExpiresAt, SessionSequence: a.Sequence,
	}
}
