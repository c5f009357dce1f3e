package script

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"go.yaml.in/yaml/v3"
)

// artifact is an output of the run: a text, made-up bytes, or one that fails.
type artifact struct {
	name, mediaType template
	text            template
	length          int
	fail            string
	message         template
}

func readArtifact(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "artifact")
	a := &artifact{
		name: o.template("name"), mediaType: o.template("type"), text: o.template("text"),
		length: o.number("bytes", maxArtifact), fail: o.name("fail"), message: o.template("message"),
	}
	o.close("name", "type", "text", "bytes", "fail", "message")
	given := 0
	for _, is := range []bool{a.text != nil, a.length > 0, a.fail != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		r.fail(n, "artifact: exactly one of text, bytes and fail")
	}
	return a
}

// maxArtifact bounds made-up content.
const maxArtifact = 1 << 30

func (a *artifact) perform(ctx context.Context, sc *scene, at spot) error {
	known := sc.play.past.artifacts[at.path]
	if known != nil {
		sc.play.past.consume()
		if known.done {
			return nil
		}
	}
	var out agent.Artifact
	var text, message string
	err := sc.fills(at, map[*string]template{&out.Name: a.name, &out.MediaType: a.mediaType, &text: a.text, &message: a.message})
	if err != nil {
		return err
	}
	out.AgentID = at.path
	if a.fail != "" {
		return a.fails(ctx, sc, known, out, message)
	}
	content := io.Reader(strings.NewReader(text))
	if a.length > 0 {
		content = io.LimitReader(letters{}, int64(a.length))
	}
	_, err = sc.h.AddArtifact(ctx, out, content)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // a host that keeps nothing
	}
	return err
}

// fails announces an output, unless that was done before a restart, and takes it back.
func (a *artifact) fails(ctx context.Context, sc *scene, known *pastArtifact, out agent.Artifact, message string) error {
	if known != nil {
		return sc.h.FailArtifact(ctx, known.id, a.fail, message)
	}
	id, err := sc.h.AnnounceArtifact(ctx, out)
	if err != nil {
		return err
	}
	return sc.h.FailArtifact(ctx, id, a.fail, message)
}

// letters is text without an end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
