package index

import (
	"strings"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narya"
)

// NaryaAlias names the row that leads from a UUID of Narya's back to the id that it stands
// for (R5). That of a member of a pack is read with [Member].
func NaryaAlias(kind narya.Kind, uuid string) journal.Key {
	return journal.AliasKey("narya."+string(kind), uuid)
}

// aliases keeps the ways back from what a fact names on Narya's stream.
func (c *changes) aliases() {
	for _, a := range narya.MappingOf(c.fact, c.desk.Created.Mappings.Narya).Aliases(c.fact) {
		key := NaryaAlias(a.Kind, a.UUID)
		c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: aliased(a)})
	}
}

// aliased is the id in an alias's row.
func aliased(a narya.Alias) string {
	if a.Kind == narya.KindMember {
		return a.ID + memberMark + a.RequestID
	}
	return a.ID
}

// memberMark parts the id of an interrupt, which the host made, from a request id.
const memberMark = "/"

// Member reads what stands in the alias of a member of a pack.
func Member(id string) (interruptID, requestID string) {
	interruptID, requestID, _ = strings.Cut(id, memberMark)
	return interruptID, requestID
}
