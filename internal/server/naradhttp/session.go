package naradhttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// activeProfiles are what sessions of this host use.
const activeProfiles = narad.AllProfiles &^ (narad.Graph | narad.Workspace | narad.Trace | narad.Debug)

// capabilities tells what the host is (§10.4).
func (b *Binding) capabilities(w http.ResponseWriter, r *http.Request) error {
	if err := access.Authorize(server.PrincipalOf(r.Context()), access.ReadCapabilities, ""); err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{
		"protocolVersion": narad.Version, "activeProfiles": activeProfiles.IDs(), "epoch": b.host.Epoch(),
		"host": map[string]string{"name": "mahati", "version": b.opt.Version},
		"limits": map[string]any{
			"historyLimit": b.opt.Page, "heartbeatIntervalMs": b.opt.Heartbeat.Milliseconds(),
			"maxEventBytes": narad.MaxEventBytes, "maxFrameBytes": narad.MaxFrameBytes, "maxJsonDepth": narad.MaxDepth,
			"maxBodyBytes": server.MaxBody, "maxMessageBytes": maxMessage,
		},
	})
}

// summary is a session as lists and answers show it.
type summary struct {
	SessionID              string   `json:"sessionId"`
	WorkspaceID            string   `json:"workspaceId"`
	State                  string   `json:"state"`
	Title                  string   `json:"title,omitempty"`
	CWD                    string   `json:"cwd,omitempty"`
	Agent                  string   `json:"agent,omitempty"`
	RequiredProfiles       []string `json:"requiredProfiles"`
	CreatedAt              string   `json:"createdAt"`
	UpdatedAt              string   `json:"updatedAt"`
	CurrentSessionSequence uint64   `json:"currentSessionSequence"`
	ActiveRootRunID        string   `json:"activeRootRunId,omitempty"`
	ActiveWorkflowID       string   `json:"activeWorkflowId,omitempty"`
}

func summaryOf(s host.Summary) summary {
	return summary{
		SessionID: s.SessionID, WorkspaceID: s.WorkspaceID, State: s.State, Title: s.Title, CWD: s.Cwd,
		Agent: s.Agent, RequiredProfiles: s.RequiredProfiles, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
		CurrentSessionSequence: s.Last, ActiveRootRunID: s.ActiveRoot, ActiveWorkflowID: s.Workflow,
	}
}

// creation is the body of a request for a new session (R8).
type creation struct {
	SessionID        string `json:"sessionId"`
	WorkspaceID      string `json:"workspaceId"`
	CWD              string `json:"cwd"`
	Title            string `json:"title"`
	Agent            string `json:"agent"`
	ClientKind       string `json:"clientKind"`
	ClientExecutorID string `json:"clientExecutorId"`
}

func (c *creation) check() error {
	ids := map[string]string{"sessionId": c.SessionID, "workspaceId": c.WorkspaceID}
	if c.ClientExecutorID != "" {
		ids["clientExecutorId"] = c.ClientExecutorID
	}
	for field, id := range ids {
		if err := checkID(field, id); err != nil {
			return err
		}
	}
	for _, text := range []struct {
		field, text string
		most        int
	}{{"cwd", c.CWD, maxPath}, {"title", c.Title, maxTitle}, {"agent", c.Agent, maxName}, {"clientKind", c.ClientKind, maxName}} {
		if err := checkText(text.field, text.text, text.most, false); err != nil {
			return err
		}
	}
	return nil
}

// create makes a session; the same id again finds it (R21).
func (b *Binding) create(w http.ResponseWriter, r *http.Request) error {
	var c creation
	if err := decode(r, &c); err != nil {
		return err
	}
	if c.SessionID == "" {
		c.SessionID = b.host.NewID()
	}
	if c.WorkspaceID == "" {
		c.WorkspaceID = "default"
	}
	if c.Agent == "" {
		c.Agent = b.host.DefaultAgent()
	}
	if err := c.check(); err != nil {
		return err
	}
	p := server.PrincipalOf(r.Context())
	answer, err := b.host.Do(r.Context(), p, host.Request{
		Action: access.CreateSession, Session: c.SessionID,
		Command: decide.Create{Payload: facts.Created{
			WorkspaceID: c.WorkspaceID, Cwd: c.CWD, ClientKind: c.ClientKind, Title: c.Title, Agent: c.Agent,
			ClientExecutorID: c.ClientExecutorID, RequiredProfiles: activeProfiles.IDs(),
		}},
	})
	if err != nil {
		return err
	}
	if answer.Status == decide.Rejected {
		return &server.Problem{HTTPStatus: http.StatusUnprocessableEntity, Code: "rejected", Detail: answer.Detail}
	}
	status := http.StatusOK
	if answer.Status == decide.Accepted {
		status = http.StatusCreated
	}
	return b.show(w, r, status, c.SessionID)
}

// show answers with a session's summary.
func (b *Binding) show(w http.ResponseWriter, r *http.Request, status int, id string) error {
	_, s, err := b.view(r, access.ReadSession, id)
	if err != nil {
		return err
	}
	return write(w, status, summaryOf(s))
}

// view returns a session and its summary.
func (b *Binding) view(r *http.Request, action access.Action, id string) (*host.View, host.Summary, error) {
	server.Annotate(r.Context(), "session", id)
	v, err := b.host.Attach(r.Context(), server.PrincipalOf(r.Context()), action, id)
	if err != nil {
		return nil, host.Summary{}, err
	}
	s, err := v.Summary(r.Context())
	return v, s, err
}

func (b *Binding) summary(w http.ResponseWriter, r *http.Request) error {
	return b.show(w, r, http.StatusOK, r.PathValue("id"))
}

// list lists the sessions that the caller may see.
func (b *Binding) list(w http.ResponseWriter, r *http.Request) error {
	n, err := limit(r, maxPage)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	found, next, err := b.host.Sessions(r.Context(), server.PrincipalOf(r.Context()), host.Filter{
		State: q.Get("state"), Workspace: q.Get("workspaceId"), Cursor: q.Get("cursor"), Limit: n,
	})
	if err != nil {
		return err
	}
	items := make([]summary, 0, len(found))
	for _, s := range found {
		items = append(items, summaryOf(s))
	}
	return write(w, http.StatusOK, page(items, next))
}

// page is one page of a list; nextCursor is there when more is.
func page[T any](items []T, next string) map[string]any {
	p := map[string]any{"items": items}
	if next != "" {
		p["nextCursor"] = next
	}
	return p
}

func (b *Binding) archive(w http.ResponseWriter, r *http.Request) error {
	return b.putAway(w, r, access.ArchiveSession, decide.Archive{})
}

func (b *Binding) restore(w http.ResponseWriter, r *http.Request) error {
	return b.putAway(w, r, access.RestoreSession, decide.Restore{})
}

func (b *Binding) putAway(w http.ResponseWriter, r *http.Request, action access.Action, c decide.Command) error {
	id := r.PathValue("id")
	answer, err := b.host.Do(r.Context(), server.PrincipalOf(r.Context()), host.Request{Action: action, Session: id, Command: c})
	if err != nil {
		return err
	}
	return b.settled(w, r, answer, id)
}

// settled answers with the session, or with why it cannot be changed now.
func (b *Binding) settled(w http.ResponseWriter, r *http.Request, answer host.Answer, id string) error {
	switch answer.Status {
	case decide.Conflict:
		return &server.Problem{HTTPStatus: http.StatusConflict, Code: "session_busy", Detail: answer.Detail}
	case decide.NotFound:
		return host.ErrNotFound
	}
	return b.show(w, r, http.StatusOK, id)
}

// remove deletes a session for ever.
func (b *Binding) remove(w http.ResponseWriter, r *http.Request) error {
	answer, err := b.host.Delete(r.Context(), server.PrincipalOf(r.Context()), r.PathValue("id"))
	if err != nil {
		return err
	}
	if answer.Status != decide.Accepted {
		return b.settled(w, r, answer, r.PathValue("id"))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// attach tells what a client must know before it subscribes (§10.3, §10.4, R25).
func (b *Binding) attach(w http.ResponseWriter, r *http.Request) error {
	_, s, err := b.view(r, access.ReadSession, r.PathValue("id"))
	if err != nil {
		return err
	}
	claimed, err := claims(r, s.RequiredProfiles)
	if err != nil {
		return err
	}
	capabilities := map[string]any{
		"protocolVersion": narad.Version, "activeProfiles": claimed, "currentSessionSequence": s.Last,
		"historyLimit": b.opt.Page, "heartbeatIntervalMs": b.opt.Heartbeat.Milliseconds(),
	}
	if s.ActiveRoot != "" {
		capabilities["activeRootRunId"] = s.ActiveRoot
	}
	if s.Workflow != "" {
		capabilities["activeWorkflowId"] = s.Workflow
	}
	return write(w, http.StatusOK, map[string]any{
		"capabilities": capabilities, "requiredProfiles": s.RequiredProfiles, "epoch": b.host.Epoch(),
		"boundarySessionSequence": s.Last,
	})
}

// claims returns the profiles that the client claims of those that are advertised, in
// its order. A claim that leaves out a required one is refused, unless the client says
// that it steps over what it did not claim.
func claims(r *http.Request, requires []string) ([]string, error) {
	text := r.URL.Query().Get("profiles")
	if text == "" {
		return requires, nil
	}
	var claimed []string
	for _, id := range strings.Split(text, ",") {
		p, known := narad.ParseProfile(id)
		if known && activeProfiles.Has(p) && !slices.Contains(claimed, p.IDs()[0]) {
			claimed = append(claimed, p.IDs()[0])
		}
	}
	if r.URL.Query().Get("unclaimed") == "skip" {
		return claimed, nil
	}
	for _, id := range requires {
		if !slices.Contains(claimed, id) {
			return nil, &server.Problem{
				HTTPStatus: http.StatusConflict, Code: "profiles_required",
				Detail:  "the claim leaves out profiles that the session uses; claim none, or say unclaimed=skip",
				Members: map[string]any{"requiredProfiles": requires},
			}
		}
	}
	return claimed, nil
}

// inbox lists the open interrupts that the caller may decide.
func (b *Binding) inbox(w http.ResponseWriter, r *http.Request) error {
	n, err := limit(r, maxPage)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if state := q.Get("state"); state != "" && state != "open" {
		return bad("bad_request", "state must be open")
	}
	open, next, err := b.host.Inbox(r.Context(), server.PrincipalOf(r.Context()), q.Get("sessionId"), q.Get("cursor"), n)
	if err != nil {
		return err
	}
	items := make([]asked, 0, len(open))
	for _, a := range open {
		items = append(items, askedOf(a))
	}
	return write(w, http.StatusOK, page(items, next))
}

// asked is one open interrupt.
type asked struct {
	InterruptID     string    `json:"interruptId"`
	SessionID       string    `json:"sessionId"`
	WorkspaceID     string    `json:"workspaceId"`
	SessionTitle    string    `json:"sessionTitle,omitempty"`
	RootRunID       string    `json:"rootRunId,omitempty"`
	RunID           string    `json:"runId,omitempty"`
	Scope           string    `json:"scope"`
	WaitID          string    `json:"waitId"`
	Kind            string    `json:"kind"`
	Actions         []string  `json:"actions"`
	Title           string    `json:"title,omitempty"`
	Message         string    `json:"message,omitempty"`
	Input           narad.Raw `json:"input,omitempty"`
	RequestedAt     string    `json:"requestedAt"`
	ExpiresAt       string    `json:"expiresAt,omitempty"`
	SessionSequence uint64    `json:"sessionSequence"`
}

func askedOf(a host.Asked) asked {
	return asked{
		InterruptID: a.InterruptID, SessionID: a.SessionID, WorkspaceID: a.WorkspaceID, SessionTitle: a.SessionTitle,
		RootRunID: a.RootRunID, RunID: a.RunID, Scope: string(narad.ScopeRun), WaitID: a.WaitID, Kind: a.Kind,
		Actions: a.Actions, Title: a.Title, Message: a.Message, Input: a.Input, RequestedAt: a.RequestedAt,
		ExpiresAt: a.ExpiresAt, SessionSequence: a.Sequence,
	}
}
