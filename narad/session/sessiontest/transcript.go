package sessiontest

import "slices"

// message is one message of the transcript, in the form of the snapshot.
type message object

func (m message) text(name string) string { s, _ := m[name].(string); return s }

// stretch is one stretch of reasoning.
type stretch struct {
	id, message, content, timestamp string
	completed                       bool
}

// transcript is what a conversation shows.
type transcript struct {
	messages  []message
	reasoning []stretch
	covers    int64
}

// message returns a message, or nil.
func (t *transcript) message(id string) message {
	for _, m := range t.messages {
		if m.text("messageId") == id {
			return m
		}
	}
	return nil
}

// stretch returns a stretch of reasoning, or nil.
func (t *transcript) stretch(id string) *stretch {
	for i := range t.reasoning {
		if t.reasoning[i].id == id {
			return &t.reasoning[i]
		}
	}
	return nil
}

// transcript tells the conversation from its beginning.
func (h history) transcript() *transcript {
	t := new(transcript)
	for i, f := range h {
		if f.told {
			t.tell(h[:i], f)
		}
	}
	return t
}

// tell changes the transcript by a fact; before is what happened earlier.
func (t *transcript) tell(before history, f fact) {
	m, r := t.message(f.text("messageId")), t.stretch(f.text("reasoningId"))
	switch f.kind {
	case "messages.snapshot":
		*t = *t.merged(before.cursor(), f)
	case "message.user.recorded":
		fresh := newMessage(before, f)
		fresh["role"], fresh["content"] = "user", f.text("content")
		if ids := words(f.body["attachmentIds"]); len(ids) > 0 {
			fresh["attachmentIds"] = ids
		}
		t.place(fresh)
	case "message.text.started":
		fresh := newMessage(before, f)
		fresh["role"], fresh["streaming"] = f.text("role"), true
		t.place(fresh)
	case "message.text.delta":
		m["content"], m["streaming"] = m.text("content")+f.text("delta"), true
	case "message.text.completed":
		m["streaming"] = false
	case "message.redacted":
		m["redacted"] = true
		delete(m, "displayReplacement")
		if s, ok := f.body["displayReplacement"].(string); ok {
			m["displayReplacement"] = s
		}
	case "reasoning.started":
		fresh := stretch{id: f.text("reasoningId"), message: f.text("messageId"), timestamp: f.text("timestamp")}
		if r == nil {
			t.reasoning = append(t.reasoning, fresh)
		} else {
			*r = fresh
		}
	case "reasoning.delta":
		r.content += f.text("delta")
	case "reasoning.completed":
		r.completed = true
	}
}

func newMessage(before history, f fact) message {
	m := message{
		"messageId": f.text("messageId"), "messageScope": f.text("messageScope"), "timestamp": f.text("timestamp"),
		"sessionSequence": number(f.session()), "rootRunId": f.rootID(), "runId": f.runID(), "content": "",
	}
	if f.rootID() == "" {
		if r, known := before.run(f.runID()); known {
			m["rootRunId"] = r.root()
		} else {
			m["rootRunId"] = before.activeRoot()
		}
	}
	return m
}

// place puts a message where its id stands, or last.
func (t *transcript) place(fresh message) {
	for i, m := range t.messages {
		if m.text("messageId") == fresh.text("messageId") {
			t.messages[i] = fresh
			return
		}
	}
	t.messages = append(t.messages, fresh)
}

// words reads an array of strings as a lenient reader does.
func words(v any) []any {
	list, _ := v.([]any)
	out := make([]any, 0, len(list))
	for _, item := range list {
		switch item := item.(type) {
		case string:
			out = append(out, item)
		case Number:
			out = append(out, string(item))
		case bool:
			out = append(out, map[bool]string{true: "true", false: "false"}[item])
		default:
			out = append(out, "null")
		}
	}
	return out
}

// liveAhead reports whether a snapshot is older than what is already there, so that
// it may only fill in and not replace.
func (t *transcript) liveAhead(cursor int64, f fact) bool {
	return f.whole("coversThroughSessionSequence", 0) < cursor && len(t.messages) > 0
}

// merged returns the transcript that a messages.snapshot leads to.
func (t *transcript) merged(cursor int64, f fact) *transcript {
	covers := f.whole("coversThroughSessionSequence", 0)
	items := snapshotItems(f)
	if !t.liveAhead(cursor, f) {
		return &transcript{messages: items, covers: covers}
	}
	inSnapshot := func(m message) bool {
		return slices.ContainsFunc(items, func(item message) bool { return item.text("messageId") == m.text("messageId") })
	}
	var tail []message
	for _, m := range t.messages {
		at, placed := integer(m["sessionSequence"])
		if placed && at > covers || !placed && !inSnapshot(m) {
			tail = append(tail, m)
		}
	}
	var result []message
	for _, item := range items {
		if !slices.ContainsFunc(tail, func(m message) bool { return m.text("messageId") == item.text("messageId") }) {
			result = append(result, item)
		}
	}
	return &transcript{messages: append(result, tail...), reasoning: t.reasoning, covers: max(t.covers, covers)}
}

// unchangedBy reports whether a snapshot that is older than what is there brings
// nothing that anybody would see.
func (h history) unchangedBy(f fact) bool {
	now := h.transcript()
	if !now.liveAhead(h.cursor(), f) {
		return false
	}
	alike := func(a, b message) bool {
		return a.text("messageId") == b.text("messageId") && a.text("role") == b.text("role") && a.text("content") == b.text("content")
	}
	return slices.EqualFunc(now.messages, now.merged(h.cursor(), f).messages, alike)
}

// snapshotItems reads the messages of a snapshot; what has no id is left out.
func snapshotItems(f fact) (items []message) {
	list, _ := f.body["messages"].([]any)
	for _, v := range list {
		o, _ := v.(object)
		item := fact{body: o}
		if item.text("messageId") == "" {
			continue
		}
		m := message{"role": "assistant"}
		for _, name := range []string{"messageId", "role", "content", "timestamp", "rootRunId", "runId"} {
			if s := item.text(name); s != "" {
				m[name] = s
			}
		}
		if scope := item.text("messageScope"); slices.Contains([]string{"session", "workflow", "run"}, scope) {
			m["messageScope"] = scope
		}
		if at := item.whole("sessionSequence", 1); at > 0 {
			m["sessionSequence"] = number(at)
		}
		if ids := words(o["attachmentIds"]); len(ids) > 0 {
			m["attachmentIds"] = ids
		}
		m["streaming"] = o["completed"] == false
		m["redacted"] = o["redacted"] == true
		items = append(items, m)
	}
	return items
}
