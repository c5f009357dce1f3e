package agenttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Artifact returns what an agent gave as the content of an artifact.
func (s *Session) Artifact(id string) (content []byte, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ready = s.artifacts[id]
	return content, ready
}

// AddArtifact implements agent.Handle; so do the methods below.
func (h *handle) AddArtifact(ctx context.Context, a agent.Artifact, content io.Reader) (string, error) {
	id, err := h.AnnounceArtifact(ctx, a)
	if err != nil {
		return "", err
	}
	return id, h.CompleteArtifact(ctx, id, content)
}

func (h *handle) AnnounceArtifact(ctx context.Context, a agent.Artifact) (id string, err error) {
	err = h.in(ctx, func(b *book) error {
		if _, open := h.s.calls[a.ToolCallID]; a.ToolCallID != "" && !open {
			return h.s.refuse("an artifact of no open call")
		}
		id = h.s.id("artifact")
		if err := h.s.flush(b); err != nil {
			return err
		}
		return h.s.record(artifactFact(b, narad.TypeArtifactAdded, id, facts.Material{
			Name: a.Name, MediaType: a.MediaType, ToolCallID: a.ToolCallID,
		}))
	})
	return id, err
}

func (h *handle) CompleteArtifact(ctx context.Context, id string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return h.tell(ctx, func(b *book) narad.Authority {
		if h.s.artifacts == nil {
			h.s.artifacts = map[string][]byte{}
		}
		h.s.artifacts[id] = data
		return artifactFact(b, narad.TypeArtifactReady, id, facts.Material{
			Bytes: int64(len(data)), Digest: "sha256:" + hex.EncodeToString(sum[:]),
		})
	})
}

func (h *handle) FailArtifact(ctx context.Context, id, code, message string) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := artifactFact(b, narad.TypeArtifactFailed, id, facts.Material{})
		f.Code, f.Message = code, message
		return f
	})
}

func artifactFact(b *book, kind narad.Type, id string, m facts.Material) *narad.Artifact {
	f := &narad.Artifact{Event: b.event(), Kind: kind, ArtifactID: id}
	facts.SetMaterial(&f.Event, m)
	return f
}
