package acp_test

import (
	"encoding/base64"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
)

func attached(name, media, content string) agent.Attachment {
	return agent.Attachment{
		ID: "id-" + name, Name: name, MediaType: media, Bytes: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
	}
}

// An agent gets an attachment in the form that it says it takes, and else a link to a copy,
// which goes with its process.
func TestAttachmentsOfAPrompt(t *testing.T) {
	picture, sound := attached("p.png", "image/png", "PNG"), attached("s.wav", "audio/wav", "WAV")
	note, raw := attached("n.txt", "text/plain; charset=utf-8", "hello"), attached("r.bin", "application/x", "\x00\xff")
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		takes string
		gets  agent.Attachment
		want  string
	}{
		{"image", picture, "image image/png " + b64("PNG") + "; "},
		{"audio", sound, "audio audio/wav " + b64("WAV") + "; "},
		{"embeddedContext", note, "resource  hello; "},
		{"embeddedContext", raw, "resource  " + b64("\x00\xff") + "; "},
		{"image", note, "resource_link text/plainn.txt hello <nil>; "},
		{"embeddedContext", picture, "resource  " + b64("PNG") + "; "},
		{"", picture, "resource_link image/pngp.png PNG <nil>; "},
		{"image", attached("big.png", "image/png", strings.Repeat("x", 9<<20)), "resource_link image/pngbig.png " + strings.Repeat("x", 9<<20) + " <nil>; "},
		{"", attached("", "application/x", "nameless"), "resource_link application/xattachment nameless <nil>; "},
	} {
		scratch := t.TempDir()
		s := setWith(t, agenttest.Options{Attachments: []agent.Attachment{tt.gets}},
			acp.Options{Command: acptest.Command("prompt=" + tt.takes), Scratch: scratch})
		s.Do(s.agent, "prompt")
		if got := s.says(); got != tt.want {
			t.Errorf("%q gets %s: got %.200q, want %.200q", tt.takes, tt.gets.Name, got, tt.want)
		}
		if err := s.agent.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
}

// What cannot be handed on fails the run, and the agent hears nothing of it.
func TestAttachmentsThatCannotBeHandedOn(t *testing.T) {
	gone := attached("a", "text/plain", "x")
	gone.Open = func() (io.ReadCloser, error) { return nil, errors.New("secret-path is gone") }
	for name, tt := range map[string]struct {
		gets    agent.Attachment
		scratch string
	}{"gone": {gone, t.TempDir()}, "no form and no room": {attached("a", "text/plain", "x"), ""}} {
		s := setWith(t, agenttest.Options{Attachments: []agent.Attachment{tt.gets}}, acp.Options{Command: acptest.Command(), Scratch: tt.scratch})
		e := s.Do(s.agent, "say hello")
		if e.Outcome != agent.Failed || e.Code != "attachment_unavailable" || strings.Contains(e.Message, "secret") || s.says() != "" {
			t.Errorf("%s: got %+v and %q", name, e, s.says())
		}
	}
}
