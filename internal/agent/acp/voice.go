package acp

import (
	"context"
	"encoding/json"

	"github.com/mahati-host/mahati/internal/agent"
)

// voice is who speaks in one run: the agent itself, or a delegate in a run below a tool
// call.
type voice struct {
	h agent.Handle
	// open says that something was said since the last end of a message.
	open          bool
	spoke         bool   // the last thing said was text, not a thought
	messageID     string // the agent's own
	text, thought joiner
	// said is the newest message, as far as it answers whoever asked.
	said []byte
	// worked says that the calls of the round have ended: what is said next is of another.
	worked bool // guarded by turn.mu
}

// maxSaid bounds what of a message answers an ask, in bytes.
const maxSaid = 32 << 10

// Text records a piece of a message.
func (v *voice) Text(ctx context.Context, s string) error {
	v.said = append(v.said, s[:min(len(s), maxSaid-len(v.said))]...)
	return v.h.Text(ctx, s)
}

// chunk records a piece of a message or of a thought.
func (t *turn) chunk(u *update) error {
	var b block
	if err := json.Unmarshal(u.Content, &b); err != nil {
		return err
	}
	v := t.voiceOf(u)
	if v == nil {
		return nil
	}
	speaks := u.Kind == kindMessage
	// A thought belongs to the message after it.
	if changed := u.MessageID != "" && v.messageID != "" && u.MessageID != v.messageID; changed || v.spoke && !speaks {
		t.endMessage(v)
	}
	if !b.isText() || b.text() != "" {
		t.beginRound(v)
	}
	v.messageID = u.MessageID
	if !b.isText() {
		o := b.opaque()
		t.keep(v, "", &o)
		t.took(v, v.h.Custom(t.record, "acp.content", encode(o)))
		return nil
	}
	t.say(v, speaks, b.text())
	return nil
}

func (t *turn) say(v *voice, speaks bool, chunk text) {
	if chunk == "" {
		return
	}
	if speaks && !v.spoke {
		v.said = v.said[:0]
	}
	v.open, v.spoke = true, speaks
	if speaks {
		t.speak(v, v.Text, v.text.add(chunk))
		return
	}
	t.speak(v, v.h.Thought, v.thought.add(chunk))
}

func (t *turn) speak(v *voice, to func(context.Context, string) error, s string) {
	if s != "" {
		t.took(v, to(t.record, s))
	}
}

// hush hands on what waits for the rest of a character.
func (t *turn) hush(v *voice) {
	t.speak(v, v.h.Thought, v.thought.rest())
	t.speak(v, v.Text, v.text.rest())
}

// endMessage lets what is said next begin a new message.
func (t *turn) endMessage(v *voice) {
	if !v.open {
		return
	}
	t.hush(v)
	v.open, v.spoke, v.messageID = false, false, ""
	t.took(v, v.h.EndMessage(t.record))
}

// voiceOf returns who speaks in an update: the agent, or its delegate below an open tool
// call, whose words are not the agent's. It is nil for a delegate of a call that is not
// open, whom nobody can place.
func (t *turn) voiceOf(u *update) *voice {
	if u.Meta.ParentToolCallID == "" {
		return t.root
	}
	parent := t.find(u.Meta.ParentToolCallID)
	if parent == nil || !t.announce(parent) {
		return nil
	}
	if parent.delegate != nil {
		return parent.delegate
	}
	h, err := parent.by.h.StartRun(t.record, agent.Nested{
		AgentID: parent.agentID, Name: parent.name, ParentToolCallID: parent.id,
	})
	if !t.took(parent.by, err) {
		return nil
	}
	t.mu.Lock()
	parent.delegate = &voice{h: h, worked: true}
	t.mu.Unlock()
	return parent.delegate
}
