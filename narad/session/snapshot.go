package session

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/narad"
)

// Snapshot is the state as a value that can be shown. It shares nothing that the
// state changes later.
type Snapshot struct {
	SessionID           string                         `json:"sessionId,omitzero"`
	LastSessionSequence int64                          `json:"lastSessionSequence"`
	SessionGap          bool                           `json:"sessionGap"`
	ResyncRequired      bool                           `json:"resyncRequired"`
	ActiveRootRunID     string                         `json:"activeRootRunId,omitzero"`
	ActiveWorkflowID    string                         `json:"activeWorkflowId,omitzero"`
	Runs                map[string]Run                 `json:"runs,omitempty"`
	Workflows           map[string]WorkflowView        `json:"workflows,omitempty"`
	Tools               map[string]Tool                `json:"tools,omitempty"`
	Interrupts          map[string]Interrupt           `json:"interrupts,omitempty"`
	Messages            []Message                      `json:"messages,omitempty"`
	Reasoning           []Reasoning                    `json:"reasoning,omitempty"`
	Covers              int64                          `json:"coversThroughSessionSequence,omitzero"`
	Progress            map[string]map[string]Activity `json:"progress,omitempty"`
	Attachments         map[string]Material            `json:"attachments,omitempty"`
	Artifacts           map[string]Material            `json:"artifacts,omitempty"`
	State               map[string]ScopedState         `json:"state,omitempty"`
	UI                  map[string]ScopedState         `json:"ui,omitempty"`
	Views               map[string]View                `json:"views,omitempty"`
	Graphs              map[string]Graph               `json:"graphs,omitempty"`
	Revisions           *Revisions                     `json:"revisions,omitzero"`
	Workspace           *Workspace                     `json:"workspace,omitzero"`
	RootRunSequences    map[string]int64               `json:"rootRunSequences,omitempty"`
	WorkflowSequences   map[string]int64               `json:"workflowSequences,omitempty"`
}

// WorkflowView is a workflow and its last sequence.
type WorkflowView struct {
	Workflow             `json:",inline"`
	LastWorkflowSequence int64 `json:"lastWorkflowSequence"`
}

// Message is one message of the transcript.
type Message struct {
	MessageID          string      `json:"messageId"`
	Role               narad.Role  `json:"role"`
	Content            string      `json:"content"`
	MessageScope       narad.Scope `json:"messageScope,omitzero"`
	Streaming          bool        `json:"streaming,omitzero"`
	Redacted           bool        `json:"redacted,omitzero"`
	DisplayReplacement *string     `json:"displayReplacement,omitzero"`
	SessionSequence    int64       `json:"sessionSequence,omitzero"`
	Timestamp          string      `json:"timestamp,omitzero"`
	RootRunID          string      `json:"rootRunId,omitzero"`
	RunID              string      `json:"runId,omitzero"`
	AttachmentIDs      []string    `json:"attachmentIds,omitempty"`
}

// Reasoning is one stretch of reasoning.
type Reasoning struct {
	ReasoningID string `json:"reasoningId"`
	MessageID   string `json:"messageId,omitzero"`
	Content     string `json:"content"`
	Completed   bool   `json:"completed"`
	Timestamp   string `json:"timestamp,omitzero"`
}

// ScopedState is the state of one scope.
type ScopedState struct {
	Revision       int64     `json:"revision"`
	State          narad.Raw `json:"state,omitzero"`
	ResyncRequired bool      `json:"resyncRequired,omitzero"`
}

// View is one view and its model.
type View struct {
	Open  bool      `json:"open"`
	Model narad.Raw `json:"model,omitzero"`
}

// Revisions are the last watch revisions.
type Revisions struct {
	Session   int64            `json:"session,omitzero"`
	Runs      map[string]int64 `json:"runs,omitempty"`
	Workflows map[string]int64 `json:"workflows,omitempty"`
	Nodes     map[string]int64 `json:"nodes,omitempty"`
}

// Workspace is what the watch events of a workspace told.
type Workspace struct {
	WorkspaceID string             `json:"workspaceId"`
	Revision    int64              `json:"revision"`
	Sessions    []WorkspaceSession `json:"sessions,omitempty"`
}

// WorkspaceSession is one session of a workspace.
type WorkspaceSession struct {
	SessionID string `json:"sessionId"`
	Archived  bool   `json:"archived"`
}

// Snapshot returns the whole state as a value.
func (s *State) Snapshot() Snapshot {
	snap := Snapshot{
		SessionID: s.sessionID, LastSessionSequence: s.last, SessionGap: s.gap, ResyncRequired: s.resync,
		ActiveRootRunID: s.activeRoot, ActiveWorkflowID: s.activeWorkflow, Covers: s.covers,
		Runs: values(s.runs), Tools: values(s.tools), Interrupts: values(s.interrupts),
		Attachments: values(s.attachments), Artifacts: values(s.artifacts),
		Workflows: map[string]WorkflowView{}, Progress: map[string]map[string]Activity{},
		State: map[string]ScopedState{}, UI: map[string]ScopedState{}, Views: map[string]View{},
		Messages: s.Messages(), Reasoning: s.Reasoning(), Graphs: s.Graphs(),
		RootRunSequences: map[string]int64{}, WorkflowSequences: maps.Clone(s.workflowLast),
	}
	for id, w := range s.workflows {
		snap.Workflows[id] = WorkflowView{w.clone(), s.workflowLast[id]}
	}
	for run, of := range s.progress {
		snap.Progress[run] = values(of.byID)
	}
	for key, state := range s.scoped {
		snap.addScoped(key, state)
	}
	for id, v := range s.views {
		snap.Views[id] = View{v.open, rawOf(v.model)}
	}
	for root, t := range s.trees {
		if t.last > 0 {
			snap.RootRunSequences[root] = t.last
		}
	}
	s.addRevisions(&snap)
	return snap
}

// SnapshotJSON returns the snapshot as a JSON object, with sorted names.
func (s *State) SnapshotJSON() []byte {
	data, err := json.Marshal(s.Snapshot(), json.Deterministic(true))
	if err != nil {
		panic("session: a snapshot is always JSON: " + err.Error())
	}
	return data
}

func values[T any](m map[string]*T) map[string]T {
	out := make(map[string]T, len(m))
	for id, v := range m {
		out[id] = *v
	}
	return out
}

func (w *Workflow) clone() Workflow {
	c := *w
	c.Steps, c.Transitions = maps.Clone(w.Steps), slices.Clone(w.Transitions)
	return c
}

func rawOf(d *narad.Document) narad.Raw {
	if d == nil {
		return nil
	}
	return d.Raw()
}

func (snap *Snapshot) addScoped(key scopeKey, state *scopedState) {
	name, ui := strings.CutPrefix(string(key.scope), uiPrefix)
	switch narad.Scope(name) {
	case narad.ScopeWorkflow:
		name += ":" + key.first
	case narad.ScopeRun:
		name += ":" + key.first + ":" + key.second
	}
	shown := ScopedState{state.revision, rawOf(state.document), state.resync}
	if ui {
		snap.UI[name] = shown
		return
	}
	snap.State[name] = shown
}

// Messages returns the transcript in the order in which the messages appeared.
func (s *State) Messages() []Message {
	list := make([]Message, len(s.messages.order))
	for i, m := range s.messages.order {
		list[i] = Message{
			MessageID: m.MessageID, Role: m.Role, Content: string(m.content), MessageScope: m.Scope,
			Streaming: m.streaming, Redacted: m.redacted, DisplayReplacement: m.replacement,
			SessionSequence: m.SessionSequence, Timestamp: m.Timestamp, RootRunID: m.RootRunID,
			RunID: m.RunID, AttachmentIDs: m.AttachmentIDs,
		}
	}
	return list
}

// ScopedState returns the state, or the UI state, of the scope that an event stands in;
// false if there is none. Of a state that keeps open work alone the value is absent.
func (s *State) ScopedState(scope narad.Scope, ui bool, e *narad.Event) (ScopedState, bool) {
	kind := narad.TypeStateSnapshot
	if ui {
		kind = narad.TypeUIStateSnapshot
	}
	is := s.scoped[keyOf(e, kind, scope)]
	if is == nil {
		return ScopedState{}, false
	}
	shown := ScopedState{Revision: is.revision, ResyncRequired: is.resync}
	if is.document != nil {
		shown.State = is.document.Raw()
	}
	return shown, true
}

// ViewModel returns a view with its model, which may be absent.
func (s *State) ViewModel(id string) (View, bool) {
	is := s.views[id]
	if is == nil {
		return View{}, false
	}
	shown := View{Open: is.open}
	if is.model != nil {
		shown.Model = is.model.Raw()
	}
	return shown, true
}

// OpenViews counts the views that are open.
func (s *State) OpenViews() (n int) {
	for _, v := range s.views {
		if v.open {
			n++
		}
	}
	return n
}

// Reasoning returns the reasoning in the order in which it began.
func (s *State) Reasoning() []Reasoning {
	list := make([]Reasoning, len(s.reasoning.order))
	for i, r := range s.reasoning.order {
		list[i] = Reasoning{r.ReasoningID, r.MessageID, string(r.content), r.completed, r.Timestamp}
	}
	return list
}

func (s *State) addRevisions(snap *Snapshot) {
	r := &Revisions{Runs: map[string]int64{}, Workflows: map[string]int64{}, Nodes: map[string]int64{}}
	workspace := int64(0)
	for key, revision := range s.revisions.last {
		switch key.kind {
		case narad.TypeSessionRevision:
			r.Session = revision
		case narad.TypeRunRevision:
			r.Runs[key.id] = revision
		case narad.TypeWorkflowRevision:
			r.Workflows[key.id] = revision
		case narad.TypeNodeRevision:
			r.Nodes[key.id] = revision
		case narad.TypeWorkspaceRevision:
			if key.id == s.revisions.workspaceID {
				workspace = revision
			}
		}
		snap.Revisions = r
	}
	if s.revisions.workspaceID == "" {
		return
	}
	snap.Workspace = &Workspace{WorkspaceID: s.revisions.workspaceID, Revision: workspace}
	for _, id := range s.revisions.order {
		snap.Workspace.Sessions = append(snap.Workspace.Sessions, WorkspaceSession{id, s.revisions.sessions[id]})
	}
}
