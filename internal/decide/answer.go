package decide

import "github.com/mahati-host/mahati/narad/session"

// Status is one of the eight words that answer a command.
type Status string

// The statuses.
const (
	Accepted       Status = "accepted"
	AlreadyApplied Status = "already_applied"
	NotFound       Status = "not_found"
	Forbidden      Status = "forbidden"
	Expired        Status = "expired"
	Conflict       Status = "conflict"
	Rejected       Status = "rejected"
	Unsupported    Status = "unsupported"
)

// Accepted reports whether the command has its effect.
func (s Status) Accepted() bool { return s == Accepted }

// Answer answers a command.
type Answer struct {
	Status Status `json:"status"`
	// Decision is the decision of the interrupt, the winner's if another one came first.
	Decision string `json:"decision,omitzero"`
	// RequestID names the interrupt.
	RequestID string `json:"requestId,omitzero"`
	// Detail is a sentence for people.
	Detail string `json:"detail,omitzero"`
	// SessionSequence is the place of the fact that is the effect.
	SessionSequence int64  `json:"sessionSequence,omitzero"`
	RunID           string `json:"runId,omitzero"`
	WorkflowID      string `json:"workflowId,omitzero"`
	// ID is the id that was made for what an agent recorded. It is not shown.
	ID string `json:"-"`
	// Revision is that of a state which was changed. It is not shown.
	Revision int64 `json:"-"`
	// Err is the reason of a refused record of an agent, or input of a run. It is not shown.
	Err Refusal `json:"-"`
	// MessageID is that of a message that was taken, Queued whether it waits. They are not
	// shown.
	MessageID string `json:"-"`
	Queued    bool   `json:"-"`
	// Field names what is wrong in a command that is refused. It is not shown.
	Field string `json:"-"`
	// Repeated says that it is the first answer to what was told again. It is not shown.
	Repeated bool `json:"-"`

	keep bool // the facts stand although the command itself is refused
}

// Refusal is why an agent's record is refused, or an input of a run.
type Refusal string

// The refusals.
const (
	RefusedStopped Refusal = "stopped"
	RefusedEnded   Refusal = "ended"
	RefusedInvalid Refusal = "invalid"
	// RefusedPaused: nothing starts in a paused run. It may when the run has resumed.
	RefusedPaused Refusal = "paused"
	// RefusedConflict: a change of a state is based on another revision.
	RefusedConflict Refusal = "conflict"
	// RefusedTooLarge is given by the owner: no fact may hold the value (R7).
	RefusedTooLarge Refusal = "too_large"
	// RefusedReused is given by the owner: the id was used for something else (R21).
	RefusedReused Refusal = "reused"
	// RefusedWaiting: the run waits in the queue.
	RefusedWaiting Refusal = "waiting"
	// RefusedUnsteerable: the agent takes no message during a run.
	RefusedUnsteerable Refusal = "unsteerable"
	// RefusedApproval: what was named is no pending approval of the run.
	RefusedApproval Refusal = "approval"
	// RefusedScope: an approval declared another scope.
	RefusedScope Refusal = "scope"
	// RefusedArchived: an archived session takes no new work.
	RefusedArchived Refusal = "archived"
	// RefusedArchivedOther: the session that is spoken to was archived.
	RefusedArchivedOther Refusal = "archived_other"
	// RefusedNobody: no session is called so. RefusedSelf: the session is the one that speaks.
	RefusedNobody Refusal = "nobody"
	RefusedSelf   Refusal = "self"
	// RefusedOutbox: too much of the session waits to be delivered, or to be answered.
	RefusedOutbox Refusal = "outbox"
	// RefusedAskClosed: the ask was answered, or nobody waits for it any more.
	RefusedAskClosed Refusal = "ask_closed"
	// RefusedRemember: what is asked for cannot be remembered.
	RefusedRemember Refusal = "remember"
	// RefusedAnswer: an answer does not fit its question.
	RefusedAnswer Refusal = "answer"
	// RefusedFull: as many messages wait in the session as may.
	RefusedFull Refusal = "full"
	// RefusedNotOffered: an approval offers nothing that the word stands for.
	RefusedNotOffered Refusal = "not_offered"
	// RefusedBusy: something is active in the session, or waits.
	RefusedBusy Refusal = "busy"
	// RefusedUntold: others are to be told of something before the session is deleted.
	RefusedUntold Refusal = "untold"
	// RefusedID: no session can have the id.
	RefusedID Refusal = "id"
	// What a session cannot be set up with, as the host knows: a directory, an agent, a
	// model, a preset of one, a style. RefusedNoModel: the agent offers no model at all.
	RefusedDirectory Refusal = "directory"
	RefusedAgent     Refusal = "agent"
	RefusedModel     Refusal = "model"
	RefusedNoModel   Refusal = "no_model"
	RefusedVariant   Refusal = "variant"
	RefusedStyle     Refusal = "style"
)

func refuse(s Status, detail string) Answer { return Answer{Status: s, Detail: detail} }

// refuseArchived refuses new work of a session that was put away.
func refuseArchived() Answer {
	return Answer{Status: Conflict, Detail: "the session is archived", Err: RefusedArchived}
}

// RefuseBusy refuses what needs a session at rest.
func RefuseBusy() Answer {
	return Answer{Status: Conflict, Detail: "a run is active or a message is waiting", Err: RefusedBusy}
}

// refuseFull refuses a message for which the queue has no room.
func refuseFull() Answer {
	return Answer{Status: Conflict, Detail: "the queue of the session is full", Err: RefusedFull}
}

// refuseRecord refuses an agent's record.
func refuseRecord(r Refusal, detail string) Answer {
	return Answer{Status: Rejected, Detail: detail, Err: r}
}

// terminalWord names a terminal for people.
func terminalWord(s session.RunState) string {
	switch s {
	case session.Finished:
		return "finished"
	case session.Failed:
		return "failed"
	}
	return "was cancelled"
}
