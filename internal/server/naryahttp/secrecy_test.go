package naryahttp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// Case 101. The lease and the token with which an executor runs a call are on its own channel
// alone: the stream, and whatever this contract reads, have the call and neither of them.
func TestCase101ExecutionSecrets(t *testing.T) {
	calls := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		if _, err := h.CallClient(ctx, agent.Tool{Name: "open.file", Args: narad.Raw(`{"path":"shown"}`)}, nil); err != nil {
			return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
		}
		return done
	})
	bubble(t, bedOptions{agent: calls}, func(t *testing.T, b *bed) {
		s, own := b.stream("hostEvents=true", ""), b.stream("sessionId="+uuidOf("one"), "")
		created := facts.Created{WorkspaceID: "default", Cwd: "/", RequiredProfiles: host.RequiredProfiles.IDs(), ClientExecutorID: "desk"}
		a, err := b.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.CreateSession, Session: "one", Command: decide.Create{Payload: created},
		})
		if err != nil || a.Status != decide.Accepted {
			t.Fatal(a, err)
		}
		attached, err := b.host.AttachExecutor(t.Context(), access.Owner(), "desk")
		if err != nil {
			t.Fatal(err)
		}
		channel, err := b.host.ConnectExecutor(access.Owner(), "desk", attached.LeaseID)
		if err != nil {
			t.Fatal(err)
		}
		defer channel.Close()
		b.say("one", "go")
		synctest.Wait()
		var call *narad.ClientToolExecute
		records, err := channel.Next()
		channel.Wrote(nil)
		for _, data := range records {
			if r, err := narad.DecodeStrict(data); err == nil && call == nil {
				call, _ = r.(*narad.ClientToolExecute)
			}
		}
		if err != nil || call == nil || call.ExecutionToken == "" {
			t.Fatalf("the executor was told %q, %v", records, err)
		}
		open := b.get(b.session("one")).body
		finish := &narad.ClientToolFinish{
			Lease: call.Lease, ExecutionToken: call.ExecutionToken, ToolCallID: call.ToolCallID,
			Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{"ok":true}`),
		}
		if a, err := b.host.FinishClientTool(t.Context(), access.Owner(), finish); err != nil || a.Status != decide.Accepted {
			t.Fatal(a, err)
		}
		pass(time.Second)
		told := map[string]string{"a session at work": open, "the log": b.log.String()}
		for name, events := range map[string][]event{"the stream of all": s.now(), "the session's stream": own.now()} {
			if got := fields(events, narya.TypeToolCallFinished, "status"); len(got) != 1 || got[0] != "ok" {
				t.Errorf("%s tells of calls that ended %q", name, got)
			}
			for _, e := range events {
				told[name] += e.data
			}
		}
		for _, path := range []string{"", "/transcript", "/lanes", "/export"} {
			told[path] = b.want(b.get(b.session("one")+path), 200).body
		}
		for _, path := range []string{"/v1/sessions", "/v1/permissions", "/v1/permissions/decisions", "/v1/host"} {
			told[path] = b.want(b.get(path), 200).body
		}
		for where, text := range told {
			for _, secret := range []string{attached.LeaseID, call.ExecutionToken, "client.tool.execute"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds what is secret", where)
				}
			}
		}
		if !strings.Contains(told["/transcript"], "shown") {
			t.Errorf("the transcript lacks the call: %s", told["/transcript"])
		}
	})
}
