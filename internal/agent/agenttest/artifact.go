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
	data, err := io.ReadAll(content)
	if err != nil {
		return "", err
	}
	id := ""
	err = h.in(ctx, func(b *book) error {
		if err := h.s.announces(b, a); err != nil {
			return err
		}
		id = h.s.id("artifact")
		return h.s.record(
			artifactFact(b, narad.TypeArtifactAdded, id, told(a)),
			artifactFact(b, narad.TypeArtifactReady, id, h.s.stored(id, data, told(a))),
		)
	})
	return id, err
}

// announces looks whether an artifact may be told, and flushes.
func (s *Session) announces(b *book, a agent.Artifact) error {
	if _, open := s.calls[a.ToolCallID]; a.ToolCallID != "" && !open {
		return s.refuse("an artifact of no open call")
	}
	return s.flush(b)
}

func told(a agent.Artifact) facts.Material {
	return facts.Material{Name: a.Name, MediaType: a.MediaType, ToolCallID: a.ToolCallID, AgentID: a.AgentID}
}

// stored keeps content.
func (s *Session) stored(id string, data []byte, m facts.Material) facts.Material {
	if s.artifacts == nil {
		s.artifacts = map[string][]byte{}
	}
	s.artifacts[id] = data
	sum := sha256.Sum256(data)
	m.Bytes, m.Digest = int64(len(data)), "sha256:"+hex.EncodeToString(sum[:])
	return m
}

func (h *handle) AnnounceArtifact(ctx context.Context, a agent.Artifact) (id string, err error) {
	err = h.in(ctx, func(b *book) error {
		if err := h.s.announces(b, a); err != nil {
			return err
		}
		id = h.s.id("artifact")
		return h.s.record(artifactFact(b, narad.TypeArtifactAdded, id, told(a)))
	})
	return id, err
}

func (h *handle) CompleteArtifact(ctx context.Context, id string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return h.tell(ctx, func(b *book) narad.Authority {
		return artifactFact(b, narad.TypeArtifactReady, id, h.s.stored(id, data, facts.Material{}))
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
