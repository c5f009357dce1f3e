package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// hostStream is the stream of what belongs to no session (R8).
const hostStream = "~host"

// Publish records what an extension says, in a session or on the host (R44). Who hands it
// over has checked the form of its names, and that the payload is an object or nil.
type Publish struct {
	// Extension is "namespace/name", Name the extension's own word for the event.
	Extension string
	Name      string
	Payload   narad.Raw
}

func (p Publish) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists() && d.state.SessionID() != hostStream:
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	}
	d.add(facts.Session(facts.Extension, facts.Published(p)))
	return Answer{Status: Accepted}
}

func (Publish) word() string { return "publish-extension" }

func (p Publish) tell(to *content) {
	to.text("extension", p.Extension)
	to.text("name", p.Name)
	to.text("payload", string(p.Payload))
}
