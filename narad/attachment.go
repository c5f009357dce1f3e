package narad

// Attachment tells the life of an admitted input (specification §9.5). Kind is one
// of attachment.added, attachment.ready, attachment.failed, attachment.removed.
// The bytes never stand in an event.
type Attachment struct {
	Event
	Kind         Type
	AttachmentID string
	Code         string
	Message      string
}

// Type returns a.Kind.
func (a *Attachment) Type() Type { return a.Kind }

func (a *Attachment) fields(c *coder) {
	a.envelope(c, laneSession)
	c.id("attachmentId", &a.AttachmentID, required)
	c.text("code", &a.Code, optional)
	c.text("message", &a.Message, optional)
}

// Artifact tells the life of a produced output (§9.5). Kind is one of
// artifact.added, artifact.ready, artifact.failed.
type Artifact struct {
	Event
	Kind       Type
	ArtifactID string
	Code       string
	Message    string
}

// Type returns a.Kind.
func (a *Artifact) Type() Type { return a.Kind }

func (a *Artifact) fields(c *coder) {
	a.envelope(c, laneSession)
	c.id("artifactId", &a.ArtifactID, required)
	c.text("code", &a.Code, optional)
	c.text("message", &a.Message, optional)
}
