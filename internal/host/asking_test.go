package host_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Runs that wait for people, in whichever way, keep nobody else from working, and go on at once
// when they are answered.
func TestAsksLeaveTheirPlace(t *testing.T) {
	for _, way := range []string{"ask", "permit", "after a restart"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(ctx context.Context, h agent.Handle) agent.Ending {
					var answer agent.Answer
					var err error
					switch {
					case h.Info().Prompt.Content == "work":
						return agent.Ending{StopReason: "completed"}
					case way == "permit":
						id, startErr := h.StartTool(ctx, agent.Tool{Name: "shell"})
						if startErr != nil {
							return agent.Ending{Outcome: agent.Cancelled}
						}
						answer, err = h.Permit(ctx, agent.Permission{ToolCallID: id, Options: []agent.Option{{Action: "approve"}, {Action: "deny"}}})
						_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess})
					case len(h.Info().Past) > 0:
						for _, f := range h.Info().Past {
							if asked, ok := f.(*narad.InterruptRequested); ok {
								answer, err = h.Await(ctx, asked.InterruptID)
							}
						}
					default:
						answer, err = h.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve", "deny"}})
					}
					if err != nil || answer.Decision != "approve" {
						return agent.Ending{Outcome: agent.Cancelled}
					}
					return agent.Ending{StopReason: "completed"}
				}
				j, o := memory(t, journal.Options{}), host.Options{MaxRunning: 2}
				s := open(t, j, acts{run: run, resumes: true}, o)
				asking := []string{"s1", "s2", "s3"}
				for _, id := range asking {
					s.create(id)
					s.say(id, "ask")
					synctest.Wait()
				}
				if way == "after a restart" {
					s.close()
					s = open(t, j, acts{run: run, resumes: true}, o)
					synctest.Wait()
				}
				defer s.close()
				s.create("s4")
				a := s.say("s4", "work")
				synctest.Wait()
				if a.Queued || s.count("s4", narad.TypeRunFinished) != 1 {
					t.Errorf("the fourth session waits (queued: %v), while the others ask", a.Queued)
				}
				if now := s.host.Stats(); now.Running != 0 || now.Waiting != 0 {
					t.Errorf("while they ask: %+v", now)
				}
				open := s.inbox()
				if len(open) != len(asking) {
					t.Fatalf("%d ask, want %d", len(open), len(asking))
				}
				for _, i := range open {
					s.resolve(i.InterruptID, "approve")
				}
				synctest.Wait()
				for _, id := range asking {
					if s.count(id, narad.TypeRunFinished) == 0 {
						t.Errorf("%s does not go on: %s", id, s.story(id))
					}
				}
				if now := s.host.Stats(); now.Running != 0 || now.Waiting != 0 {
					t.Errorf("at the end: %+v, want that all places are free", now)
				}
			})
		})
	}
}
