package script

import (
	"context"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxBytes bounds a text that is made up.
const maxBytes = 16 << 20

// words is a text and how it is streamed.
type words struct {
	text   template
	length int // of a text that is made up instead
	manner
}

// words reads a text, or the keys text or bytes, chunk and pace of a mapping.
func (r *reader) words(n *yaml.Node, what string, m manner) (*words, *object) {
	m.whole = r.parallel
	if n.Kind == yaml.ScalarNode {
		return &words{text: r.template(n, what), manner: m}, nil
	}
	o := r.object(n, what)
	w := &words{text: o.template("text"), length: o.number("bytes", maxBytes), manner: m}
	if (w.text == nil) == (w.length == 0) {
		r.fail(n, "%s must have either text or bytes", what)
	}
	if o.left["chunk"] != nil {
		w.chunk = o.number("chunk", maxBytes)
	}
	if o.left["pace"] != nil {
		w.pace = o.duration("pace")
	}
	return w, o
}

func (w *words) fill(sc *scene, at spot) (string, error) {
	if w.length > 0 {
		return filler(w.length), nil
	}
	return w.text.fill(sc, at)
}

// mostAtOnce bounds what is handed on at once where no chunk size is asked for.
const mostAtOnce = 16 << 10

// stream hands a text on in chunks. A chunk may end inside a character, unless it must
// be whole: putting characters together is what the receiver promises.
func (m manner) stream(ctx context.Context, text string, put func(string) error) error {
	size := m.chunk
	if size == 0 {
		size = mostAtOnce
	}
	for first := true; text != ""; first = false {
		if !first {
			if err := wait(ctx, m.pace); err != nil {
				return err
			}
		}
		n := min(size, len(text))
		for m.whole && n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		if err := put(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// wait waits, unless the context ends.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
