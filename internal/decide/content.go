package decide

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// ContentHash returns the hash of what a client's command says, by which the same
// command is known again (R21). It is stored for ever, so it depends on no name of the
// source: a command has a word of its own, and each of its fields one of the contract's.
// What is empty, or says no more than its default, leaves nothing, so that a command
// may grow without another hash for what it could always say. What the host adds of its
// own is no part. Commands that are no client's have no hash: ok is false.
func ContentHash(c Command) (sum [sha256.Size]byte, ok bool) {
	told, ok := c.(told)
	if !ok {
		return sum, false
	}
	form := content(contentForm)
	form.add(told.word())
	told.tell(&form)
	return sha256.Sum256(form), true
}

// contentForm names the form of the bytes that are hashed. Another form is another
// command to every store that knows this one.
const contentForm = "mahati.command/1\n"

// told is a command that a client tells.
type told interface {
	Command
	// word is the command's name for ever.
	word() string
	// tell adds the fields, always in the same order.
	tell(*content)
}

// content is a command as it is hashed: its word, then name and value of each field,
// each with its length before it. A field that has several values stands several times.
type content []byte

func (c *content) add(s string) {
	*c = binary.AppendUvarint(*c, uint64(len(s)))
	*c = append(*c, s...)
}

// must adds a field that is told, whatever its value.
func (c *content) must(name, value string) {
	c.add(name)
	c.add(value)
}

func (c *content) text(name, value string) {
	if value != "" {
		c.must(name, value)
	}
}

func (c *content) number(name string, value int64) {
	if value != 0 {
		c.must(name, strconv.FormatInt(value, 10))
	}
}

func (Create) word() string { return "create-session" }

func (c Create) tell(to *content) {
	p := c.Payload
	to.text("workspaceId", p.WorkspaceID)
	to.text("cwd", p.Cwd)
	to.text("clientKind", p.ClientKind)
	to.text("title", p.Title)
	to.text("agent", p.Agent)
	to.text("clientExecutorId", p.ClientExecutorID)
	to.text("parentSessionId", p.ParentSessionID)
	to.text("provider", p.Provider)
	to.text("model", p.Model)
	to.text("variant", p.Variant)
	to.text("style", p.Style)
	to.text("posture", p.Posture)
}

func (Archive) word() string  { return "archive-session" }
func (Archive) tell(*content) {}
func (Restore) word() string  { return "restore-session" }
func (Restore) tell(*content) {}
func (Release) word() string  { return "release-queue" }
func (Release) tell(*content) {}

func (Withdraw) word() string { return "withdraw-message" }

func (w Withdraw) tell(to *content) { to.text("runId", w.RunID) }

func (Message) word() string { return "message" }

func (m Message) tell(to *content) {
	to.text("messageId", m.MessageID)
	to.text("content", m.Content)
	if m.WhenBusy != WhenBusyQueue {
		to.text("whenBusy", string(m.WhenBusy))
	}
	for _, id := range m.AttachmentIDs {
		to.must("attachmentId", id)
	}
}

func (StartWorkflow) word() string { return "start-workflow" }

func (w StartWorkflow) tell(to *content) {
	to.text("definition", w.Definition)
	to.text("input", string(w.Input))
}

func (AddAttachment) word() string { return "add-attachment" }

// The id is the host's, and no part of what the client tells.
func (a AddAttachment) tell(to *content) {
	to.text("name", a.Name)
	to.text("mediaType", a.MediaType)
	to.text("digest", a.Digest)
}

func (RemoveAttachment) word() string { return "remove-attachment" }

func (r RemoveAttachment) tell(to *content) { to.text("attachmentId", r.AttachmentID) }

func (Stop) word() string { return "stop-active-root" }

func (s Stop) tell(to *content) {
	to.text("rootRunId", s.RootRunID)
	to.text("reason", s.Reason)
	to.text("workflowId", s.WorkflowID)
	if s.Turn {
		to.must("turn", "true")
	}
}

func (Redact) word() string { return "redact" }

func (r Redact) tell(to *content) {
	to.text("messageId", r.MessageID)
	to.text("reason", r.Reason)
	if r.DisplayReplacement != nil {
		to.must("displayReplacement", *r.DisplayReplacement)
	}
}

func (Resolve) word() string { return "resolve-interrupt" }

func (r Resolve) tell(to *content) {
	to.text("interruptId", r.InterruptID)
	to.text("decision", r.Decision)
	to.text("reason", r.Reason)
	to.number("expectedRevision", r.ExpectedRevision)
	for _, m := range r.Members {
		to.must("member", m)
	}
	for _, a := range r.Answers {
		to.must("answer", a.told())
	}
}

// told is an answer as it is hashed.
func (a QuestionAnswer) told() string {
	var one content
	for _, o := range a.Options {
		one.must("option", strconv.Itoa(o))
	}
	one.text("text", a.Text)
	return string(one)
}
