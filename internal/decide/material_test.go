package decide_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// kinds are the types of the facts that the last command proposed.
func (b *bed) kinds() (list []narad.Type) {
	for _, f := range b.outcome.Facts {
		list = append(list, f.Type())
	}
	return list
}

func (b *bed) proposes(c decide.Command, want ...narad.Type) {
	b.t.Helper()
	b.ok(c)
	if d := cmp.Diff(want, b.kinds()); d != "" {
		b.t.Errorf("%T (-want +got):\n%s", c, d)
	}
}

// §9.5: an attachment is added, then ready or failed, and may be removed. Each fact says
// what it is about.
func TestAttachments(t *testing.T) {
	b := open(t)
	m := facts.Material{Name: "a.txt", MediaType: "text/plain", Bytes: 3, Digest: "sha256:x"}
	known := map[string]facts.Material{}
	b.env.Attachment = func(id string) (facts.Material, bool) { m, ok := known[id]; return m, ok }
	b.env.Removed = func(id string) bool { return id == "gone" }
	b.proposes(decide.AddAttachment{AttachmentID: "a", Material: m}, narad.TypeAttachmentAdded, narad.TypeAttachmentReady)
	if got := facts.MaterialOf(b.outcome.Facts[1].Envelope()); got != m {
		t.Errorf("got %+v, want %+v", got, m)
	}
	if got := facts.MaterialOf(b.outcome.Facts[0].Envelope()); got.Digest != "" || got.Name != m.Name {
		t.Errorf("added: got %+v, want no digest", got)
	}
	known["a"] = m
	b.proposes(decide.FailAttachment{AttachmentID: "f", Material: m, Code: "incomplete"}, narad.TypeAttachmentAdded, narad.TypeAttachmentFailed)

	b.refuses(decide.Message{Content: "x", AttachmentIDs: []string{"a", "a"}}, decide.Rejected)
	b.refuses(decide.Message{Content: "x", AttachmentIDs: []string{"f"}}, decide.Rejected)
	b.refuses(decide.Message{Content: "x", AttachmentIDs: make([]string, 33)}, decide.Rejected)
	b.ok(decide.Message{Content: "x", AttachmentIDs: []string{"a"}})
	if prompt := b.outcome.Facts[1].(*narad.MessageUserRecorded); !cmp.Equal(prompt.AttachmentIDs, []string{"a"}) {
		t.Errorf("the prompt has %v", prompt.AttachmentIDs)
	}
	b.ok(decide.Message{Content: "y", AttachmentIDs: []string{"a"}}) // waits
	b.refuses(decide.RemoveAttachment{AttachmentID: "a"}, decide.Conflict)
	b.ok(decide.Withdraw{RunID: b.desk.Queue[0].RunID})
	b.proposes(decide.RemoveAttachment{AttachmentID: "a"}, narad.TypeAttachmentRemoved)
	b.refuses(decide.RemoveAttachment{AttachmentID: "gone"}, decide.AlreadyApplied)
	b.refuses(decide.RemoveAttachment{AttachmentID: "f"}, decide.NotFound)
}

// The attachments of a message that waited stand in the prompt.
func TestAttachmentsOfAWaitingMessage(t *testing.T) {
	b, run := running(t)
	b.env.Attachment = func(string) (facts.Material, bool) { return facts.Material{}, true }
	b.ok(decide.Message{Content: "next", AttachmentIDs: []string{"a", "b"}})
	b.ok(decide.Ended{RunID: run})
	for _, f := range b.outcome.Facts {
		if m, ok := f.(*narad.MessageUserRecorded); ok && !cmp.Equal(m.AttachmentIDs, []string{"a", "b"}) {
			t.Errorf("the prompt has %v", m.AttachmentIDs)
		}
	}
}

// An artifact is announced, then ready or failed, by the run that makes it. What is left
// at the end of the run has failed, and the run names what is ready.
func TestArtifacts(t *testing.T) {
	b, run := running(t)
	m := decide.Artifact{ArtifactID: "a", Material: facts.Material{Name: "r.pdf", MediaType: "application/pdf", Bytes: 7, Digest: "sha256:x"}}
	b.proposes(decide.AddArtifact{RunID: run, Artifact: m}, narad.TypeArtifactAdded, narad.TypeArtifactReady)
	announce := func(id string) decide.AnnounceArtifact {
		return decide.AnnounceArtifact{RunID: run, Artifact: decide.Artifact{ArtifactID: id, Material: facts.Material{Name: id}}}
	}
	b.proposes(announce("b"), narad.TypeArtifactAdded)
	b.proposes(announce("c"), narad.TypeArtifactAdded)
	b.proposes(announce("d"), narad.TypeArtifactAdded)
	b.bars(decide.CompleteArtifact{RunID: run, ArtifactID: "a"}, decide.RefusedInvalid)
	b.proposes(decide.CompleteArtifact{RunID: run, ArtifactID: "b", Digest: "sha256:y", Bytes: 2}, narad.TypeArtifactReady)
	if got := facts.MaterialOf(b.outcome.Facts[0].Envelope()); got.Name != "b" || got.Bytes != 2 {
		t.Errorf("got %+v, want what was announced too", got)
	}
	b.proposes(decide.FailArtifact{RunID: run, ArtifactID: "c", Code: "why"}, narad.TypeArtifactFailed)
	b.bars(decide.FailArtifact{RunID: run, ArtifactID: "c"}, decide.RefusedInvalid)
	b.bars(decide.AddArtifact{RunID: run, Artifact: decide.Artifact{ArtifactID: "e", Material: facts.Material{ToolCallID: "none"}}}, decide.RefusedInvalid)
	b.ok(decide.StartRun{ParentRunID: run, RunID: "below", Name: "x"})
	b.bars(decide.FailArtifact{RunID: "below", ArtifactID: "d"}, decide.RefusedInvalid)
	b.ok(decide.EndRun{RunID: "below"})

	b.proposes(decide.Ended{RunID: run}, narad.TypeArtifactFailed, narad.TypeRunFinished)
	if end := b.outcome.Facts[1].(*narad.RunFinished); !cmp.Equal(end.ArtifactIDs, []string{"a", "b"}) {
		t.Errorf("the run finished with %v", end.ArtifactIDs)
	}
	b.bars(announce("z"), decide.RefusedEnded)
	if len(b.desk.Making)+len(b.desk.Made) > 0 {
		t.Errorf("the desk keeps %v and %v", b.desk.Making, b.desk.Made)
	}
}

// A run that goes on after a restart does not wait for what the dead host was to be given.
func TestRestartFailsArtifacts(t *testing.T) {
	b, run := running(t)
	b.ok(decide.AnnounceArtifact{RunID: run, Artifact: decide.Artifact{ArtifactID: "a"}})
	b.proposes(decide.Recover{Resumes: true}, narad.TypeArtifactFailed)
	b.refuses(decide.Recover{Resumes: true}, decide.AlreadyApplied)
}
