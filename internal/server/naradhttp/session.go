package naradhttp

import (
	"cmp"
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

// activeProfiles are what the host sends to who asks for it: those that its sessions use, and
// what is derived from them (R25).
const activeProfiles = host.RequiredProfiles | narad.Graph | narad.Workspace

// offered are the profiles of a session's streams: those that its facts are of, and that
// of the graph.
func offered(required []string) []string {
	return append(slices.Clone(required), narad.Graph.IDs()...)
}

// capabilities tells what the host is (§10.4).
func (b *Binding) capabilities(w http.ResponseWriter, r *request) error {
	if err := access.Authorize(r.principal(), access.ReadCapabilities, ""); err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{
		"protocolVersion": narad.Version, "activeProfiles": activeProfiles.IDs(), "epoch": b.host.Epoch(),
		"host": map[string]string{"name": "mahati", "version": b.opt.Version},
		"limits": map[string]int64{
			"historyLimit": int64(b.opt.Page), "heartbeatIntervalMs": b.opt.Heartbeat.Milliseconds(),
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
	Title                  string   `json:"title,omitzero"`
	CWD                    string   `json:"cwd,omitzero"`
	Agent                  string   `json:"agent,omitzero"`
	ClientExecutorID       string   `json:"clientExecutorId,omitzero"`
	RequiredProfiles       []string `json:"requiredProfiles"`
	CreatedAt              string   `json:"createdAt"`
	UpdatedAt              string   `json:"updatedAt"`
	CurrentSessionSequence uint64   `json:"currentSessionSequence"`
	ActiveRootRunID        string   `json:"activeRootRunId,omitzero"`
	ActiveWorkflowID       string   `json:"activeWorkflowId,omitzero"`
}

func summaryOf(s host.Summary) summary {
	return summary{
		SessionID: s.SessionID, WorkspaceID: s.WorkspaceID, State: s.State, Title: s.Title, CWD: s.Cwd,
		Agent: s.Agent, ClientExecutorID: s.ClientExecutorID, RequiredProfiles: s.RequiredProfiles, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
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
	return cmp.Or(
		checkIDs(named{"sessionId", c.SessionID}, named{"workspaceId", c.WorkspaceID}, named{"clientExecutorId", c.ClientExecutorID}),
		checkText("cwd", c.CWD, maxPath, oneLine),
		checkText("title", c.Title, maxTitle, oneLine),
		checkText("agent", c.Agent, maxName, oneLine),
		checkText("clientKind", c.ClientKind, maxName, oneLine),
	)
}

// complete fills in what the client leaves to the host. The agent is named in the
// session's first fact, so that a later default changes nothing for it.
func (b *Binding) complete(c *creation) {
	if c.SessionID == "" {
		c.SessionID = b.host.NewID()
	}
	if c.WorkspaceID == "" {
		c.WorkspaceID = "default"
	}
	if c.Agent == "" {
		c.Agent = b.host.DefaultAgent()
	}
}

// create makes a session; the same id again finds it (R21).
func (b *Binding) create(w http.ResponseWriter, r *request) error {
	var c creation
	if err := decode(r, &c); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	b.complete(&c)
	server.Annotate(r.Context(), "session", c.SessionID)
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.CreateSession, Session: c.SessionID,
		Command: decide.Create{Payload: facts.Created{
			WorkspaceID: c.WorkspaceID, Cwd: c.CWD, ClientKind: c.ClientKind, Title: c.Title, Agent: c.Agent,
			ClientExecutorID: c.ClientExecutorID, RequiredProfiles: host.RequiredProfiles.IDs(),
		}},
	})
	if err != nil {
		return err
	}
	switch answer.Status {
	case decide.Accepted:
		return b.show(w, r, http.StatusCreated, access.CreateSession, c.SessionID)
	case decide.AlreadyApplied:
		return b.show(w, r, http.StatusOK, access.CreateSession, c.SessionID)
	case decide.Conflict:
		return server.Conflict("session_exists", answer.Detail)
	}
	return &server.Problem{HTTPStatus: http.StatusUnprocessableEntity, Code: "rejected", Detail: answer.Detail}
}

// show answers with the summary of a session, to a caller who may do the action in it:
// who may create a session may see that it is there.
func (b *Binding) show(w http.ResponseWriter, r *request, status int, action access.Action, id string) error {
	_, s, err := b.viewOf(r, action, id)
	if err != nil {
		return err
	}
	return write(w, status, summaryOf(s))
}

// view returns the session that the path names, and its summary.
func (b *Binding) view(r *request, action access.Action) (*host.View, host.Summary, error) {
	id, err := r.session()
	if err != nil {
		return nil, host.Summary{}, err
	}
	return b.viewOf(r, action, id)
}

func (b *Binding) viewOf(r *request, action access.Action, id string) (*host.View, host.Summary, error) {
	v, err := b.host.Attach(r.Context(), r.principal(), action, id)
	if err != nil {
		return nil, host.Summary{}, err
	}
	s, err := v.Summary(r.Context())
	return v, s, err
}

func (b *Binding) summary(w http.ResponseWriter, r *request) error {
	_, s, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, summaryOf(s))
}

// list lists the sessions that the caller may see.
func (b *Binding) list(w http.ResponseWriter, r *request) error {
	n, err := limit(r, maxPage)
	if err != nil {
		return err
	}
	state, workspace := r.query.Get("state"), r.query.Get("workspaceId")
	if err := checkState(state); err != nil {
		return err
	}
	if err := checkIDs(named{"workspaceId", workspace}); err != nil {
		return err
	}
	scope := []string{"sessions", state, workspace}
	place, err := b.listCursor(r, scope...)
	if err != nil {
		return err
	}
	found, lost, next, err := b.host.Sessions(r.Context(), r.principal(), host.Filter{
		State: state, Workspace: workspace, Cursor: place, Limit: n,
	})
	if err != nil {
		return err
	}
	items := make([]summary, 0, len(found))
	for _, s := range found {
		items = append(items, summaryOf(s))
	}
	return write(w, http.StatusOK, page(items, lost, b.host.Seal(next, scope...)))
}

// checkState demands a state that sessions have, or none.
func checkState(state string) error {
	switch state {
	case "", facts.Idle, facts.Running, facts.Waiting, "archived":
		return nil
	}
	return bad("bad_request", "state must be idle, running, waiting or archived")
}

// page is one page of a list; nextCursor is there when more is, and damaged when there
// is something in it whose stored data is.
func page[T any](items []T, lost []host.Lost, next string) map[string]any {
	p := map[string]any{"items": items}
	if next != "" {
		p["nextCursor"] = next
	}
	if len(lost) > 0 {
		list := make([]damaged, len(lost))
		for i, l := range lost {
			list[i] = damaged(l)
		}
		p["damaged"] = list
	}
	return p
}

// damaged names an entry of a list whose stored data is damaged.
type damaged struct {
	SessionID    string `json:"sessionId,omitzero"`
	InterruptID  string `json:"interruptId,omitzero"`
	AttachmentID string `json:"attachmentId,omitzero"`
	ArtifactID   string `json:"artifactId,omitzero"`
}

func (b *Binding) archive(w http.ResponseWriter, r *request) error {
	return b.putAway(w, r, access.ArchiveSession, decide.Archive{})
}

func (b *Binding) restore(w http.ResponseWriter, r *request) error {
	return b.putAway(w, r, access.RestoreSession, decide.Restore{})
}

func (b *Binding) putAway(w http.ResponseWriter, r *request, action access.Action, c decide.Command) error {
	id, err := r.session()
	if err != nil {
		return err
	}
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{Action: action, Session: id, Command: c})
	if err != nil {
		return err
	}
	if err := unchanged(answer); err != nil {
		return err
	}
	return b.show(w, r, http.StatusOK, action, id)
}

// unchanged says why a session was not changed; nil if it is as it was wanted.
func unchanged(answer host.Answer) error {
	switch answer.Status {
	case decide.Accepted, decide.AlreadyApplied:
		return nil
	case decide.NotFound:
		return host.ErrNotFound
	}
	return server.Conflict("session_busy", answer.Detail)
}

// remove deletes a session for ever.
func (b *Binding) remove(w http.ResponseWriter, r *request) error {
	id, err := r.session()
	if err != nil {
		return err
	}
	answer, err := b.host.Delete(r.Context(), r.principal(), id)
	if err != nil {
		return err
	}
	if err := unchanged(answer); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// attach tells what a client must know before it subscribes (§10.3, §10.4, R25).
func (b *Binding) attach(w http.ResponseWriter, r *request) error {
	_, s, err := b.view(r, access.ReadSession)
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
func claims(r *request, requires []string) ([]string, error) {
	text := r.query.Get("profiles")
	if text == "" {
		return offered(requires), nil
	}
	var claimed []string
	for _, id := range strings.Split(text, ",") {
		p, known := narad.ParseProfile(id)
		if known && activeProfiles.Has(p) && !slices.Contains(claimed, p.IDs()[0]) {
			claimed = append(claimed, p.IDs()[0])
		}
	}
	if r.query.Get("unclaimed") == "skip" {
		return claimed, nil
	}
	for _, id := range requires {
		if !slices.Contains(claimed, id) {
			p := server.Conflict("profiles_required", "the claim leaves out profiles that the session uses; claim none, or say unclaimed=skip")
			p.Members = map[string]any{"requiredProfiles": requires}
			return nil, p
		}
	}
	return claimed, nil
}
