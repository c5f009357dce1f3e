package script

import (
	"context"
	"strings"

	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// speech is what a run has said and thought, and how far its steps have come in it.
// At most one step of a run speaks at a time.
type speech struct{ messages, thoughts track }

// track is a run's messages, or its stretches of reasoning, in their order.
type track struct {
	said   []*said // what the past tells
	at     int     // the one that steps have come to
	offset int     // how far they have come in it
}

// said is one message of the past.
type said struct {
	id       string
	text     []byte
	complete bool
}

// speech returns the speech of a run. A run of the past has one already.
func (p *past) speech(runID string) *speech {
	if s := p.speeches[runID]; s != nil {
		return s
	}
	return &speech{}
}

// speak reads a fact of the past about text.
func (h *historian) speak(rec narad.Authority, runID string) {
	s := h.speeches[runID]
	if s == nil {
		s = &speech{}
		h.speeches[runID] = s
	}
	switch r := rec.(type) {
	case *narad.MessageTextStarted:
		s.messages.said = append(s.messages.said, &said{id: r.MessageID})
	case *narad.MessageTextDelta:
		s.messages.find(r.MessageID).text = append(s.messages.find(r.MessageID).text, r.Delta...)
	case *narad.MessageTextCompleted:
		s.messages.find(r.MessageID).complete = true
	case *narad.ReasoningStarted:
		s.thoughts.said = append(s.thoughts.said, &said{id: r.ReasoningID})
	case *narad.ReasoningDelta:
		s.thoughts.find(r.ReasoningID).text = append(s.thoughts.find(r.ReasoningID).text, r.Delta...)
	case *narad.ReasoningCompleted:
		s.thoughts.find(r.ReasoningID).complete = true
	}
}

// find returns a message of the past. An unknown one is nowhere and changes nothing.
func (t *track) find(id string) *said {
	for _, s := range t.said {
		if s.id == id {
			return s
		}
	}
	return &said{}
}

// rest moves past a text and returns what of it the past does not tell. Where the past
// tells something else, as after a change of the file, a complete message stands and
// an open one gets the whole text.
func (t *track) rest(text string) string {
	start := t.offset
	t.offset += len(text)
	if t.at >= len(t.said) {
		return text
	}
	told := string(t.said[t.at].text)
	told = told[min(start, len(told)):]
	switch {
	case strings.HasPrefix(told, text), t.said[t.at].complete:
		return ""
	case strings.HasPrefix(text, told):
		return text[len(told):]
	}
	return text
}

// next moves to the next message, and reports whether the present one must still be
// completed.
func (t *track) next(p *past) bool {
	if t.offset == 0 {
		return false
	}
	open := true
	if t.at < len(t.said) {
		open = !t.said[t.at].complete
		p.consume()
	}
	t.at, t.offset = t.at+1, 0
	return open
}

// endMessage completes what the run says and thinks.
func (sc *scene) endMessage(ctx context.Context) error {
	said, thought := sc.speech.messages.next(sc.play.past), sc.speech.thoughts.next(sc.play.past)
	if said || thought {
		return sc.h.EndMessage(ctx)
	}
	return nil
}

// say adds to the run's assistant message and completes it, unless more is to come.
type say struct {
	words *words
	more  bool
}

func readSay(r *reader, n *yaml.Node, m manner) action {
	r.spoke = true
	w, o := r.words(n, "say", m)
	s := &say{words: w}
	if o != nil {
		s.more = o.yes("more")
		o.close("text", "bytes", "chunk", "pace", "more")
	}
	return s
}

func (s *say) perform(ctx context.Context, sc *scene, at spot) error {
	text, err := s.words.fill(sc, at)
	if err != nil {
		return err
	}
	err = s.words.stream(ctx, sc.speech.messages.rest(text), func(chunk string) error { return sc.h.Text(ctx, chunk) })
	if err != nil || s.more {
		return err
	}
	return sc.endMessage(ctx)
}

// think is one stretch of reasoning.
type think struct{ words *words }

func readThink(r *reader, n *yaml.Node, m manner) action {
	r.spoke = true
	w, o := r.words(n, "think", m)
	if o != nil {
		o.close("text", "bytes", "chunk", "pace")
	}
	return &think{w}
}

func (t *think) perform(ctx context.Context, sc *scene, at spot) error {
	text, err := t.words.fill(sc, at)
	if err != nil {
		return err
	}
	err = t.words.stream(ctx, sc.speech.thoughts.rest(text), func(chunk string) error { return sc.h.Thought(ctx, chunk) })
	if err != nil {
		return err
	}
	return sc.endMessage(ctx)
}
