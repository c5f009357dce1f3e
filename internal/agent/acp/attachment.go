package acp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
)

// accepts is what an agent takes in a prompt besides text and links, which all take.
type accepts struct {
	Image           bool `json:"image"`
	Audio           bool `json:"audio"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// maxInline is the size up to which an attachment stands in the prompt itself: most agents
// read a message as one line.
const maxInline = 8 << 20

// promptOf returns the blocks of a message.
func (p *peer) promptOf(m agent.Message) ([]wire.ContentBlock, error) {
	blocks := []wire.ContentBlock{wire.TextBlock(m.Content)}
	if m.From != nil {
		said, answered := "A message", ":"
		if m.From.AskID != "" {
			said, answered = "A question", ". It gets your last message as the answer:"
		}
		introduced := said + " from another session on this machine, called " + m.From.Name + ", not from a person" + answered
		blocks = []wire.ContentBlock{wire.TextBlock(introduced), blocks[0]}
	}
	for _, a := range m.Attachments {
		b, err := p.attachment(a)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// attachment returns an attachment in the form that the agent takes: inline where it can,
// else as a link to a copy.
func (p *peer) attachment(a agent.Attachment) (wire.ContentBlock, error) {
	content, err := a.Open()
	if err != nil {
		return wire.ContentBlock{}, unreadable(err)
	}
	defer content.Close()
	if a.Bytes > maxInline || !p.accepts.inline(a.MediaType) {
		return p.link(a, content)
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return wire.ContentBlock{}, unreadable(err)
	}
	media := essence(a.MediaType)
	switch {
	case strings.HasPrefix(media, "image/") && p.accepts.Image:
		return wire.ImageBlock(base64.StdEncoding.EncodeToString(data), media), nil
	case strings.HasPrefix(media, "audio/") && p.accepts.Audio:
		return wire.AudioBlock(base64.StdEncoding.EncodeToString(data), media), nil
	}
	uri := "attachment:///" + url.PathEscape(a.ID) + "/" + url.PathEscape(a.Name)
	if isText(media, data) {
		return wire.ResourceBlock(wire.EmbeddedResourceResource{
			TextResourceContents: &wire.TextResourceContents{Text: string(data), MimeType: &media, Uri: uri},
		}), nil
	}
	return wire.ResourceBlock(wire.EmbeddedResourceResource{
		BlobResourceContents: &wire.BlobResourceContents{Blob: base64.StdEncoding.EncodeToString(data), MimeType: &media, Uri: uri},
	}), nil
}

// isText reports whether content can be told as text, whatever little it says of itself.
func isText(media string, data []byte) bool {
	kind, _, _ := strings.Cut(media, "/")
	return kind != "image" && kind != "audio" && kind != "video" && utf8.Valid(data) && !bytes.ContainsRune(data, 0)
}

// inline reports whether the agent takes content of a type in the prompt.
func (c accepts) inline(mediaType string) bool {
	return c.EmbeddedContext || c.Image && strings.HasPrefix(mediaType, "image/") || c.Audio && strings.HasPrefix(mediaType, "audio/")
}

func essence(mediaType string) string {
	kind, _, _ := strings.Cut(mediaType, ";")
	return strings.TrimSpace(kind)
}

// link gives the agent a copy of its own, which goes with its process: the bytes that the
// host keeps are nobody's to change.
func (p *peer) link(a agent.Attachment, content io.Reader) (wire.ContentBlock, error) {
	if p.opt.Scratch == "" {
		return wire.ContentBlock{}, &failure{code: codeAttachment, message: "The agent takes no attachment of this kind."}
	}
	dir := filepath.Join(p.scratch(), filepath.Base(a.ID))
	name := filepath.Join(dir, "attachment")
	if a.Name != "" {
		name = filepath.Join(dir, filepath.Base(a.Name))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wire.ContentBlock{}, unreadable(err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return wire.ContentBlock{}, unreadable(err)
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		return wire.ContentBlock{}, unreadable(err)
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(name)}
	b := wire.ResourceLinkBlock(filepath.Base(name), uri.String())
	media, size := essence(a.MediaType), int(a.Bytes)
	b.ResourceLink.MimeType, b.ResourceLink.Size = &media, &size
	return b, nil
}

// scratch is the directory of the process's own copies.
func (p *peer) scratch() string {
	return filepath.Join(p.opt.Scratch, fmt.Sprintf("%d-%d", p.child.group.ID.PID, p.child.group.ID.StartTime))
}

// sweepScratch removes the copies, when the process is gone.
func (p *peer) sweepScratch() {
	if p.opt.Scratch == "" {
		return
	}
	if err := os.RemoveAll(p.scratch()); err != nil {
		p.opt.Logger.Warn("remove copies of attachments", "session", p.about.ID, "error", err)
	}
}

func unreadable(err error) error {
	return &failure{code: codeAttachment, message: "An attachment of the message cannot be read.", cause: err}
}
