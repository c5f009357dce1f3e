package host

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

func (h *handle) AddArtifact(ctx context.Context, a agent.Artifact, content io.Reader) (string, error) {
	m, err := artifactMaterial(a)
	if err != nil {
		return "", err
	}
	held, err := h.o.host.shelf.put(content, h.o.host.opt.MaxArtifact)
	if err != nil {
		return "", h.notKept(ctx, m, err)
	}
	defer held.release()
	m.Bytes, m.Digest = held.Size, held.Digest.String()
	id := h.o.host.opt.NewID()
	_, err = h.do(ctx, &task{command: decide.AddArtifact{
		RunID: h.info.RunID, Artifact: decide.Artifact{ArtifactID: id, Material: m},
	}})
	return id, err
}

// notKept records an output whose bytes could not be kept, and says so to its agent.
func (h *handle) notKept(ctx context.Context, m facts.Material, cause error) error {
	if errors.Is(cause, ErrNoMaterials) {
		return errors.ErrUnsupported
	}
	id := h.o.host.opt.NewID()
	_, err := h.do(ctx, &task{command: decide.AnnounceArtifact{
		RunID: h.info.RunID, Artifact: decide.Artifact{ArtifactID: id, Material: m},
	}})
	if err == nil {
		err = h.FailArtifact(ctx, id, codeOf(cause), "The content could not be kept.")
	}
	return errors.Join(refusedContent(cause), err)
}

// codeOf says in a word why content was not kept.
func codeOf(cause error) string {
	switch {
	case errors.Is(cause, ErrStorageFull):
		return "storage_full"
	case errors.Is(cause, ErrTooLarge):
		return "too_large"
	}
	return "incomplete"
}

func refusedContent(cause error) error {
	if errors.Is(cause, ErrTooLarge) {
		return agent.ErrTooLarge
	}
	return cause
}

func (h *handle) AnnounceArtifact(ctx context.Context, a agent.Artifact) (string, error) {
	m, err := artifactMaterial(a)
	if err != nil {
		return "", err
	}
	id := h.o.host.opt.NewID()
	_, err = h.do(ctx, &task{command: decide.AnnounceArtifact{
		RunID: h.info.RunID, Artifact: decide.Artifact{ArtifactID: id, Material: m},
	}})
	return id, err
}

func (h *handle) CompleteArtifact(ctx context.Context, artifactID string, content io.Reader) error {
	held, err := h.o.host.shelf.put(content, h.o.host.opt.MaxArtifact)
	if err != nil {
		return errors.Join(refusedContent(err), h.FailArtifact(ctx, artifactID, codeOf(err), "The content could not be kept."))
	}
	defer held.release()
	_, err = h.do(ctx, &task{command: decide.CompleteArtifact{
		RunID: h.info.RunID, ArtifactID: artifactID, Digest: held.Digest.String(), Bytes: held.Size,
	}})
	return err
}

func (h *handle) FailArtifact(ctx context.Context, artifactID, code, message string) error {
	_, err := h.do(ctx, &task{command: decide.FailArtifact{
		RunID: h.info.RunID, ArtifactID: artifactID, Code: shorten(code), Message: shorten(message),
	}})
	return err
}

// artifactMaterial is what an agent tells of an output. It is shown to people and stands
// in headers, so it has the form that is asked of clients too.
func artifactMaterial(a agent.Artifact) (facts.Material, error) {
	if a.MediaType == "" {
		a.MediaType = DefaultMediaType
	}
	name, err := CheckMaterialName(a.Name)
	if err != nil {
		return facts.Material{}, invalid(err.Error())
	}
	mediaType, err := CheckMediaType(a.MediaType)
	if err != nil {
		return facts.Material{}, invalid(err.Error())
	}
	return facts.Material{Name: name, MediaType: mediaType, ToolCallID: a.ToolCallID, AgentID: shorten(a.AgentID)}, nil
}

// asArtifact keeps a response that no event can hold, and returns what stands for it in
// the finish (R7). Where it cannot be kept its beginning must do.
func (h *handle) asArtifact(response narad.Raw, toolCallID string) (narad.Raw, []decide.Artifact, func()) {
	mediaType, content := "application/json", []byte(response)
	if text, isText := response.IsString(); isText {
		mediaType, content = "text/plain; charset=utf-8", []byte(text)
	}
	held, err := h.o.host.shelf.put(bytes.NewReader(content), h.o.host.opt.MaxArtifact)
	if err != nil {
		if !errors.Is(err, ErrNoMaterials) {
			h.o.log.Warn("keep a large response", "run", h.info.RunID, "bytes", len(content), "error", err)
		}
		return cut(response), nil, func() {}
	}
	a := decide.Artifact{ArtifactID: h.o.host.opt.NewID(), Material: facts.Material{
		MediaType: mediaType, Bytes: held.Size, Digest: held.Digest.String(), ToolCallID: toolCallID,
	}}
	text := content[:min(len(content), previewBytes)]
	stands, err := facts.Value(struct {
		ArtifactID string `json:"artifactId"`
		MediaType  string `json:"mediaType"`
		Bytes      int64  `json:"bytes"`
		Preview    string `json:"preview"`
	}{a.ArtifactID, mediaType, held.Size, string(text[:completeRunes(text)])})
	if err != nil {
		held.release()
		return cut(response), nil, func() {}
	}
	return stands, []decide.Artifact{a}, held.release
}
