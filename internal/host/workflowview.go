package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent/flow"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narya"
)

// WorkflowSummary is what a list shows of a workflow.
type WorkflowSummary struct {
	WorkflowID string
	SessionID  string
	Name       string
	State      session.RunState
	StartedAt  string
}

// Workflow is a workflow as its facts tell it.
type Workflow struct {
	WorkflowSummary
	FinishedAt string
	// Steps are those that began, in the order in which each first did, then the others of
	// the file.
	Steps                      []narya.WorkflowStep
	CompletedSteps, TotalSteps *int64
	// Code and Message tell why it failed, Output what it came to; each may be empty.
	Code    string
	Message string
	Output  narad.Raw
}

// WorkflowFilter narrows a list of workflows.
type WorkflowFilter struct {
	Session string
	State   session.RunState
	Cursor  string
	Limit   int
}

// Workflows lists the workflows of the sessions that the caller may see and that speak
// Narya, the newest first. A page may be shorter than its limit and still have a next one:
// what is damaged is left out, as the log says.
func (h *Host) Workflows(ctx context.Context, p access.Principal, f WorkflowFilter) (list []WorkflowSummary, next string, err error) {
	if !h.ready.Load() {
		return nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ListSessions, ""); err != nil {
		return nil, "", err
	}
	of := journal.Workflows{Session: f.Session, State: string(f.State)}
	rows, next, err := journal.OnePage[journal.WorkflowRow](ctx, h.journal, of, journal.RowPage{Cursor: f.Cursor, Limit: f.Limit}, h.damaged)
	if err != nil {
		return nil, "", fmt.Errorf("list workflows: %w", err)
	}
	for _, row := range rows {
		in, err := h.sessionRow(ctx, row.Session)
		switch {
		case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted), errors.Is(err, journal.ErrDamaged):
			continue
		case err != nil:
			return nil, "", fmt.Errorf("find session: %w", err)
		case index.Read[index.Session](in.Value).Narya == 0 || access.Authorize(p, access.ReadSession, in.Workspace) != nil:
			continue
		}
		s, _, err := h.workflowBegan(ctx, row)
		switch {
		case errors.Is(err, journal.ErrDamaged): // it costs no other workflow its place
			h.damaged(journal.Damage{Session: row.Session, Key: row.Key(), Cause: err})
		case err != nil && ignoreGone(err) != nil:
			return nil, "", err
		case err == nil:
			list = append(list, s)
		}
	}
	return list, next, nil
}

// workflowBegan reads how a workflow began, which its first two facts tell.
func (h *Host) workflowBegan(ctx context.Context, row journal.WorkflowRow) (s WorkflowSummary, definition string, err error) {
	s = WorkflowSummary{WorkflowID: row.ID, SessionID: row.Session, State: session.RunState(row.State)}
	started, err := h.fact(ctx, row.Session, int64(row.First))
	if err == nil {
		s.StartedAt = started.Envelope().Timestamp
		started, err = h.fact(ctx, row.Session, int64(row.First)+1)
	}
	if err != nil {
		return s, "", fmt.Errorf("read the beginning of a workflow: %w", err)
	}
	defined, _ := facts.Read[facts.Defined](started, facts.WorkflowDefined)
	s.Name = defined.Name
	return s, defined.Definition, nil
}

// SessionID is the session's id.
func (v *View) SessionID() string { return v.row.Session }

// Workflow returns a workflow of the session as it stands; ErrNotFound for one that the
// session does not have.
func (v *View) Workflow(ctx context.Context, id string) (Workflow, error) {
	row, err := journal.Get[journal.WorkflowRow](ctx, v.host.journal, journal.WorkflowKey(id))
	if err == nil && row.Session != v.row.Session {
		err = ErrNotFound
	}
	if err != nil {
		return Workflow{}, fmt.Errorf("find workflow: %w", err)
	}
	began, definition, err := v.host.workflowBegan(ctx, row)
	if err != nil {
		return Workflow{}, err
	}
	w := &Workflow{WorkflowSummary: began}
	if err := v.walkWorkflow(ctx, row, w); err != nil {
		return Workflow{}, fmt.Errorf("read the workflow: %w", err)
	}
	w.addUnstarted(definition)
	return *w, nil
}

// workflowPage is how many facts are read at once of a workflow's own: they are few between
// two runs.
const workflowPage = 16

// walkWorkflow takes what the facts of a workflow tell of it. Most are those of its runs,
// which tell nothing: they are left out, from the start of each run to its end.
func (v *View) walkWorkflow(ctx context.Context, row journal.WorkflowRow, w *Workflow) error {
	for after, more := uint64(0), true; more; {
		run := ""
		order := journal.ByWorkflow{Session: row.Session, WorkflowID: row.ID, After: after}
		var err error
		more, err = v.host.journal.Scan(ctx, order, journal.Page{Limit: workflowPage}, func(r *journal.Record) {
			if run != "" {
				return
			}
			after = r.WorkflowSequence
			run = w.take(r.Bytes)
		})
		if err != nil {
			return err
		}
		if run == "" {
			continue
		}
		end, err := v.endInWorkflow(ctx, run)
		switch {
		case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDamaged):
			more = true // its facts are gone through
		case err != nil || end == 0: // under way: nothing of the workflow itself is behind it
			return err
		default:
			after, more = max(after, end), true
		}
	}
	return nil
}

// endInWorkflow is the workflow sequence of the end of a run, 0 for one that is under way.
func (v *View) endInWorkflow(ctx context.Context, run string) (uint64, error) {
	row, err := journal.Get[journal.RunRow](ctx, v.host.journal, journal.RunKey(run))
	if err != nil || row.Last == 0 {
		return 0, err
	}
	end, err := v.host.fact(ctx, row.Session, int64(row.Last))
	if err != nil {
		return 0, err
	}
	return uint64(end.Envelope().WorkflowSequence), nil
}

// take adds what a fact says of the workflow itself. Where a run begins with it, that is what
// it returns.
func (w *Workflow) take(data []byte) (run string) {
	if !bytes.Contains(data, []byte(`"workflow.`)) && !bytes.Contains(data, []byte(`"run.started`)) {
		return ""
	}
	rec, err := narad.Decode(data)
	fact, ok := rec.(narad.Authority)
	if err != nil || !ok {
		return "" // the owner of the session tells of it
	}
	if _, begins := fact.(*narad.RunStarted); begins {
		return fact.Envelope().RunID
	}
	if end, ok := fact.(*narad.WorkflowEnded); ok {
		w.State, w.FinishedAt = stateOf(end.Kind), end.Timestamp
		w.Code, w.Message, w.Output = end.Code, end.Message, facts.WorkflowOutput(&end.Event)
	}
	for _, e := range narya.Mapping1.Project(fact) {
		if told, ok := e.Payload.(*narya.WorkflowProgress); ok {
			w.progress(told)
		}
	}
	return ""
}

func stateOf(end narad.Type) session.RunState {
	switch end {
	case narad.TypeWorkflowError:
		return session.Failed
	case narad.TypeWorkflowCancelled:
		return session.Cancelled
	}
	return session.Finished
}

func (w *Workflow) progress(told *narya.WorkflowProgress) {
	if told.CompletedSteps != nil {
		w.CompletedSteps, w.TotalSteps = told.CompletedSteps, told.TotalSteps
	}
	if told.Step == nil {
		return
	}
	step := *told.Step
	at := slices.IndexFunc(w.Steps, func(s narya.WorkflowStep) bool { return s.Name == step.Name })
	if at < 0 {
		w.Steps = append(w.Steps, step)
		return
	}
	if step.StartedAt == "" {
		step.StartedAt = w.Steps[at].StartedAt
	}
	w.Steps[at] = step
}

// addUnstarted adds the steps of the file that never began: they wait, or are skipped once
// the workflow has ended. What a stop found running was stopped.
func (w *Workflow) addUnstarted(definition string) {
	status := narya.WorkflowPending
	if w.State.Ended() {
		status = narya.WorkflowSkipped
	}
	for i := range w.Steps {
		if w.State.Ended() && w.Steps[i].Status == narya.WorkflowRunning {
			w.Steps[i].Status, w.Steps[i].FinishedAt = narya.WorkflowStopped, w.FinishedAt
		}
	}
	def, err := flow.Read([]byte(definition), "")
	if err != nil {
		return // a later version of the program does not know it any more
	}
	for _, name := range def.Steps() {
		if !slices.ContainsFunc(w.Steps, func(s narya.WorkflowStep) bool { return s.Name == name }) {
			w.Steps = append(w.Steps, narya.WorkflowStep{Name: name, Status: status})
		}
	}
}
