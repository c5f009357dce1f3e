package decide

import (
	"maps"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Artifact is an output whose bytes are kept.
type Artifact struct {
	ArtifactID string
	facts.Material
}

// AddArtifact records an output of a run that is there already.
type AddArtifact struct {
	RunID string
	Artifact
}

func (a AddArtifact) propose(d *draft) Answer {
	run, answer, ok := d.open(a.RunID)
	if !ok {
		return answer
	}
	if refusal, ok := d.comesOf(a.ToolCallID, a.RunID); !ok {
		return refusal
	}
	d.produced(run, a.Artifact)
	answer.ID = a.ArtifactID
	return answer
}

// comesOf demands that the call that an artifact is said to come of is one of the run.
func (d *draft) comesOf(toolCallID, runID string) (Answer, bool) {
	if toolCallID == "" {
		return Answer{}, true
	}
	_, refusal, ok := d.tool(toolCallID, runID)
	return refusal, ok
}

// produced records an output from its announcement to its being there.
func (d *draft) produced(run session.Run, a Artifact) {
	a.Material = d.namingTool(a.Material)
	unread := a.Material
	unread.Digest = ""
	d.in(run, artifact(narad.TypeArtifactAdded, a.ArtifactID, unread), artifact(narad.TypeArtifactReady, a.ArtifactID, a.Material))
}

// namingTool names the tool of the call that an artifact comes of (R1).
func (d *draft) namingTool(m facts.Material) facts.Material {
	if m.ToolCallID != "" {
		call, _ := d.state.Tool(m.ToolCallID)
		m.ToolName = call.ToolName
	}
	return m
}

func artifact(kind narad.Type, id string, m facts.Material) *narad.Artifact {
	f := &narad.Artifact{Kind: kind, ArtifactID: id}
	facts.SetMaterial(&f.Event, m)
	return f
}

// maxMaking bounds the artifacts of a session that are announced and not there.
const maxMaking = 64

// AnnounceArtifact records that a run makes an output.
type AnnounceArtifact struct {
	RunID string
	Artifact
}

func (a AnnounceArtifact) propose(d *draft) Answer {
	run, answer, ok := d.open(a.RunID)
	switch {
	case !ok:
		return answer
	case len(d.desk.Making) >= maxMaking:
		return refuseRecord(RefusedInvalid, "too many artifacts are announced")
	}
	if refusal, ok := d.comesOf(a.ToolCallID, a.RunID); !ok {
		return refusal
	}
	d.in(run, artifact(narad.TypeArtifactAdded, a.ArtifactID, d.namingTool(a.Material)))
	answer.ID = a.ArtifactID
	return answer
}

// CompleteArtifact records that an announced output is there. Only its digest and size
// are news.
type CompleteArtifact struct {
	RunID      string
	ArtifactID string
	Digest     string
	Bytes      int64
}

func (c CompleteArtifact) propose(d *draft) Answer {
	run, m, answer, ok := d.making(c.RunID, c.ArtifactID)
	if !ok {
		return answer
	}
	m.Digest, m.Bytes = c.Digest, c.Bytes
	d.in(run, artifact(narad.TypeArtifactReady, c.ArtifactID, m))
	return answer
}

// FailArtifact records that an announced output will not be there.
type FailArtifact struct {
	RunID      string
	ArtifactID string
	Code       string
	Message    string
}

func (f FailArtifact) propose(d *draft) Answer {
	run, m, answer, ok := d.making(f.RunID, f.ArtifactID)
	if !ok {
		return answer
	}
	d.failArtifact(run, f.ArtifactID, m, f.Code, f.Message)
	return answer
}

func (d *draft) failArtifact(run session.Run, id string, m facts.Material, code, message string) {
	failed := artifact(narad.TypeArtifactFailed, id, m)
	failed.Code, failed.Message = code, message
	d.in(run, failed)
}

// making returns an announced artifact of a run.
func (d *draft) making(runID, id string) (session.Run, facts.Material, Answer, bool) {
	run, answer, ok := d.open(runID)
	if !ok {
		return run, facts.Material{}, answer, false
	}
	m, known := d.desk.Making[id]
	if !known || m.RunID != runID {
		return run, m.Material, refuseRecord(RefusedInvalid, "no such artifact is announced in the run"), false
	}
	answer.ID = id
	return run, m.Material, answer, true
}

// failArtifacts fails the outputs of a run that are announced and will not come.
func (d *draft) failArtifacts(run session.Run, code string) {
	for _, id := range slices.Sorted(maps.Keys(d.desk.Making)) {
		if m := d.desk.Making[id]; m.RunID == run.RunID {
			d.failArtifact(run, id, m.Material, code, "")
		}
	}
}
