package naryahttp

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) workflowRoutes() routes {
	return routes{
		"POST /v1/workflows":              b.startWorkflow,
		"GET /v1/workflows":               b.listWorkflows,
		"GET /v1/workflows/{runId}":       b.getWorkflow,
		"POST /v1/workflows/{runId}/stop": b.stopWorkflow,
	}
}

// startWorkflow begins a workflow in a session at rest; its progress comes on the stream.
func (b *Binding) startWorkflow(w http.ResponseWriter, r *request) error {
	var body struct {
		SessionID  string    `json:"sessionId"`
		Definition string    `json:"definition"`
		Input      narad.Raw `json:"input"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var c checked
	if body.SessionID == "" {
		c.add("sessionId", "is required")
	}
	if body.Definition == "" {
		c.add("definition", "is required")
	}
	if err := c.err(); err != nil {
		return err
	}
	id, err := b.session(r, body.SessionID)
	if err != nil {
		return err
	}
	command, err := r.commandID()
	if err != nil {
		return err
	}
	a, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.StartWorkflow, Session: id, CommandID: command,
		Command: decide.StartWorkflow{Definition: body.Definition, Input: body.Input},
	})
	switch {
	case err != nil:
		return err
	case a.Status == decide.Rejected:
		return invalid(cmp.Or(a.Field, "definition"), a.Detail)
	case a.Status == decide.Conflict && a.Err == "":
		return refuse(narya.CodeBusy, a.Detail)
	}
	if err := answer(a); err != nil {
		return err
	}
	return write(w, http.StatusAccepted, workflowStarted{narya.UUID(narya.KindWorkflow, a.WorkflowID)})
}

type workflowStarted struct {
	RunID string `json:"runId"`
}

// workflowStates are the states of workflows by the words of the contract. A workflow that
// waits for somebody runs.
var workflowStates = map[narya.WorkflowStatus]session.RunState{
	narya.WorkflowRunning: session.Running, narya.WorkflowCompleted: session.Finished,
	narya.WorkflowFailed: session.Failed, narya.WorkflowStopped: session.Cancelled,
}

func workflowStatus(s session.RunState) narya.WorkflowStatus {
	for status, state := range workflowStates {
		if state == s {
			return status
		}
	}
	return narya.WorkflowRunning
}

type workflowSummary struct {
	RunID     string               `json:"runId"`
	SessionID string               `json:"sessionId"`
	Name      string               `json:"name,omitzero"`
	Status    narya.WorkflowStatus `json:"status"`
	StartedAt string               `json:"startedAt"`
}

func summaryOf(w host.WorkflowSummary) workflowSummary {
	return workflowSummary{
		RunID: narya.UUID(narya.KindWorkflow, w.WorkflowID), SessionID: narya.UUID(narya.KindSession, w.SessionID),
		Name: w.Name, Status: workflowStatus(w.State), StartedAt: w.StartedAt,
	}
}

func (b *Binding) listWorkflows(w http.ResponseWriter, r *request) error {
	status, err := r.word("status", "running", "completed", "failed", "stopped")
	if err != nil {
		return err
	}
	at, of, err := b.pageOf(r, access.ReadSession, "workflows", status)
	if err != nil {
		return err
	}
	f := host.WorkflowFilter{State: workflowStates[narya.WorkflowStatus(status)], Session: of, Cursor: at.Cursor, Limit: at.Limit}
	list, next, err := b.host.Workflows(r.Context(), r.principal(), f)
	if err != nil {
		return err
	}
	items := make([]workflowSummary, len(list))
	for i, one := range list {
		items[i] = summaryOf(one)
	}
	return writeList(w, at, items, next)
}

type workflowStep struct {
	Name       string               `json:"name"`
	Status     narya.WorkflowStatus `json:"status"`
	Output     string               `json:"output,omitzero"`
	StartedAt  string               `json:"startedAt,omitzero"`
	FinishedAt string               `json:"finishedAt,omitzero"`
}

type workflow struct {
	workflowSummary
	FinishedAt     string         `json:"finishedAt,omitzero"`
	Steps          []workflowStep `json:"steps"`
	CompletedSteps *int64         `json:"completedSteps,omitzero"`
	TotalSteps     *int64         `json:"totalSteps,omitzero"`
	Output         narad.Raw      `json:"output,omitzero"`
	Failure        *failure       `json:"failure,omitzero"`
}

// failure is why a workflow failed, in the words of its file.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// findWorkflow returns the session of the workflow that the path names, and its id there.
func (b *Binding) findWorkflow(r *request, action access.Action) (*host.View, string, error) {
	session, id, err := "", "", host.ErrNotFound
	if uuid, ok := narya.ParseUUID(r.PathValue("runId")); ok {
		session, id, err = b.host.Alias(r.Context(), r.principal(), narya.KindWorkflow, uuid)
	}
	var v *host.View
	if err == nil {
		v, err = b.host.Attach(r.Context(), r.principal(), action, session)
	}
	if errors.Is(err, host.ErrNotFound) {
		err = refuse(narya.CodeWorkflowNotFound, "")
	}
	return v, id, err
}

func (b *Binding) getWorkflow(w http.ResponseWriter, r *request) error {
	v, id, err := b.findWorkflow(r, access.ReadSession)
	if err != nil {
		return err
	}
	is, err := v.Workflow(r.Context(), id)
	if err != nil {
		return err
	}
	out := workflow{
		workflowSummary: summaryOf(is.WorkflowSummary), FinishedAt: is.FinishedAt, Steps: []workflowStep{},
		CompletedSteps: is.CompletedSteps, TotalSteps: is.TotalSteps, Output: is.Output,
	}
	for _, step := range is.Steps {
		out.Steps = append(out.Steps, workflowStep(step))
	}
	if is.State == session.Failed {
		out.Failure = &failure{is.Code, is.Message}
	}
	return write(w, http.StatusOK, out)
}

// stopWorkflow asks for the end of a workflow. Whether it has ended the stream tells.
func (b *Binding) stopWorkflow(w http.ResponseWriter, r *request) error {
	v, id, err := b.findWorkflow(r, access.StopRun)
	if err != nil {
		return err
	}
	command, err := r.commandID()
	if err != nil {
		return err
	}
	a, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.StopRun, Session: v.SessionID(), CommandID: command, Command: decide.Stop{WorkflowID: id},
	})
	switch {
	case err != nil:
		return err
	case a.Status == decide.Conflict:
		return refuse(narya.CodeWorkflowEnded, a.Detail)
	case !slices.Contains([]decide.Status{decide.Accepted, decide.AlreadyApplied}, a.Status):
		return answer(a)
	}
	return write(w, http.StatusAccepted, struct{}{})
}
