package decide

import (
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
)

// AddAttachment admits an input whose bytes are kept already (specification §9.5).
type AddAttachment struct {
	AttachmentID string
	facts.Material
}

func (a AddAttachment) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	}
	unread := a.Material
	unread.Digest = ""
	d.add(attachment(narad.TypeAttachmentAdded, a.AttachmentID, unread))
	d.subject()
	d.add(attachment(narad.TypeAttachmentReady, a.AttachmentID, a.Material))
	return Answer{Status: Accepted, RequestID: a.AttachmentID}
}

func attachment(kind narad.Type, id string, m facts.Material) *narad.Attachment {
	f := &narad.Attachment{Kind: kind, AttachmentID: id}
	facts.SetMaterial(&f.Event, m)
	return f
}

// FailAttachment records an input that was begun and whose bytes did not come whole.
type FailAttachment struct {
	AttachmentID string
	facts.Material
	Code    string
	Message string
}

func (f FailAttachment) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	}
	failed := attachment(narad.TypeAttachmentFailed, f.AttachmentID, f.Material)
	failed.Code, failed.Message = f.Code, f.Message
	d.add(attachment(narad.TypeAttachmentAdded, f.AttachmentID, f.Material), failed)
	return Answer{Status: Accepted, RequestID: f.AttachmentID}
}

// RemoveAttachment takes an attachment back. One that a waiting message names stays: its
// agent has not read it.
type RemoveAttachment struct{ AttachmentID string }

func (r RemoveAttachment) propose(d *draft) Answer {
	if !d.desk.Exists() {
		return refuse(NotFound, "no such session")
	}
	m, ready := d.attachment(r.AttachmentID)
	switch {
	case !ready && d.env.Removed != nil && d.env.Removed(r.AttachmentID):
		return Answer{Status: AlreadyApplied, RequestID: r.AttachmentID}
	case !ready:
		return refuse(NotFound, "no such attachment")
	case slices.ContainsFunc(d.desk.Queue, func(q desk.Waiting) bool { return slices.Contains(q.AttachmentIDs, r.AttachmentID) }):
		return refuse(Conflict, "a waiting message has the attachment")
	}
	m.Digest = ""
	d.add(attachment(narad.TypeAttachmentRemoved, r.AttachmentID, m))
	return Answer{Status: Accepted, RequestID: r.AttachmentID}
}

// attachment returns an attachment that is ready.
func (d *draft) attachment(id string) (facts.Material, bool) {
	if d.env.Attachment == nil {
		return facts.Material{}, false
	}
	return d.env.Attachment(id)
}
