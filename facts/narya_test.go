package facts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

func TestPayloadsOfNarya(t *testing.T) {
	moved := facts.Moved{Cwd: "/b", Was: "/a"}
	roundTrip(t, facts.Session(facts.SessionMoved, moved), moved)
	model := facts.Modelled{Provider: "p", Model: "m", WasProvider: "q", WasModel: "n"}
	roundTrip(t, facts.Session(facts.SessionModel, model), model)
	tasks := facts.Tasked{Tasks: []facts.Task{{Content: "x", Status: "pending"}}}
	roundTrip(t, facts.Run("root", "run", facts.TaskList, tasks), tasks)
	asked := facts.Told{MessageID: "m", From: "a-1", FromSessionID: "s", Content: "?", Kind: "ask", AskID: "q"}
	roundTrip(t, facts.Session(facts.Intercom, asked), asked)
	published := facts.Published{Extension: "a/b", Name: "n", Payload: narad.Raw(`{"x":1.10}`)}
	roundTrip(t, facts.Session(facts.Extension, published), published)
}

// R1: the optional fields of Narya come through, and what is unknown leaves nothing.
func TestOptionalFieldsOfNarya(t *testing.T) {
	n, cost := int64(3), 0.25
	turn := facts.Turn{
		LastRound: &facts.Tokens{Input: 1, Output: 2, CacheRead: &n, CacheWrite: &n, CostUSD: &cost},
		CostUSD:   &cost, ElapsedMs: &n, ContextWindow: &n,
	}
	steps := facts.Steps{Completed: &n, Total: &n, StartedAt: "2026-01-02T03:04:05Z", Output: "x"}
	touches := []facts.FileTouch{{Path: "/a", Op: "read"}}
	f := &narad.RunFinished{}
	f.RootRunID, f.RunID = "r", "r"
	facts.SetAsks(&f.Event, facts.AsksPermission)
	facts.SetSettles(&f.Event, []string{"a"})
	facts.SetTurn(&f.Event, turn)
	facts.SetSteps(&f.Event, steps)
	facts.SetFileTouches(&f.Event, touches)
	facts.SetStatus(&f.Event, facts.Idle, facts.Running)
	e := through(t, f).Envelope()
	settles, told := facts.Settles(e)
	was, now, changes := facts.Status(e)
	got := []any{facts.Asks(e), settles, told, facts.TurnOf(e), facts.StepsOf(e), facts.FileTouches(e), was, now, changes}
	want := []any{"permission", []string{"a"}, true, turn, steps, touches, "idle", "running", true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	none := &narad.Event{}
	facts.SetFileTouches(none, nil)
	none.SetOptional("status", narad.Raw(`7`))
	none.SetOptional("turn", narad.Raw(`{"costUsd":"x","elapsedMs":1}`))
	_, told = facts.Settles(none)
	_, _, changes = facts.Status(none)
	if told || changes || facts.FileTouches(none) != nil || facts.TurnOf(none) != (facts.Turn{}) {
		t.Errorf("a fact without optional fields has some: %+v", none)
	}
	facts.SetSettles(none, nil)
	if ids, told := facts.Settles(none); !told || len(ids) != 0 {
		t.Errorf("got %v %v, want none, told", ids, told)
	}
}

// R11: what offers other words than those of permissions is a question.
func TestAsksFor(t *testing.T) {
	for _, c := range []struct {
		kind    string
		actions []string
		want    string
	}{
		{"approval", []string{"approve", "deny"}, facts.AsksPermission},
		{"approval", []string{"approve_always", "deny_always", "stop"}, facts.AsksPermission},
		{"approval", []string{"approve", "deny", "ship"}, facts.AsksQuestion},
		{"question", []string{"approve", "deny"}, facts.AsksQuestion},
		{"question", []string{"0", "dismiss"}, facts.AsksQuestion},
	} {
		if got := facts.AsksFor(c.kind, c.actions); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.kind, c.actions, got, c.want)
		}
	}
}
