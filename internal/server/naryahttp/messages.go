package naryahttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) messageRoutes() routes {
	return routes{
		"POST /v1/sessions/{sessionId}/messages":           b.submit,
		"POST /v1/sessions/{sessionId}/interrupt":          b.interrupt,
		"DELETE /v1/sessions/{sessionId}/inputs/{entryId}": b.withdraw,
		"POST /v1/sessions/{sessionId}/inputs/release":     b.release,
	}
}

// message is what is said to a session.
type message struct {
	Content       string   `json:"content"`
	Kind          *string  `json:"kind"`
	MessageID     *string  `json:"messageId"`
	AttachmentIDs []string `json:"attachmentIds"`
}

// maxAttachments bounds those of one message.
const maxAttachments = 32

// checkContent checks what is said in a message, whoever says it.
func checkContent(c *checked, content string) {
	switch {
	case content == "":
		c.add("content", "must not be empty")
	case !(decide.Message{Content: content}).Fits():
		c.add("content", fmt.Sprintf("may have at most %d bytes, as a JSON string with its quotation marks", decide.MaxContent))
	}
}

// command checks a message and makes a command of it (R16).
func (m message) command() (c decide.Message, err error) {
	var wrong checked
	c = decide.Message{
		MessageID: wrong.id("messageId", m.MessageID), Content: m.Content, AttachmentIDs: m.AttachmentIDs,
		WhenBusy: decide.WhenBusyQueue,
	}
	checkContent(&wrong, m.Content)
	if wrong.word("kind", m.Kind, string(narya.InputFollowUp), string(narya.InputSteer)) == string(narya.InputSteer) {
		c.WhenBusy = decide.WhenBusySteer
	}
	if len(m.AttachmentIDs) > maxAttachments {
		wrong.add("attachmentIds", "may have at most "+strconv.Itoa(maxAttachments))
		return c, wrong.err()
	}
	for i, id := range m.AttachmentIDs {
		wrong.note(server.CheckID(server.Item("attachmentIds", i), id))
	}
	return c, wrong.err()
}

// submitted is where a message stands that was taken.
type submitted struct {
	TurnID  string `json:"turnId"`
	EntryID string `json:"entryId"`
	Queued  bool   `json:"queued"`
}

// submit says something to a session. What comes of it is on the stream.
func (b *Binding) submit(w http.ResponseWriter, r *request) error {
	var body message
	if err := r.decode(&body); err != nil {
		return err
	}
	command, err := body.command()
	if err != nil {
		return err
	}
	session, err := b.session(r, r.PathValue("sessionId"))
	if err != nil {
		return err
	}
	a, err := b.do(r, host.Request{Action: access.SendMessage, Session: session, Command: command})
	if err == nil {
		err = messageRefused(a)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusAccepted, submitted{
		narya.UUID(narya.KindRun, a.RunID), narya.MessageEntryID(session, a.MessageID), a.Queued,
	})
}

// messageRefused is what the answer to a message means.
func messageRefused(a host.Answer) error {
	switch a.Err {
	case decide.RefusedArchived:
		return refuse(narya.CodeArchived, "")
	case decide.RefusedFull:
		return refuse(narya.CodeQueueFull, "")
	}
	if a.Status == decide.Rejected { // the one thing that was not looked at before
		return invalid("attachmentIds", a.Detail)
	}
	return answer(a)
}

// turn names a turn, "" for none.
type turn struct {
	TurnID string `json:"turnId,omitzero"`
}

// turnOf is the turn of a run, "" for none.
func turnOf(run string) turn {
	if run == "" {
		return turn{}
	}
	return turn{narya.UUID(narya.KindRun, run)}
}

// interrupt asks for the end of a turn: of the one that is named, which never is the next
// one (R14), or of the one under way.
func (b *Binding) interrupt(w http.ResponseWriter, r *request) error {
	var body struct {
		TurnID *string `json:"turnId"`
	}
	if err := r.decodeOptional(&body); err != nil {
		return err
	}
	var wrong checked
	turnID := wrong.uuid("turnId", body.TurnID)
	if err := wrong.err(); err != nil {
		return err
	}
	view, err := b.view(r, access.StopRun) // who does not reach it learns nothing of its turns
	if err != nil {
		return err
	}
	session, run := view.Session(), ""
	if turnID != "" {
		if run, err = b.runOf(r, session, turnID); err != nil {
			return err
		}
	}
	a, err := b.do(r, host.Request{Action: access.StopRun, Session: session, Command: decide.Stop{RootRunID: run, Turn: true}})
	if err != nil {
		return err
	}
	if a.Status == decide.NotFound && run != "" {
		return refuse(narya.CodeTurnNotFound, "")
	}
	if err := answer(a); err != nil {
		return err
	}
	return write(w, http.StatusAccepted, turnOf(a.RunID))
}

// runOf returns the run of a turn of the session. One that waits may have no place in the
// store yet: it is asked for under its own id.
func (b *Binding) runOf(r *request, session, turnID string) (string, error) {
	of, run, err := b.host.Alias(r.Context(), r.principal(), narya.KindRun, turnID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return turnID, nil
	case err == nil && of != session:
		return "", refuse(narya.CodeTurnNotFound, "")
	}
	return run, err
}

// withdraw takes a message back that waits.
func (b *Binding) withdraw(w http.ResponseWriter, r *request) error {
	view, err := b.view(r, access.ChangeQueue)
	if err != nil {
		return err
	}
	entry, _ := narya.ParseUUID(r.PathValue("entryId"))
	run, err := waitedFor(r.Context(), view, entry)
	if err != nil {
		return err
	}
	a, err := b.do(r, host.Request{Action: access.ChangeQueue, Session: view.Session(), Command: decide.Withdraw{RunID: run}})
	switch {
	case err != nil:
		return err
	case a.Err == decide.RefusedReused:
		return answer(a)
	case a.Status != decide.Accepted: // it was taken back before, or its turn has begun
		return refuse(narya.CodeNotWaiting, "")
	}
	return write(w, http.StatusOK, struct {
		EntryID string `json:"entryId"`
		TurnID  string `json:"turnId"`
	}{entry, turnOf(run).TurnID})
}

// waitedFor returns the run for which the message of an entry waits, or has waited: whether
// it does still is for the session's owner to say, who knows what was told before. What
// another session said has its entry as it comes, right before it begins to wait.
func waitedFor(ctx context.Context, v *host.View, entryID string) (run string, err error) {
	_, at, err := v.Entry(ctx, entryID)
	var fact narad.Authority
	if err == nil {
		fact, err = v.Fact(ctx, at)
	}
	if _, told := facts.Read[facts.Told](fact, facts.Intercom); told {
		fact, err = v.Fact(ctx, at+1)
	}
	queued, waited := facts.Read[facts.Queued](fact, facts.InputQueued)
	switch {
	case err != nil && !errors.Is(err, host.ErrNotFound):
		return "", err
	case !waited || narya.MessageEntryID(v.Session(), queued.MessageID) != entryID:
		return "", refuse(narya.CodeNotWaiting, "")
	}
	return queued.RunID, nil
}

// release lets what a stop has parked go on.
func (b *Binding) release(w http.ResponseWriter, r *request) error {
	session, err := b.session(r, r.PathValue("sessionId"))
	if err != nil {
		return err
	}
	a, err := b.do(r, host.Request{Action: access.ChangeQueue, Session: session, Command: decide.Release{}})
	if err == nil {
		err = answer(a)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusAccepted, turnOf(a.RunID))
}
