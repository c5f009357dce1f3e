package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
)

// teller is an agent without a process: its turn is told these updates.
type teller struct {
	t       *testing.T
	updates [][]byte
}

func (a *teller) Run(ctx context.Context, h agent.Handle) agent.Ending {
	opt := &Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	turn := newTurn(ctx, context.Background(), &peer{opt: opt, child: &child{dir: "/w"}}, h)
	defer turn.release()
	for _, data := range a.updates {
		var u update
		if json.Unmarshal(data, &u) == nil {
			_ = turn.update(&u) // what cannot be read is no matter here
		}
	}
	e := turn.end(reply{result: []byte(`{"stopReason":"end_turn"}`)})
	if len(turn.open) > 0 {
		a.t.Errorf("got %d open calls after the end of the turn", len(turn.open))
	}
	return e
}

func (a *teller) Steer(context.Context, agent.Message) error { return errors.ErrUnsupported }
func (a *teller) Close() error                               { return nil }

// FuzzUpdates tells anything, an update a line. Whatever it is, the run ends in legal
// order: the session in memory fails the test if it does not.
func FuzzUpdates(f *testing.F) {
	f.Add([]byte(`{"sessionUpdate":"tool_call","toolCallId":"a","title":"x","rawInput":{"a":[1]},"content":[{"type":"content","content":{"type":"text","text":"t"}}]}
{"sessionUpdate":"agent_message_chunk","_meta":{"parentToolCallId":"a"},"content":{"type":"text","text":"\ud83d"}}
{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":null}`))
	f.Add([]byte(`{"sessionUpdate":"plan","entries":[{"content":"","status":""},{"content":"x","status":"completed"},{"content":"x"}]}
{"sessionUpdate":"agent_thought_chunk","content":{"type":"resource","resource":{"text":"t"}}}
{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","data":"=","mimeType":"\u0000"}}`))
	f.Add([]byte(`{"sessionUpdate":"tool_call","toolCallId":"a","_meta":{"parentToolCallId":"a"},"locations":[{"path":""}],"kind":"","title":"` + "\xff" + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := agenttest.New(t, agenttest.Options{})
		e := s.Do(&teller{t, bytes.Split(data, []byte("\n"))}, "go")
		if e.Outcome != agent.Finished {
			t.Errorf("got %+v, want a run that is finished", e)
		}
		if run := s.Snapshot().Runs; len(run) == 0 {
			t.Error("the session knows no run")
		}
	})
}
