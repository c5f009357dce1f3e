package naryahttp

import (
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// session returns the session that a UUID names on the wire (R5). ErrNotFound is for one
// that is not there, or that began before this contract was served (R1).
func (b *Binding) session(r *request, uuid string) (id string, err error) {
	uuid, ok := narya.ParseUUID(uuid)
	if !ok {
		return "", host.ErrNotFound
	}
	_, id, err = b.host.Alias(r.Context(), r.principal(), narya.KindSession, uuid)
	return id, err
}

// view returns the session that the path names in the eyes of the caller, who may do action
// in it.
func (b *Binding) view(r *request, action access.Action) (*host.View, error) {
	id, err := b.session(r, r.PathValue("sessionId"))
	if err != nil {
		return nil, err
	}
	server.Annotate(r.Context(), "session", id)
	return b.host.Attach(r.Context(), r.principal(), action, id)
}
