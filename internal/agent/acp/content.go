package acp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// block is one piece of content: text, or something else.
type block struct {
	Type     string `json:"type"`
	Text     text   `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *struct {
		Text     *text  `json:"text"`
		Blob     string `json:"blob"`
		MimeType string `json:"mimeType"`
		URI      string `json:"uri"`
	} `json:"resource"`
}

// piece is an element of a tool call's content.
type piece struct {
	Type       string `json:"type"`
	Content    *block `json:"content"`
	Path       string `json:"path"`
	OldText    *text  `json:"oldText"`
	NewText    text   `json:"newText"`
	TerminalID string `json:"terminalId"`
}

// opaque stands for content that is no text (R7).
type opaque struct {
	Truncated bool   `json:"truncated,omitzero"`
	MediaType string `json:"mediaType,omitzero"`
	Bytes     int    `json:"bytes,omitzero"`
	Name      string `json:"name,omitzero"`
	URI       string `json:"uri,omitzero"`
	Terminal  string `json:"terminalId,omitzero"`
	// ArtifactID names the content itself, once it is kept.
	ArtifactID string `json:"artifactId,omitzero"`

	data string // in base64
}

// diff is a change of a file.
type diff struct {
	Path string  `json:"path"`
	Old  *string `json:"oldText,omitzero"`
	New  string  `json:"newText"`
}

// made reports whether the change makes a file that was not there.
func (d diff) made() bool { return d.Old == nil }

// content is what a tool call has brought so far.
type content struct {
	text  text
	Text  string   `json:"text,omitzero"`
	Diffs []diff   `json:"diffs,omitzero"`
	Other []opaque `json:"content,omitzero"`
}

func (c *content) empty() bool { return c.Text == "" && len(c.Diffs) == 0 && len(c.Other) == 0 }

// readContent reads the content of a tool call. Pieces of unknown kinds are left out.
func readContent(raw json.RawMessage) (content, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return content{}, err
	}
	var c content
	var texts []string
	for _, element := range list {
		var p piece
		if err := json.Unmarshal(element, &p); err != nil {
			continue
		}
		switch {
		case p.Type == "diff":
			c.Diffs = append(c.Diffs, p.diff())
		case p.Type == "terminal":
			c.Other = append(c.Other, opaque{Terminal: label(p.TerminalID, maxID)})
		case p.Content != nil && p.Content.isText():
			texts = append(texts, string(p.Content.text()))
		case p.Content != nil:
			c.Other = append(c.Other, p.Content.opaque())
		}
	}
	c.text = text(strings.Join(texts, "\n"))
	c.Text = c.text.plain()
	return c, nil
}

func (p *piece) diff() diff {
	d := diff{Path: strings.ToValidUTF8(p.Path, "\uFFFD"), New: p.NewText.plain()}
	if p.OldText != nil {
		old := p.OldText.plain()
		d.Old = &old
	}
	return d
}

func (b *block) isText() bool {
	return b.Type == "text" || b.Resource != nil && b.Resource.Text != nil
}

func (b *block) text() text {
	if b.Type != "text" && b.Resource != nil && b.Resource.Text != nil {
		return *b.Resource.Text
	}
	return b.Text
}

// opaque tells of content that is no text.
func (b *block) opaque() opaque {
	o := opaque{MediaType: b.MimeType, Bytes: decodedSize(b.Data), Name: label(b.Name, maxName), URI: label(b.URI, maxTitle), data: b.Data}
	if b.Resource != nil {
		o.MediaType, o.Bytes, o.URI = b.Resource.MimeType, decodedSize(b.Resource.Blob), label(b.Resource.URI, maxTitle)
		o.data = b.Resource.Blob
	}
	o.MediaType = label(o.MediaType, maxName)
	o.Truncated = o.Bytes > 0
	return o
}

// keep makes content that is no text an artifact (R7). Where the host keeps none, or it
// cannot be read, it stays untold.
func (t *turn) keep(v *voice, toolCallID string, o *opaque) {
	data, err := base64.StdEncoding.DecodeString(o.data)
	if o.data = ""; err != nil || len(data) == 0 {
		return
	}
	a := agent.Artifact{Name: o.Name, MediaType: o.MediaType, ToolCallID: toolCallID}
	id, err := v.h.AddArtifact(t.record, a, bytes.NewReader(data))
	if errors.Is(err, agent.ErrInvalid) { // by what it is called
		a.Name, a.MediaType = "", ""
		id, err = v.h.AddArtifact(t.record, a, bytes.NewReader(data))
	}
	switch {
	case err == nil:
		o.ArtifactID, o.Truncated = id, false
	case !errors.Is(err, errors.ErrUnsupported):
		t.took(v, err)
	}
}

// decodedSize returns how many bytes a base64 text stands for.
func decodedSize(data string) int {
	data = strings.TrimRight(data, "=")
	return len(data) * 3 / 4
}

// Bounds of what an agent says (DESIGN §10).
const (
	maxID    = 128
	maxName  = 256
	maxTitle = 512
	// maxValue keeps a value's fact below the size of an event (R7).
	maxValue = 400_000
)

// fit returns a value as it can be recorded: itself, or what tells of it (R7).
func fit(value narad.Raw) narad.Raw {
	if len(value) <= maxValue {
		return value
	}
	return summary(value)
}

// summary tells of a value that is too large, or that no fact can hold.
func summary(value narad.Raw) narad.Raw {
	const preview = 1 << 10
	return encode(struct {
		Truncated bool   `json:"truncated"`
		Bytes     int    `json:"bytes"`
		Preview   string `json:"preview"`
	}{true, len(value), short(string(value[:min(len(value), preview)]), preview)})
}

// encode returns a value of this package as JSON, without escapes for browsers.
func encode(v any) narad.Raw {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("acp: a value of this package is always JSON: " + err.Error())
	}
	return narad.Raw(bytes.TrimSpace(b.Bytes()))
}

// mended records a value as it is, else without its faults (names twice, bytes that are
// no text), else by what tells of it.
func mended(value narad.Raw, record func(narad.Raw) error) error {
	err := record(value)
	if !refusedValue(err) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if err = record(encode(v)); !refusedValue(err) {
			return err
		}
	}
	return record(summary(value))
}

func refusedValue(err error) bool {
	return errors.Is(err, agent.ErrInvalid) || errors.Is(err, agent.ErrTooLarge)
}
