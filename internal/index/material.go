package index

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// The spaces of rows of materials.
const (
	Attachments = "attachment"
	Artifacts   = "artifact"
)

// The states of a material.
const (
	MaterialAdded   = "added"
	MaterialReady   = "ready"
	MaterialFailed  = "failed"
	MaterialRemoved = "removed"
)

// Material is the value of the row of an attachment or artifact: how it stands since its
// last fact.
type Material struct {
	State     string `json:"state"`
	Name      string `json:"name,omitzero"`
	MediaType string `json:"mediaType,omitzero"`
	Bytes     int64  `json:"bytes,omitzero"`
	Code      string `json:"code,omitzero"`
	Message   string `json:"message,omitzero"`
	RunID     string `json:"runId,omitzero"`
	// ToolCallID is the call that an artifact came of.
	ToolCallID      string `json:"toolCallId,omitzero"`
	SessionSequence int64  `json:"sessionSequence"`
	UpdatedAt       string `json:"updatedAt"`
}

func (c *changes) attachment(f *narad.Attachment) {
	state := map[narad.Type]string{
		narad.TypeAttachmentAdded: MaterialAdded, narad.TypeAttachmentReady: MaterialReady,
		narad.TypeAttachmentFailed: MaterialFailed, narad.TypeAttachmentRemoved: MaterialRemoved,
	}[f.Kind]
	c.material(Attachments, f.AttachmentID, Material{State: state, Code: f.Code, Message: f.Message})
}

func (c *changes) artifact(f *narad.Artifact) {
	state := map[narad.Type]string{
		narad.TypeArtifactAdded: MaterialAdded, narad.TypeArtifactReady: MaterialReady, narad.TypeArtifactFailed: MaterialFailed,
	}[f.Kind]
	c.material(Artifacts, f.ArtifactID, Material{State: state, Code: f.Code, Message: f.Message})
}

// material writes the row of a material. Bytes are kept for one that is ready, and for
// no other.
func (c *changes) material(space, id string, m Material) {
	told := facts.MaterialOf(c.e)
	m.Name, m.MediaType, m.Bytes, m.ToolCallID = told.Name, told.MediaType, told.Bytes, told.ToolCallID
	m.RunID, m.SessionSequence, m.UpdatedAt = c.e.RunID, c.e.SessionSequence, c.e.Timestamp
	row := journal.MaterialRow{Session: c.e.SessionID, Space: space, ID: id, Value: value(m)}
	if m.State == MaterialReady {
		row.Digest = told.Digest
	}
	c.put(row)
}
