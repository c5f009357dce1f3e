package narya

import "fmt"

// Code is a code of the catalogue, such as "NRY-0002". It keeps its meaning for ever.
type Code string

// The codes. Four are the contract's own: 0002, 0012, 0018 and 0026.
const (
	CodeMalformed          Code = "NRY-0001"
	CodeSessionNotFound    Code = "NRY-0002"
	CodeInvalid            Code = "NRY-0003"
	CodeNoSuchRoute        Code = "NRY-0004"
	CodeMethod             Code = "NRY-0005"
	CodeUnauthorised       Code = "NRY-0006"
	CodeForbidden          Code = "NRY-0007"
	CodeTooLarge           Code = "NRY-0008"
	CodeArchived           Code = "NRY-0009"
	CodeBusy               Code = "NRY-0010"
	CodeInternal           Code = "NRY-0011"
	CodeStoreRefuses       Code = "NRY-0012"
	CodeNotReady           Code = "NRY-0013"
	CodeOverloaded         Code = "NRY-0014"
	CodeEntryNotFound      Code = "NRY-0015"
	CodeTurnNotFound       Code = "NRY-0016"
	CodeLaneNotFound       Code = "NRY-0017"
	CodeNoModel            Code = "NRY-0018"
	CodeAgentFailed        Code = "NRY-0019"
	CodeHostRestarted      Code = "NRY-0020"
	CodePermissionNotFound Code = "NRY-0021"
	CodeAlreadyDecided     Code = "NRY-0022"
	CodeQuestionNotFound   Code = "NRY-0023"
	CodeExpired            Code = "NRY-0024"
	CodeNotWaiting         Code = "NRY-0025"
	CodeCursorAhead        Code = "NRY-0026"
	CodeQueueFull          Code = "NRY-0027"
	CodeUnsupported        Code = "NRY-0028"
	CodeConflict           Code = "NRY-0029"
	CodeWorkflowNotFound   Code = "NRY-0030"
	CodeWorkflowEnded      Code = "NRY-0031"
	CodeNobodyCalled       Code = "NRY-0032"
	CodeAskClosed          Code = "NRY-0033"
	CodeTurnLimit          Code = "NRY-0034"
	CodeDeleted            Code = "NRY-0035"
	CodeNotRemembered      Code = "NRY-0036"
)

// CodeEntry is what the catalogue says of one code.
type CodeEntry struct {
	Code Code
	// Status is the HTTP status of a response with the code, 0 for one that stands on a
	// turn alone.
	Status int
	Title  string
	// When says in one sentence when it is given.
	When string
}

var catalogue = []CodeEntry{
	{CodeMalformed, 400, "Malformed request", "A body is not JSON, or a parameter, a header or a cursor has not the form that it must have."},
	{CodeSessionNotFound, 404, "Session not found", "No session with that id is on this host, or it began before the host spoke this contract."},
	{CodeInvalid, 422, "Invalid fields", "A request is well formed, but fields of it have values that cannot be; `fields` names each."},
	{CodeNoSuchRoute, 404, "No such operation", "The path is that of no operation."},
	{CodeMethod, 405, "Method not allowed", "The path has no operation of that method."},
	{CodeUnauthorised, 401, "Not authorised", "A request over TCP carries no token, or one that this host did not give."},
	{CodeForbidden, 403, "Forbidden", "The caller may not do this, or not in this session."},
	{CodeTooLarge, 413, "Request too large", "A body is larger than the host takes."},
	{CodeArchived, 409, "Session archived", "An archived session takes no new work."},
	{CodeBusy, 409, "Session busy", "A turn or a workflow is under way, or messages wait, and the operation needs a session at rest."},
	{CodeInternal, 500, "Internal error", "The host failed; nothing was done."},
	{CodeStoreRefuses, 500, "The store refuses writes", "The disk is as good as full: reading, decisions and stops go on. Or a write has failed, and the host is about to end."},
	{CodeNotReady, 503, "Host not ready", "The host is starting, and closes what its predecessor left open, or it is ending; ask again after `Retry-After`."},
	{CodeOverloaded, 503, "Host overloaded", "Too much waits, of the session or of the caller; nothing was done, ask again after `Retry-After`."},
	{CodeEntryNotFound, 404, "Entry not found", "No entry with that id is in the transcript."},
	{CodeTurnNotFound, 404, "Turn not found", "The session has no turn with that id."},
	{CodeLaneNotFound, 404, "Lane not found", "No lane with that id is on this host."},
	{CodeNoModel, 409, "No usable model", "No agent or model is chosen that this host can use. It stands on a turn too."},
	{CodeAgentFailed, 0, "The agent failed", "The agent ended the turn with an error of its own, or its process ended."},
	{CodeHostRestarted, 0, "The host was restarted", "The host ended during the turn, and the agent cannot go on inside one."},
	{CodePermissionNotFound, 404, "Permission not found", "No permission with that id was ever asked for."},
	{CodeAlreadyDecided, 409, "Already decided", "The permission or question was settled before, in another way."},
	{CodeQuestionNotFound, 404, "Question not found", "No question with that id was ever asked."},
	{CodeExpired, 410, "Expired", "Nobody decided it, and nobody can any more: its time was over, or what asked for it was stopped or ended; the action did not run."},
	{CodeNotWaiting, 404, "Not waiting", "No message of that entry waits: it was taken back before, or its turn has begun."},
	{CodeCursorAhead, 409, "Cursor newer than the store", "`Last-Event-ID` is above every id that this store has given. Resume without one."},
	{CodeQueueFull, 409, "Queue full", "As many messages wait in the session as may."},
	{CodeUnsupported, 501, "Not supported", "The agent of the session cannot do this, such as taking a message during a turn."},
	{CodeConflict, 409, "Conflict", "The id belongs to something else, or the state has changed since the caller saw it."},
	{CodeWorkflowNotFound, 404, "Workflow not found", "No workflow or run of one has that name or id."},
	{CodeWorkflowEnded, 409, "Workflow ended", "The run of the workflow has ended in another way."},
	{CodeNobodyCalled, 404, "Nobody of that name", "No session on this host is called so."},
	{CodeAskClosed, 409, "Ask closed", "The question of the other session was answered, or nobody waits for an answer any more: the turn that asked has ended, or one of the two sessions was archived or deleted."},
	{CodeTurnLimit, 0, "Turn limit reached", "The agent used up the requests that one turn may make."},
	{CodeDeleted, 410, "Session deleted", "The session was deleted; its id is never given again."},
	{CodeNotRemembered, 404, "Not remembered", "The session remembers no decision under that name: it was forgotten, its lane has ended, or a later one took its place."},
}

// Catalogue returns every code, in order.
func Catalogue() []CodeEntry { return append([]CodeEntry(nil), catalogue...) }

// Lookup returns what the catalogue says of a code.
func Lookup(code Code) (CodeEntry, bool) {
	for _, e := range catalogue {
		if e.Code == code {
			return e, true
		}
	}
	return CodeEntry{}, false
}

// Refuse makes an error of the catalogue. What happened is told as with [fmt.Sprintf],
// without secrets; an empty text is replaced by what the catalogue says.
func Refuse(code Code, format string, args ...any) *Error {
	entry, _ := Lookup(code)
	message := fmt.Sprintf(format, args...)
	if message == "" {
		message = entry.When
	}
	return &Error{Code: code, Title: entry.Title, Message: clip(message, maxErrorMessage)}
}
