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

// track is all that a run has said, or thought. Where messages end does not matter for
// what is still to be said: the host ends them too, at a call or a restart.
type track struct {
	told []byte          // what the past tells
	open map[string]bool // the messages of the past that are not complete
	at   int             // how far steps have come in told
	new  bool            // something was said since, and is not completed
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
		s = &speech{track{open: map[string]bool{}}, track{open: map[string]bool{}}}
		h.speeches[runID] = s
	}
	switch r := rec.(type) {
	case *narad.MessageTextStarted:
		s.messages.open[r.MessageID] = true
	case *narad.MessageTextDelta:
		s.messages.told = append(s.messages.told, r.Delta...)
	case *narad.MessageTextCompleted:
		delete(s.messages.open, r.MessageID)
	case *narad.ReasoningStarted:
		s.thoughts.open[r.ReasoningID] = true
	case *narad.ReasoningDelta:
		s.thoughts.told = append(s.thoughts.told, r.Delta...)
	case *narad.ReasoningCompleted:
		delete(s.thoughts.open, r.ReasoningID)
	}
}

// rest moves past a text and returns what of it the past does not tell. Where the past
// tells something else, as after a change of the file, that is passed over and the
// whole text is to be said.
func (t *track) rest(p *past, text string) string {
	told := string(t.told[t.at:])
	n := len(text)
	switch {
	case strings.HasPrefix(told, text):
	case strings.HasPrefix(text, told):
		n = len(told)
	default:
		t.at += len(told)
		p.hear(len(told))
		t.new = true
		return text
	}
	t.at += n
	p.hear(n)
	t.new = t.new || n < len(text)
	return text[n:]
}

// end reports whether something must be completed where the steps have come to.
func (t *track) end() bool {
	open := t.new || t.at == len(t.told) && len(t.open) > 0
	if open {
		t.new = false
		clear(t.open)
	}
	return open
}

// endMessage completes what the run says and thinks.
func (sc *scene) endMessage(ctx context.Context) error {
	said, thought := sc.speech.messages.end(), sc.speech.thoughts.end()
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
	err = s.words.stream(ctx, sc.speech.messages.rest(sc.play.past, text), func(chunk string) error { return sc.h.Text(ctx, chunk) })
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
	err = t.words.stream(ctx, sc.speech.thoughts.rest(sc.play.past, text), func(chunk string) error { return sc.h.Thought(ctx, chunk) })
	if err != nil {
		return err
	}
	return sc.endMessage(ctx)
}
