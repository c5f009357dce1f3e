package decide_test

import (
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// Each setting is one fact that says what was before, and none where nothing changes.
func TestSetUp(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second decide.Command
		want          string
	}{
		{"title", decide.Retitle{Title: "a"}, decide.Retitle{}, `{"title":"","was":"a"}`},
		{"directory", decide.Move{Cwd: "/a"}, decide.Move{Cwd: "/b"}, `{"cwd":"/b","was":"/a"}`},
		{
			"model", decide.ChooseModel{Provider: "p", Model: "m", Variant: "high"}, decide.ChooseModel{Provider: "p", Model: "n"},
			`{"provider":"p","model":"n","wasProvider":"p","wasModel":"m"}`,
		},
		{"variant", decide.ChooseVariant{Variant: "low"}, decide.ChooseVariant{}, `{"variant":"","was":"low"}`},
		{"style", decide.ChooseStyle{Style: "brief"}, decide.ChooseStyle{}, `{"style":"","was":"brief"}`},
		{"posture", decide.SetPosture{Posture: facts.Detached}, decide.SetPosture{Posture: facts.Attended}, `{"posture":"attended","was":"detached"}`},
		{"warming", decide.SetWarming{Enabled: true, CeilingUSD: 0.5}, decide.SetWarming{CeilingUSD: 0.5}, `{"enabled":false,"ceilingUsd":0.5}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t)
			b.refuses(tt.first, decide.NotFound)
			b.ok(decide.Create{Payload: created("default")})
			b.ok(tt.first)
			b.refuses(tt.first, decide.AlreadyApplied)
			b.ok(tt.second)
			if got := string(lastCustom(t, b).Value); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			b.ok(decide.Archive{})
			if a := b.refuses(tt.first, decide.Conflict); a.Err != decide.RefusedArchived {
				t.Errorf("refused as %q, want archived", a.Err)
			}
		})
	}
}

func lastCustom(t *testing.T, b *bed) *narad.Custom {
	t.Helper()
	last, ok := b.list[len(b.list)-1].(*narad.Custom)
	if !ok {
		t.Fatalf("the last fact is %s", b.list[len(b.list)-1].Type())
	}
	return last
}

// The model of the next run is the one that was chosen, or, where its agent no longer
// offers that, the first one that it does: said before the run, which is what the answer is
// about.
func TestSubstitutedModel(t *testing.T) {
	b := newBed(t)
	session := created("default")
	session.Provider, session.Model, session.Variant = "p", "gone", "high"
	b.ok(decide.Create{Payload: session})
	b.ok(decide.Message{Content: "nobody tells what there is"})
	if got := b.desk.Model; got != "gone" {
		t.Errorf("the model is %q, though the agent tells of none", got)
	}
	b.ok(decide.Ended{RunID: b.owner.ActiveRootRunID()})
	b.env.Models = []decide.Model{{Provider: "p", Model: "first"}, {Provider: "p", Model: "second"}}
	before := len(b.list)
	answer := b.ok(decide.Message{Content: "go"})
	chosen, _ := facts.Read[facts.Modelled](b.list[before], facts.SessionModel)
	want := facts.Modelled{Provider: "p", Model: "first", WasProvider: "p", WasModel: "gone", Reason: facts.Substituted}
	if chosen != want || b.list[before+1].Type() != narad.TypeRunStarted || b.desk.Variant != "" {
		t.Errorf("got %+v, then %s, variant %q; want %+v and the run", chosen, b.list[before+1].Type(), b.desk.Variant, want)
	}
	if answer.RunID != b.owner.ActiveRootRunID() {
		t.Errorf("the answer is about %q", answer.RunID)
	}
	b.ok(decide.Ended{RunID: answer.RunID})
	before = len(b.list)
	b.ok(decide.Message{Content: "again"})
	if got := b.list[before].Type(); got != narad.TypeRunStarted {
		t.Errorf("a model that is offered was replaced: %s", got)
	}
}

// What somebody has seen is recorded once until something happens.
func TestViewed(t *testing.T) {
	b := newBed(t)
	b.refuses(decide.MarkViewed{}, decide.NotFound)
	b.ok(decide.Create{Payload: created("default")})
	b.ok(decide.MarkViewed{})
	b.refuses(decide.MarkViewed{}, decide.AlreadyApplied)
	run := b.ok(decide.Message{Content: "go"}).RunID
	b.ok(decide.MarkViewed{})
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "hello"})
	b.refuses(decide.MarkViewed{}, decide.AlreadyApplied)
	b.ok(decide.Ended{RunID: run})
	b.ok(decide.MarkViewed{})
	b.ok(decide.Archive{})
	b.ok(decide.MarkViewed{}) // one that was put away can be looked at
}
