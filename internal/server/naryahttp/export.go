package naryahttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/narya"
)

// exported is a line of an export: the session first, then an entry each.
type exported struct {
	Session *narya.Session `json:"session,omitzero"`
	Entry   *entry         `json:"entry,omitzero"`
}

// exportSession answers with a session and the entries of its transcript, one a line. What
// fails on the way breaks the answer off, so that nobody takes a part for the whole.
func (b *Binding) exportSession(w http.ResponseWriter, r *request) error {
	view, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	s, err := whole(r.Context(), view)
	if err != nil {
		return err
	}
	own, err := b.stretch(r, view, "")
	if err != nil {
		return err
	}
	own.content = wholeContent
	parts, err := b.ancestry(r, own)
	if err != nil {
		return err
	}
	lines := []exported{{Session: s}}
	const most = 200
	for at, begun := (page{Limit: most}), false; ; {
		items, next, err := pageOver(r.Context(), parts, at, false)
		for i := range items {
			lines = append(lines, exported{Entry: &items[i]})
		}
		if err == nil {
			err = writeLines(w, lines, begun)
		}
		switch {
		case err != nil && begun:
			panic(http.ErrAbortHandler)
		case err != nil:
			return err
		case next == "":
			return nil
		}
		at.Cursor, lines, begun = next, nil, true
	}
}

// writeLines writes lines of JSON; the first ones begin the answer.
func writeLines(w http.ResponseWriter, lines []exported, begun bool) error {
	var text []byte
	for _, line := range lines {
		data, err := encode(line)
		if err != nil {
			return err
		}
		text = append(append(text, data...), '\n')
	}
	if !begun {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
	}
	_, err := w.Write(text)
	return err
}
