package naryahttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) extensionRoutes() routes {
	return routes{"POST /v1/extensions/events": b.publish}
}

// maxPayload bounds what an extension publishes at once, in bytes: everybody who reads the
// stream gets it.
const maxPayload = 64 << 10

// publish records what an extension says (R44): in a session, or on the host.
func (b *Binding) publish(w http.ResponseWriter, r *request) error {
	var body struct {
		Extension string    `json:"extension"`
		Name      string    `json:"name"`
		Payload   narad.Raw `json:"payload"`
		SessionID *string   `json:"sessionId"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	if string(body.Payload) == "null" {
		body.Payload = nil
	}
	var c checked
	for field, rule := range narya.CheckExtension(body.Extension, body.Name) {
		c.add(field, rule)
	}
	c.note(server.CheckText("name", body.Name, 4*narya.MaxExtensionEvent, false))
	switch {
	case body.Payload != nil && body.Payload[0] != '{':
		c.add("payload", "must be an object")
	case len(body.Payload) > maxPayload:
		c.add("payload", "may have at most 65536 bytes")
	}
	if err := c.err(); err != nil {
		return err
	}
	session := ""
	if body.SessionID != nil {
		id, err := b.session(r, *body.SessionID)
		if err != nil {
			return err
		}
		session = id
	}
	return b.accept(w, r, host.Request{
		Action: access.PublishExtension, Session: session,
		Command: decide.Publish{Extension: body.Extension, Name: body.Name, Payload: body.Payload},
	}, func(host.Answer) any { return struct{}{} })
}

// accept performs a command whose results come on the stream, and answers 202.
func (b *Binding) accept(w http.ResponseWriter, r *request, command host.Request, body func(host.Answer) any) error {
	id, err := r.commandID()
	if err != nil {
		return err
	}
	command.CommandID = id
	a, err := b.host.Do(r.Context(), r.principal(), command)
	if err == nil {
		err = answer(a)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusAccepted, body(a))
}
