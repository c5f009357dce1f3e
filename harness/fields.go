package harness

import (
	"encoding/json"

	"github.com/mahati-host/mahati/narad"
)

// The fields of the envelope and of every payload, as the scanner reads them: the names in
// the order of the contract, and a reader for each. The tags of the types say the same to
// encoding/json, and a test holds the two together.

var eventFields = []string{"version", "run_id", "sequence", "event_id", "correlation_id", "causation_id", "type", "sensitivity", "payload"}

// envelope is an event that is read, with the values of the one before: most repeat.
type envelope struct {
	Event
	version, runID, eventID, correlationID string
}

func (e *envelope) fields() []string { return eventFields }

func (e *envelope) set(field int, s *scanner) (ok bool) {
	switch field {
	case 0:
		return s.same(&e.Version, &e.version)
	case 1:
		return s.same(&e.RunID, &e.runID)
	case 2:
		return s.natural(&e.Sequence)
	case 3:
		return s.string(&e.EventID)
	case 4:
		return s.same(&e.CorrelationID, &e.correlationID)
	case 5:
		return s.same(&e.CausationID, &e.eventID)
	case 6:
		return s.kind(&e.Type)
	case 7:
		return s.class(&e.Sensitivity)
	}
	raw, ok := s.raw()
	e.Payload = narad.Raw(raw)
	return ok
}

// kind reads a type, without a copy of the names that are known.
func (s *scanner) kind(to *Type) bool {
	if s.null() {
		return true
	}
	text, ok := s.bytes()
	for _, known := range knownTypes {
		if string(known) == string(text) {
			*to = known
			return ok
		}
	}
	*to = Type(text)
	return ok
}

var knownTypes = append([]Type{
	MessageDelta, ToolStarted, ToolCompleted, MessageStarted, MessageCompleted, UsageReported, Checkpointed, ReasoningDelta,
}, Types()...)

func (s *scanner) class(to *Sensitivity) bool {
	if s.null() {
		return true
	}
	text, ok := s.bytes()
	switch string(text) {
	case string(Public):
		*to = Public
	case string(Private):
		*to = Private
	case string(Secret):
		*to = Secret
	default:
		*to = Sensitivity(text)
	}
	return ok
}

var lifecycleFields = []string{"status", "reason"}

func (l *Lifecycle) fields() []string { return lifecycleFields }

func (l *Lifecycle) set(field int, s *scanner) bool {
	if field == 0 {
		return s.string(&l.Status)
	}
	return s.string(&l.Reason)
}

var messageFields = []string{"message_id", "role", "text"}

func (m *Message) fields() []string { return messageFields }

func (m *Message) set(field int, s *scanner) bool {
	return s.string([]*string{&m.MessageID, &m.Role, &m.Text}[field])
}

// messagePart is Message for a reader of many: ids repeat, and texts are added to others, so
// that neither needs a string of its own.
type messagePart struct {
	Message
	text     []byte // instead of Text where the scanner read it; part of what was scanned
	id, role string
}

// UnmarshalJSON reads the message itself, so that an error names its fields.
func (m *messagePart) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &m.Message) }

func (m *messagePart) set(field int, s *scanner) (ok bool) {
	switch field {
	case 0:
		return s.same(&m.MessageID, &m.id)
	case 1:
		return s.same(&m.Role, &m.role)
	}
	if s.null() {
		return true
	}
	m.text, ok = s.bytes()
	return ok
}

var blockFields = []string{"block_id", "kind", "data"}

func (b *Block) fields() []string { return blockFields }

func (b *Block) set(field int, s *scanner) bool {
	switch field {
	case 0:
		return s.string(&b.BlockID)
	case 1:
		return s.string(&b.Kind)
	}
	raw, ok := s.raw()
	b.Data = append(narad.Raw{}, raw...)
	return ok
}

var toolFields = []string{"call_id", "name", "status", "summary"}

func (t *Tool) fields() []string { return toolFields }

func (t *Tool) set(field int, s *scanner) bool {
	return s.string([]*string{&t.CallID, &t.Name, &t.Status, &t.Summary}[field])
}

var planFields = []string{"steps"}

func (p *Plan) fields() []string { return planFields }

func (p *Plan) set(_ int, s *scanner) bool {
	if s.null() {
		return true
	}
	p.Steps = []Step{}
	return s.array(func() bool {
		var step Step
		ok := s.null()
		if !ok {
			_, ok = s.object(&step)
		}
		s.nulled = false
		p.Steps = append(p.Steps, step)
		return ok
	})
}

var stepFields = []string{"id", "text", "status"}

func (p *Step) fields() []string { return stepFields }

func (p *Step) set(field int, s *scanner) bool {
	return s.string([]*string{&p.ID, &p.Text, &p.Status}[field])
}

var approvalFields = []string{
	"approval_id", "prompt", "status", "scope", "kind", "summary", "workspace", "risk", "consequence", "policy_reason",
	"fak_capability_floor", "codex_sandbox_policy",
}

func (a *Approval) fields() []string { return approvalFields }

func (a *Approval) set(field int, s *scanner) bool {
	return s.string([]*string{
		&a.ApprovalID, &a.Prompt, &a.Status, &a.Scope, &a.Kind, &a.Summary, &a.Workspace, &a.Risk, &a.Consequence, &a.PolicyReason,
		&a.FakCapabilityFloor, &a.CodexSandboxPolicy,
	}[field])
}

var artifactFields = []string{"artifact_id", "media_type", "uri", "name"}

func (a *Artifact) fields() []string { return artifactFields }

func (a *Artifact) set(field int, s *scanner) bool {
	return s.string([]*string{&a.ArtifactID, &a.MediaType, &a.URI, &a.Name}[field])
}

var failureFields = []string{"code", "message", "retryable"}

func (f *Failure) fields() []string { return failureFields }

func (f *Failure) set(field int, s *scanner) bool {
	switch field {
	case 0:
		return s.string(&f.Code)
	case 1:
		return s.string(&f.Message)
	}
	return s.boolean(&f.Retryable)
}

var usageFields = []string{"input_tokens", "output_tokens", "cost_micros"}

func (u *Usage) fields() []string { return usageFields }

func (u *Usage) set(field int, s *scanner) bool {
	return s.integer([]*int64{&u.InputTokens, &u.OutputTokens, &u.CostMicros}[field])
}

var checkpointFields = []string{"cursor"}

func (c *Checkpoint) fields() []string { return checkpointFields }

func (c *Checkpoint) set(_ int, s *scanner) bool {
	if s.null() {
		return true
	}
	_, ok := s.object(&c.Cursor)
	s.nulled = false
	return ok
}

var cursorFields = []string{"version", "run_id", "sequence", "checkpoint"}

func (c *Cursor) fields() []string { return cursorFields }

func (c *Cursor) set(field int, s *scanner) bool {
	switch field {
	case 0:
		return s.string(&c.Version)
	case 1:
		return s.string(&c.RunID)
	case 2:
		return s.natural(&c.Sequence)
	}
	return s.string(&c.Checkpoint)
}
