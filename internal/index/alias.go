package index

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// NaryaAlias names the row that leads from a UUID of Narya's back to the id that it stands
// for (R5). That of a member of a pack is read with [Member].
func NaryaAlias(kind narya.Kind, uuid string) journal.Key {
	return journal.AliasKey("narya."+string(kind), uuid)
}

// Entry names the row of an entry of a transcript, whose id [Span] reads, and Redaction that
// of the fact that redacted a message.
func Entry(entryID string) journal.Key { return journal.AliasKey("narya.entry", entryID) }

// Redaction is told of with Entry.
func Redaction(session, messageID string) journal.Key {
	return journal.AliasKey("narya.redaction", session+" "+messageID)
}

// Remembered names the row that says where it stands what the decision of a permission was
// to have remembered: its id is the sequence of the fact.
func Remembered(interruptID, requestID string) journal.Key {
	permission := narya.UUID(narya.KindInterrupt, interruptID)
	if requestID != "" {
		permission = narya.MemberPermissionID(interruptID, requestID)
	}
	return journal.AliasKey("narya.remembered", permission)
}

// Span reads the session sequences between which an entry stands: an answer begins before
// the fact that completes it, at which its entry is appended.
func Span(id string) (first, last uint64) {
	begin, end, _ := strings.Cut(id, "-")
	first, _ = strconv.ParseUint(begin, 10, 64)
	last, _ = strconv.ParseUint(end, 10, 64)
	return first, last
}

// aliases keeps the ways back from what a fact names on Narya's stream.
func (c *changes) aliases() {
	mapping := narya.MappingOf(c.fact, c.desk.Created.Mappings.Narya)
	if mapping == narya.NoMapping {
		return
	}
	c.entries(mapping)
	for _, a := range mapping.Aliases(c.fact) {
		key := NaryaAlias(a.Kind, a.UUID)
		c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: aliased(a)})
	}
}

func (c *changes) entries(mapping narya.Mapping) {
	first := c.e.SessionSequence
	switch f := c.fact.(type) {
	case *narad.MessageTextCompleted:
		first = cmp.Or(c.desk.Said[f.MessageID], first)
	case *narad.MessageRedacted:
		key := Redaction(c.e.SessionID, f.MessageID)
		c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: strconv.FormatInt(first, 10)})
	}
	for _, id := range mapping.Entries(c.fact) {
		key := Entry(id)
		span := strconv.FormatInt(first, 10) + "-" + strconv.FormatInt(c.e.SessionSequence, 10)
		c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: span})
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
