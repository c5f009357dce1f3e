package access

import (
	"errors"
	"fmt"
)

var (
	// ErrUnauthenticated says that nobody valid is asking.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden says that the principal may not do this.
	ErrForbidden = errors.New("forbidden")
)

// An Action is one thing that the host can be asked to do.
type Action string

// The actions.
const (
	ReadCapabilities Action = "capabilities.read"

	CreateSession  Action = "session.create"
	ListSessions   Action = "session.list"
	ReadSession    Action = "session.read" // summary, attach, history, stream, messages, graph, export
	ReadLog        Action = "run.log"      // the headless log of a run; its private payloads take ReadSession
	ReadTrace      Action = "session.trace"
	ReadArtifact   Action = "artifact.read"
	UpdateSession  Action = "session.update" // title, agent, model, posture
	ArchiveSession Action = "session.archive"
	RestoreSession Action = "session.restore"
	DeleteSession  Action = "session.delete"
	AuditSession   Action = "session.audit" // who stands behind an actor.id

	SendMessage      Action = "message.send"
	StartWorkflow    Action = "workflow.start"
	StopRun          Action = "run.stop"
	ChangeQueue      Action = "queue.change"
	UploadAttachment Action = "attachment.upload"
	RedactMessage    Action = "message.redact"

	ReadInbox        Action = "inbox.read"
	ReadAudit        Action = "audit.read" // of the sessions that one may audit
	ResolveInterrupt Action = "interrupt.resolve"

	WatchWorkspace Action = "workspace.watch"
	AttachExecutor Action = "executor.attach" // AuthorizeExecutor asks for the id as well

	PublishExtension Action = "extension.publish" // in a session, or on the host as a whole

	ReadHostEvents Action = "host.events"
	ReadMetrics    Action = "host.metrics"
	ManageHost     Action = "host.manage"
)

// reach is where a role must hold for an action.
type reach int

const (
	inWorkspace reach = iota // in the workspace of the thing acted on
	somewhere                // in any; the answer is filtered to where it holds
	wholeHost                // in all of them
	placeOrHost              // in the workspace, and where there is none in all of them
)

// rules is the policy: the role an action takes, and where it must hold. The
// empty role is everybody who is authenticated.
var rules = map[Action]struct {
	role  Role
	reach reach
}{
	ReadCapabilities: {"", somewhere},

	CreateSession:  {Drive, inWorkspace},
	ListSessions:   {Observe, somewhere},
	ReadSession:    {Observe, inWorkspace},
	ReadLog:        {Observe, inWorkspace},
	ReadTrace:      {Trace, inWorkspace},
	ReadArtifact:   {Observe, inWorkspace},
	UpdateSession:  {Drive, inWorkspace},
	ArchiveSession: {Drive, inWorkspace},
	RestoreSession: {Drive, inWorkspace},
	DeleteSession:  {Admin, inWorkspace},
	AuditSession:   {Admin, inWorkspace},

	SendMessage:      {Drive, inWorkspace},
	StartWorkflow:    {Drive, inWorkspace},
	StopRun:          {Drive, inWorkspace},
	ChangeQueue:      {Drive, inWorkspace},
	UploadAttachment: {Drive, inWorkspace},
	RedactMessage:    {Admin, inWorkspace},

	ReadInbox:        {Decide, somewhere},
	ReadAudit:        {Admin, somewhere},
	ResolveInterrupt: {Decide, inWorkspace},

	WatchWorkspace: {Observe, inWorkspace},
	AttachExecutor: {Execute, somewhere},

	PublishExtension: {Drive, placeOrHost},

	ReadHostEvents: {Observe, wholeHost},
	ReadMetrics:    {Observe, wholeHost},
	ManageHost:     {Admin, wholeHost},
}

// otherwise lists the roles that will do as well for an action.
var otherwise = map[Action][]Role{ReadLog: {Decide, Drive}}

// Authorize says whether the principal may do the action in the workspace. For
// an action whose answer is filtered (lists, the inbox) the workspace may be
// empty; the caller then leaves out what Principal.May does not allow. The error
// is ErrUnauthenticated for nobody, else ErrForbidden.
func Authorize(p Principal, action Action, workspace string) error {
	if p.IsZero() {
		return ErrUnauthenticated
	}
	rule, known := rules[action]
	if !known {
		return fmt.Errorf("unknown action %q: %w", action, ErrForbidden)
	}
	if rule.role == "" || allows(p, rule.role, rule.reach, workspace) {
		return nil
	}
	for _, role := range otherwise[action] {
		if allows(p, role, rule.reach, workspace) {
			return nil
		}
	}
	return fmt.Errorf("%s takes the role %s there: %w", action, rule.role, ErrForbidden)
}

func allows(p Principal, role Role, where reach, workspace string) bool {
	switch {
	case where == wholeHost:
		return p.May(role, "")
	case where == placeOrHost:
		return p.May(role, workspace)
	case where == somewhere && workspace == "":
		return p.MaySomewhere(role)
	}
	return workspace != "" && p.May(role, workspace)
}

// AuthorizeExecutor says whether the principal may attach as that executor, with
// the errors of Authorize.
func AuthorizeExecutor(p Principal, executor string) error {
	if err := Authorize(p, AttachExecutor, ""); err != nil {
		return err
	}
	if !p.MayAttach(executor) {
		return fmt.Errorf("%s as this executor: %w", AttachExecutor, ErrForbidden)
	}
	return nil
}
