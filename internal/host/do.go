package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narya"
)

// Request is one command of a client.
type Request struct {
	// Action is what the caller must be allowed to do: the one that the command takes.
	Action access.Action
	// Session names the session; a decision may leave it out, its interrupt tells. What an
	// extension publishes without one belongs to the host.
	Session string
	Command decide.Command
	// CommandID makes the command idempotent (R21); empty for a command that is not.
	CommandID string
	// InputID is the id of the headless input that the command performs, which makes it
	// idempotent among the inputs of the run RunID, or, where it starts one, among those
	// with which the caller starts runs in the session.
	InputID string
	RunID   string
}

// Do performs a command: authorise, find the owner, let it decide and append. The
// answer is definite. An error says that nothing is known to have happened: those of
// package access, of this package, or of the context.
func (h *Host) Do(ctx context.Context, p access.Principal, r Request) (decide.Answer, error) {
	if !h.ready.Load() {
		return decide.Answer{}, h.notReady()
	}
	if want := actionOf(r.Command); want == "" || r.Action != want {
		return decide.Answer{}, fmt.Errorf("%q is not what %T takes: %w", r.Action, r.Command, access.ErrForbidden)
	}
	workspace, err := h.authorize(ctx, p, &r)
	if err != nil || workspace == unknownSession {
		return decide.Answer{Status: decide.NotFound, Detail: "no such session or interrupt"}, err
	}
	for overtaken := 0; ; overtaken++ {
		answer, err := h.perform(ctx, p, r)
		switch {
		case !makesSession(r.Command) || !errors.Is(err, journal.ErrCondition):
			return answer, err
		case overtaken == maxFenced:
			return decide.Answer{}, fmt.Errorf("others make sessions of the same name: %w", ErrOverloaded)
		}
	}
}

// perform does what the caller may do. Where another session was made in the meantime with
// what this one was to be called, or is shown as, it fails with ErrCondition and can be done
// again.
func (h *Host) perform(ctx context.Context, p access.Principal, r Request) (decide.Answer, error) {
	t, err := newTask(p, r)
	if err != nil {
		return decide.Answer{}, err
	}
	command, answer, err := h.prepare(ctx, r.Session, r.Command)
	if hidden(p, err) && makesSession(r.Command) {
		return decide.Answer{Status: decide.Conflict, Detail: "the id was given to another session"}, nil // as of one elsewhere
	}
	if err != nil {
		return decide.Answer{}, err
	}
	if makesSession(r.Command) && answer.Status != "" {
		return answer, nil // nobody owns what is not there
	}
	t.command, t.refusal = command, answer
	if start, ok := r.Command.(decide.StartWorkflow); ok {
		if field, detail := h.checkWorkflow(&start); detail != "" {
			t.refusal = decide.Answer{Status: decide.Rejected, Detail: detail, Field: field}
		}
		t.command = start
	}
	if tell, ok := r.Command.(decide.Tell); ok {
		err = h.addressee(ctx, &tell, func(workspace string) bool {
			return access.Authorize(p, access.SendMessage, workspace) == nil
		})
		if err != nil {
			return decide.Answer{}, err
		}
		t.command = tell
	}
	return h.hand(ctx, r.Session, t)
}

func makesSession(c decide.Command) bool {
	switch c.(type) {
	case decide.Create, decide.Branch:
		return true
	}
	return false
}

// actionOf is what a client must be allowed to do for a command; nothing allows the
// commands that are not a client's.
func actionOf(c decide.Command) access.Action {
	switch c.(type) {
	case decide.Create, decide.Branch:
		return access.CreateSession
	case decide.Retitle, decide.Move, decide.ChooseModel, decide.ChooseVariant, decide.ChooseStyle, decide.SetPosture,
		decide.SetWarming, decide.MarkViewed:
		return access.UpdateSession
	case decide.Archive:
		return access.ArchiveSession
	case decide.Restore:
		return access.RestoreSession
	case decide.Message, decide.StartRootRun, decide.SubmitMessage:
		return access.SendMessage
	case decide.StartWorkflow:
		return access.StartWorkflow
	case decide.Stop, decide.CancelRun:
		return access.StopRun
	case decide.Release, decide.Withdraw:
		return access.ChangeQueue
	case decide.AddAttachment, decide.FailAttachment, decide.RemoveAttachment:
		return access.UploadAttachment
	case decide.Redact:
		return access.RedactMessage
	case decide.Tell, decide.AnswerAsk:
		return access.SendMessage
	case decide.Publish:
		return access.PublishExtension
	case decide.Resolve, decide.ResolveApproval, decide.DecidePermission, decide.AnswerQuestion,
		decide.ForgetPermission:
		return access.ResolveInterrupt
	}
	return ""
}

func (h *Host) notReady() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	return ErrRecovering
}

// unknownSession is the workspace of a session that is not there.
const unknownSession = "\x00"

// authorize finds the workspace that the command is about and asks whether the caller
// may.
func (h *Host) authorize(ctx context.Context, p access.Principal, r *Request) (string, error) {
	if create, ok := r.Command.(decide.Create); ok {
		return create.Payload.WorkspaceID, access.Authorize(p, r.Action, create.Payload.WorkspaceID)
	}
	if branch, ok := r.Command.(decide.Branch); ok {
		return h.authorizeBranch(ctx, p, branch)
	}
	if resolve, ok := r.Command.(decide.Resolve); ok && r.Session == "" {
		session, err := h.sessionOfInterrupt(ctx, resolve.InterruptID)
		if err != nil {
			return "", fmt.Errorf("find interrupt: %w", err)
		}
		r.Session = session
	}
	if _, publish := r.Command.(decide.Publish); publish && r.Session == "" {
		r.Session = journal.HostStream
		return "", access.Authorize(p, r.Action, "")
	}
	return h.workspace(ctx, p, r.Action, r.Session)
}

// workspace returns the workspace of a session that the caller may act in. A session in
// a workspace that the caller does not reach is one that is not there.
func (h *Host) workspace(ctx context.Context, p access.Principal, action access.Action, id string) (string, error) {
	if p.IsZero() {
		return "", access.ErrUnauthenticated
	}
	workspace, err := h.workspaceOf(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound), err == nil && !p.Reaches(workspace), hidden(p, err):
		return unknownSession, nil
	case err != nil:
		return "", err
	}
	return workspace, access.Authorize(p, action, workspace)
}

// hidden reports whether an error is that of a session of which the caller is told nothing.
// In which workspace a deleted one was is not known any more: who does not reach all of them
// is not told that it ever was.
func hidden(p access.Principal, err error) bool {
	return errors.Is(err, journal.ErrDeleted) && !p.Reaches(unknownSession)
}

// workspaceOf finds the workspace of a session. The owner of one that is live tells it
// without a read of the store: most commands are for such a session.
func (h *Host) workspaceOf(ctx context.Context, id string) (string, error) {
	h.mu.Lock()
	o := h.owners[id]
	h.mu.Unlock()
	if o != nil && !isDone(o.ended) {
		if workspace := o.workspace.Load(); workspace != nil {
			return *workspace, nil
		}
	}
	row, err := h.sessionRow(ctx, id)
	return row.Workspace, err
}

// sessionRow finds a session: ErrNotFound, or ErrGone for one that was deleted.
func (h *Host) sessionRow(ctx context.Context, id string) (journal.SessionRow, error) {
	if id == "" || id == journal.HostStream || id == journal.RowStream {
		return journal.SessionRow{}, journal.ErrNotFound
	}
	row, err := journal.Get[journal.SessionRow](ctx, h.journal, journal.SessionKey(id))
	if errors.Is(err, journal.ErrDamaged) {
		h.damaged(journal.Damage{Session: id, Key: journal.SessionKey(id), Cause: err})
		return h.sessionByFacts(ctx, id)
	}
	if !errors.Is(err, journal.ErrNotFound) {
		return row, err
	}
	if _, headErr := h.journal.Head(ctx, id); headErr != nil {
		return row, headErr
	}
	return row, err // it has rows alone
}

// maxFenced is how often a task is handed over that another owner was faster than.
const maxFenced = 3

// hand gives a task to the session's owner and waits for the answer. One that ends takes
// nothing: neither because it was idle, nor because another owner has a newer term; the
// next one takes the task.
func (h *Host) hand(ctx context.Context, id string, t *task) (decide.Answer, error) {
	for fenced := 0; ; {
		answer, err := h.handOnce(ctx, id, t)
		switch {
		case errors.Is(err, errOwnerEnded):
			continue
		case !errors.Is(err, journal.ErrConflict):
			return answer, err
		case fenced == maxFenced:
			return decide.Answer{}, fmt.Errorf("others write the session: %w", ErrOverloaded)
		}
		fenced++
	}
}

func (h *Host) handOnce(ctx context.Context, id string, t *task) (decide.Answer, error) {
	o, err := h.owner(ctx, id)
	if err != nil {
		return decide.Answer{}, err
	}
	return o.do(ctx, t)
}

// newTask makes a client's command a task. One that can be told again has keys, and the
// hash of its content.
func newTask(p access.Principal, r Request) (*task, error) {
	t := &task{
		command: r.Command, actor: facts.Actor{ID: p.ID()}, commandID: r.CommandID, inputID: r.InputID,
		reply: make(chan reply, 1),
	}
	if r.CommandID != "" {
		t.keys = append(t.keys, journal.CommandKey(r.Session, "principal:"+p.ID(), r.CommandID))
	}
	if r.InputID != "" {
		space := inputSpace(r.RunID)
		if r.RunID == "" {
			space = "start:" + p.ID()
		}
		t.keys = append(t.keys, journal.CommandKey(r.Session, space, r.InputID))
	}
	if m, ok := r.Command.(decide.Message); ok && m.MessageID != "" {
		t.keys = append(t.keys, journal.CommandKey(r.Session, "message", m.MessageID))
	}
	if len(t.keys) == 0 {
		return t, nil
	}
	sum, ok := decide.ContentHash(r.Command)
	if !ok {
		return nil, fmt.Errorf("%w: %T is no command of a client", ErrInternal, r.Command)
	}
	t.hash = sum[:]
	return t, nil
}

// lookUp reads a row that a decision depends on. One that cannot be read is not one that
// is not there: the command then fails.
func lookUp[R journal.Row](ctx context.Context, o *owner, key journal.Key) (R, bool) {
	row, err := journal.Get[R](ctx, o.host.journal, key)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		o.host.damaged(journal.Damage{Session: o.id, Key: key, Cause: err})
		o.unread = err
	case err != nil && !errors.Is(err, journal.ErrNotFound) && !errors.Is(err, journal.ErrInvalid): // no row has such an id
		o.unread = err
	}
	return row, err == nil
}

// endedRun tells the state of a run of the session that is no longer open.
func (o *owner) endedRun(ctx context.Context) func(string) (session.RunState, bool) {
	return func(run string) (session.RunState, bool) {
		row, known := lookUp[journal.RunRow](ctx, o, journal.RunKey(run))
		if !known || row.Session != o.id {
			return "", false
		}
		return session.RunState(row.State), true
	}
}

// closedInterrupt tells how an interrupt of the session was closed.
func (o *owner) closedInterrupt(ctx context.Context) func(string) (decide.Closed, bool) {
	return func(interrupt string) (decide.Closed, bool) {
		row, known := lookUp[journal.InterruptRow](ctx, o, journal.InterruptKey(interrupt))
		if !known || row.Session != o.id || row.Open {
			return decide.Closed{}, false
		}
		v := index.Read[index.Interrupt](row.Value)
		return decide.Closed{
			RootRunID: v.RootRunID, Kind: v.Kind, Decision: v.Decision, SessionSequence: v.SessionSequence, Members: v.Members,
			Facts: func() (*narad.InterruptRequested, *narad.InterruptResolved) {
				return factOf[*narad.InterruptRequested](ctx, o, int64(row.Sequence)), factOf[*narad.InterruptResolved](ctx, o, v.SessionSequence)
			},
		}, true
	}
}

// remembered tells what a decision of the session was to have remembered.
func (o *owner) remembered(ctx context.Context) func(string, string) (facts.PermissionRule, bool) {
	return func(interrupt, request string) (rule facts.PermissionRule, known bool) {
		fact, err := o.host.factAt(ctx, o.id, index.Remembered(interrupt, request))
		if errors.Is(err, journal.ErrNotFound) {
			return rule, false
		}
		if err != nil {
			o.unread = err
			return rule, false
		}
		return facts.Read[facts.PermissionRule](fact, facts.PermissionRemembered)
	}
}

// factOf reads a fact that a decision depends on. The command fails where it cannot be read.
func factOf[F narad.Authority](ctx context.Context, o *owner, sequence int64) (none F) {
	fact, err := o.host.fact(ctx, o.id, sequence)
	if err != nil {
		o.unread = err
		return none
	}
	f, ok := fact.(F)
	if !ok {
		o.unread = fmt.Errorf("fact %d is another one than its row says: %w", sequence, journal.ErrDamaged)
	}
	return f
}

// recorded tells whether a message of the session was recorded.
func (o *owner) recorded(ctx context.Context) func(string) bool {
	return func(message string) bool {
		_, known := lookUp[journal.AliasRow](ctx, o, index.Recorded(o.id, message))
		return known
	}
}

// heard tells whether another session gave the session an answer with that id, which is an
// entry and no message of the conversation.
func (o *owner) heard(ctx context.Context) func(string) bool {
	return func(message string) bool {
		entry := narya.MessageEntryID(o.id, message)
		row, known := lookUp[journal.AliasRow](ctx, o, index.Entry(entry))
		if !known {
			return false
		}
		_, at := index.Span(row.ID)
		fact, err := o.host.fact(ctx, o.id, int64(at))
		if err != nil {
			o.unread = err
			return false
		}
		told, _ := facts.Read[facts.Told](fact, facts.Intercom)
		return told.Kind == facts.Answered
	}
}

// Answer answers a command.
type Answer = decide.Answer
