package narya

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// custom projects Mahati's own facts.
func (p *projection) custom(f *narad.Custom) {
	switch f.Name {
	case facts.SessionCreated:
		each(f, p.created)
	case facts.SessionArchived:
		p.putAway(Archived, Idle)
	case facts.SessionRestored:
		p.putAway(Idle, Archived)
	case facts.Posture:
		each(f, p.posture)
	case facts.SessionMoved:
		each(f, p.moved)
	case facts.SessionModel:
		each(f, p.model)
	case facts.InputQueued:
		each(f, func(q facts.Queued) {
			if q.Intercom != nil { // its entry was told as it came
				return
			}
			p.entry(MessageEntryID(p.event.SessionID, q.MessageID), EntryUserMessage, q.RunID)
		})
	case facts.InputWithdrawn:
		each(f, func(w facts.Withdrawn) {
			p.tell(&QueuedInputWithdrawn{EntryID: MessageEntryID(p.event.SessionID, w.MessageID)})
		})
	case facts.TaskList:
		each(f, p.tasks)
	case facts.Intercom:
		each(f, p.intercom)
	case facts.Extension:
		each(f, p.extension)
	}
	if f.RunID != "" {
		p.customOfRun(f)
	}
	if f.Name == facts.Decision {
		each(f, p.memberDecided)
	}
}

func (p *projection) customOfRun(f *narad.Custom) {
	switch f.Name {
	case facts.Round:
		each(f, func(r facts.Rounded) {
			p.tellIn(&MessageStart{TurnID: p.turn(), Provider: r.Provider, Model: r.Model})
		})
	case facts.ToolOutput:
		each(f, p.toolOutput)
	}
}

// each projects the payload of a fact, if it fits.
func each[T any](f *narad.Custom, project func(T)) {
	if payload, ok := facts.Read[T](f, f.Name); ok {
		project(payload)
	}
}

func (p *projection) created(c facts.Created) {
	s := Session{
		ID: UUID(KindSession, p.event.SessionID), Title: c.Title, Repository: c.Cwd, Status: Idle,
		Provider: c.Provider, Model: c.Model, Variant: c.Variant, Style: c.Style, Posture: Posture(c.Posture),
		ClientKind: ClientKind(c.ClientKind), CreatedAt: p.event.Timestamp, UpdatedAt: p.event.Timestamp,
	}
	s.Fit()
	if c.ParentSessionID != "" {
		s.ParentSessionID = UUID(KindSession, c.ParentSessionID)
	}
	p.tell(&SessionCreated{Session: s})
	p.tellIn(&LaneStarted{Kind: LaneMain})
}

// putAway tells that a session was archived, which only one at rest can be, or taken back,
// unless the fact tells it of itself.
func (p *projection) putAway(now, was Status) {
	if _, _, told := facts.Status(p.event); !told {
		p.tell(&SessionStatusChanged{Status: now, PreviousStatus: was})
	}
}

func (p *projection) posture(f facts.Postured) {
	now, was := Posture(f.Posture), Posture(f.Was)
	if now == cmp.Or(was, Attended) || !slices.Contains(postures, now) {
		return // where nobody said anything somebody is there
	}
	if !slices.Contains(postures, was) {
		was = ""
	}
	p.tell(&SessionPostureChanged{Posture: now, PreviousPosture: was})
}

func (p *projection) moved(f facts.Moved) {
	if f.Cwd != f.Was {
		p.tell(&SessionMoved{Repository: f.Cwd, PreviousRepository: f.Was})
	}
}

func (p *projection) model(f facts.Modelled) {
	if f.Provider != f.WasProvider || f.Model != f.WasModel {
		p.tell(&ModelSwitch{Provider: f.Provider, Model: f.Model})
	}
}

func (p *projection) tasks(f facts.Tasked) {
	list := make([]Task, len(f.Tasks))
	for i, t := range f.Tasks {
		list[i] = Task{Content: t.Content, Status: TaskStatus(t.Status)}
		if !slices.Contains(taskStatuses, list[i].Status) {
			list[i].Status = TaskPending
		}
	}
	p.tell(&TaskList{Tasks: list})
}

func (p *projection) intercom(f facts.Told) {
	told := &IntercomMessage{From: f.From, Content: f.Content, Kind: IntercomKind(f.Kind)}
	if !slices.Contains(intercomKinds, told.Kind) {
		return
	}
	if f.AskID != "" {
		told.AskID = UUID(KindAsk, f.AskID)
	}
	p.entry(MessageEntryID(p.event.SessionID, f.MessageID), EntryIntercom, cmp.Or(f.RunID, p.event.RunID))
	p.tell(told)
}

// extension tells what an extension published, in a session or on the host.
func (p *projection) extension(f facts.Published) {
	if anExtension(f.Extension) != "" || utf8.RuneCountInString(f.Name) > MaxExtensionEvent {
		return
	}
	told := &Extension{Extension: f.Extension, Name: f.Name}
	if isObject(f.Payload) {
		told.Payload = f.Payload
	}
	p.tell(told)
	if p.event.SessionID == hostSession {
		p.events[len(p.events)-1].SessionID = ""
	}
}

// workflow tells how a workflow goes.
func (p *projection) workflow(fact narad.Authority) {
	far := facts.StepsOf(p.event)
	told := &WorkflowProgress{
		RunID: UUID(KindWorkflow, p.event.WorkflowID), Status: WorkflowRunning,
		CompletedSteps: from(0, far.Completed), TotalSteps: from(0, far.Total),
	}
	switch f := fact.(type) {
	case *narad.WorkflowStep:
		told.Step = p.step(f, far)
	case *narad.WorkflowEnded:
		p.skipped(*told, far.Skipped)
		told.Status = endedStatus(f)
	}
	p.tell(told)
}

// skipped tells of the steps that will not start any more. The workflow runs until its end,
// which is told after them.
func (p *projection) skipped(told WorkflowProgress, names []string) {
	for _, name := range names {
		one := told
		one.Step = &WorkflowStep{Name: clip(name, maxStepName), Status: WorkflowSkipped}
		p.tell(&one)
	}
}

func endedStatus(f *narad.WorkflowEnded) WorkflowStatus {
	switch f.Kind {
	case narad.TypeWorkflowFinished:
		return WorkflowCompleted
	case narad.TypeWorkflowError:
		return WorkflowFailed
	}
	return WorkflowStopped
}

func (p *projection) step(f *narad.WorkflowStep, far facts.Steps) *WorkflowStep {
	step := &WorkflowStep{Name: clip(f.NodeID, maxStepName), Output: far.Output}
	if isTime(far.StartedAt) {
		step.StartedAt = far.StartedAt
	}
	switch f.Kind {
	case narad.TypeWorkflowStepStarted:
		step.Status, step.StartedAt = WorkflowRunning, p.event.Timestamp
		return step
	case narad.TypeWorkflowStepFinished:
		step.Status = WorkflowCompleted
	default:
		step.Status = WorkflowFailed
		code, message := facts.StepFailure(p.event)
		if code == "stopped" {
			step.Status = WorkflowStopped
		}
		step.Output = orElse(step.Output, message)
	}
	step.FinishedAt = p.event.Timestamp
	return step
}
