package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narad"
)

// planned tells a plan as agents do: one activity a step, the last with the whole.
func planned(ctx context.Context, h agent.Handle, steps ...facts.Planned) error {
	for i, s := range steps {
		plan := &agent.Plan{Later: true}
		if i == len(steps)-1 {
			plan = &agent.Plan{Steps: steps}
		}
		p := agent.Progress{ID: s.ID, Category: "plan", Label: s.Text, Status: narad.ProgressActive, Privacy: narad.PrivacyPublic, Plan: plan}
		if err := h.Progress(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) tasks(id string) []facts.Task {
	s.t.Helper()
	v, err := s.host.Attach(s.t.Context(), access.Owner(), access.ReadSession, id)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := v.Tasks(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// Each change of a plan is one whole list of tasks, right behind the activity that tells
// the plan; that of a nested run is not the session's; an emptied list is written too.
func TestPlanIsTheListOfTasks(t *testing.T) {
	run := func(ctx context.Context, h agent.Handle) agent.Ending {
		check := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		check(planned(ctx, h, facts.Planned{ID: "1", Text: "look", Status: "completed"}, facts.Planned{ID: "2", Text: "mend", Status: "active"},
			facts.Planned{ID: "3", Text: "drop", Status: "failed"}, facts.Planned{ID: "4", Text: "test", Status: "pending"}))
		below, err := h.StartRun(ctx, agent.Nested{Name: "helper"})
		check(err)
		check(planned(ctx, below, facts.Planned{ID: "x", Text: "another's", Status: "active"}))
		check(below.Tasks(ctx, "", nil))
		check(below.End(ctx, agent.Ending{}))
		<-time.After(time.Minute)
		check(h.Tasks(ctx, "p", nil))
		return agent.Ending{StopReason: "completed"}
	}
	alone(t, acts{run: run}, host.Options{Numbers: numbers.Of}, func(t *testing.T, s *stage) {
		if got := s.tasks("s1"); got != nil {
			t.Errorf("before there is any: got %+v", got)
		}
		s.say("s1", "plan it")
		synctest.Wait()
		want := []facts.Task{
			{Content: "look", Status: "completed"}, {Content: "mend", Status: "in_progress"},
			{Content: "drop", Status: "cancelled"}, {Content: "test", Status: "pending"},
		}
		if diff := cmp.Diff(want, s.tasks("s1")); diff != "" {
			t.Error(diff)
		}
		var before narad.Type
		for _, f := range s.facts("s1") {
			if _, ok := facts.Read[facts.Tasked](f, facts.TaskList); ok && before != narad.TypeProgressRecorded {
				t.Errorf("a list of tasks stands behind %s", before)
			}
			before = f.Type()
		}
		pass(2 * time.Minute)
		synctest.Wait()
		if got := s.tasks("s1"); len(got) != 0 {
			t.Errorf("after it was emptied: got %+v", got)
		}
		lists := 0
		for _, f := range s.facts("s1") {
			if _, ok := facts.Read[facts.Tasked](f, facts.TaskList); ok {
				lists++
			}
		}
		if lists != 2 {
			t.Errorf("got %d lists, want 2", lists)
		}
	})
}
