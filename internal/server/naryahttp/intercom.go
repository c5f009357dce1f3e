package naryahttp

import (
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) intercomRoutes() routes {
	return routes{
		"GET /v1/intercom":                           b.listCallables,
		"POST /v1/sessions/{sessionId}/intercom":     b.tell,
		"GET /v1/sessions/{sessionId}/intercom/asks": b.listAsks,
		"POST /v1/intercom/asks/{askId}/answer":      b.answerAsk,
	}
}

type callable struct {
	Name      string `json:"name"`
	SessionID string `json:"sessionId"`
	Status    string `json:"status"`
}

// listCallables lists who can be spoken to.
func (b *Binding) listCallables(w http.ResponseWriter, r *request) error {
	at, err := b.page(r, "intercom")
	if err != nil {
		return err
	}
	list, next, err := b.host.Callables(r.Context(), r.principal(), at.Cursor, at.Limit)
	if err != nil {
		return err
	}
	items := make([]callable, len(list))
	for i, c := range list {
		items[i] = callable{c.Name, narya.UUID(narya.KindSession, c.SessionID), c.State}
	}
	return writeList(w, at, items, next)
}

type told struct {
	MessageID string `json:"messageId"`
	AskID     string `json:"askId,omitzero"`
}

// tell says something to another session in the name of this one.
func (b *Binding) tell(w http.ResponseWriter, r *request) error {
	v, err := b.view(r, access.SendMessage)
	if err != nil {
		return err
	}
	var body struct {
		To      string  `json:"to"`
		Content string  `json:"content"`
		Kind    *string `json:"kind"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var c checked
	if body.To == "" || len(body.To) > 256 {
		c.add("to", "must be the name of a session")
	}
	kind := c.word("kind", body.Kind, string(narya.IntercomTold), string(narya.IntercomAsk))
	checkContent(&c, body.Content)
	if err := c.err(); err != nil {
		return err
	}
	return b.say(w, r, v, decide.Tell{To: body.To, Content: body.Content, Ask: kind == string(narya.IntercomAsk)})
}

// say performs what makes a session speak, and answers with what was sent.
func (b *Binding) say(w http.ResponseWriter, r *request, v *host.View, command decide.Command) error {
	id, err := r.commandID()
	if err != nil {
		return err
	}
	a, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.SendMessage, Session: v.SessionID(), Command: command, CommandID: id,
	})
	if err == nil {
		err = intercomAnswer(a)
	}
	if err != nil {
		return err
	}
	sent, err := v.Sent(r.Context(), a.SessionSequence)
	if err != nil {
		return err
	}
	return write(w, http.StatusAccepted, told{sent.MessageID, sent.AskID})
}

// intercomAnswer is what the answer to a command of the intercom means.
func intercomAnswer(a host.Answer) error {
	switch a.Err {
	case decide.RefusedNobody:
		return refuse(narya.CodeNobodyCalled, "")
	case decide.RefusedArchivedOther:
		return refuse(narya.CodeArchived, a.Detail)
	case decide.RefusedSelf:
		return invalid("to", a.Detail)
	case decide.RefusedOutbox:
		return refuse(narya.CodeOverloaded, a.Detail)
	case decide.RefusedAskClosed:
		return refuse(narya.CodeAskClosed, a.Detail)
	}
	if a.Status == decide.Rejected {
		return invalid("content", a.Detail)
	}
	return answer(a)
}

type openAsk struct {
	AskID   string `json:"askId"`
	From    string `json:"from"`
	Content string `json:"content"`
	// Redacted says that the content stands in the place of what was asked.
	Redacted bool   `json:"redacted,omitzero"`
	AskedAt  string `json:"askedAt"`
}

// listAsks lists what other sessions asked this one and wait for, all of it: there are few.
func (b *Binding) listAsks(w http.ResponseWriter, r *request) error {
	v, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	at, err := b.page(r, "asks", v.SessionID())
	if err != nil {
		return err
	}
	list, err := v.Asks(r.Context())
	if err != nil {
		return err
	}
	var items []openAsk
	for _, ask := range list {
		if at.Cursor != "" && ask.AskID <= at.Cursor {
			continue
		}
		if len(items) == at.Limit {
			return writeList(w, at, items, items[len(items)-1].AskID)
		}
		items = append(items, openAsk(ask))
	}
	return writeList(w, at, items, "")
}

// answerAsk answers an ask, once.
func (b *Binding) answerAsk(w http.ResponseWriter, r *request) error {
	v, id, err := b.findAsk(r)
	if err != nil {
		return err
	}
	var body struct {
		Content string `json:"content"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var c checked
	checkContent(&c, body.Content)
	if err := c.err(); err != nil {
		return err
	}
	return b.say(w, r, v, decide.AnswerAsk{AskID: id, Content: body.Content})
}

// findAsk returns the session that was asked what the path names.
func (b *Binding) findAsk(r *request) (v *host.View, id string, err error) {
	id, ok := narya.ParseUUID(r.PathValue("askId"))
	session, closed, err := "", false, host.ErrNotFound
	if ok {
		session, closed, err = b.host.Asked(r.Context(), id)
	}
	if err == nil {
		v, err = b.host.Attach(r.Context(), r.principal(), access.SendMessage, session)
	}
	switch {
	case errors.Is(err, host.ErrNotFound):
		err = refuse(narya.CodeQuestionNotFound, "")
	case err == nil && closed:
		err = refuse(narya.CodeAskClosed, "the session that was asked is gone")
	}
	return v, id, err
}
