package naryahttp_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// begun creates a session of an id over the kernel and returns its UUID.
func (b *bed) begun(id string) string {
	b.t.Helper()
	_, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.CreateSession, Session: id,
		Command: decide.Create{Payload: facts.Created{WorkspaceID: "default", Title: "Session " + id}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return narya.UUID(narya.KindSession, id)
}

const twoSteps = `workflow: 1
name: two
start: first
nodes:
  first: {agent: test, prompt: do it, next: second}
  second: {approval: {title: Continue}, next: over}
  over: {end: completed}
`

func TestWorkflows(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		session := b.begun("s1")
		stream := b.stream("sessionId="+session, "")
		synctest.Wait()
		started := b.want(b.post("/v1/workflows", `{"sessionId":`+quote(session)+`,"definition":`+quote(twoSteps)+`}`), 202)
		run := started.field("runId")
		events := stream.now()
		first := slices.Index(kinds(events), narya.TypeWorkflowProgress)
		if first < 0 || events[first].Payload.(*narya.WorkflowProgress).RunID != run || !slices.Contains(kinds(events), narya.TypePermissionAsked) {
			t.Fatalf("got %v", kinds(events))
		}
		got := b.want(b.get("/v1/workflows/"+run), 200)
		if got.field("status") != "running" || got.field("name") != "two" || len(got.items("steps")) != 2 ||
			!strings.Contains(got.items("steps")[0], `"completed"`) || !strings.Contains(got.items("steps")[1], `"running"`) {
			t.Errorf("got %s", got)
		}
		b.wantError(b.post("/v1/workflows", `{"sessionId":`+quote(session)+`,"definition":`+quote(twoSteps)+`}`), narya.CodeBusy)
		if list := b.want(b.get("/v1/workflows?status=running&sessionId="+session), 200).items("items"); len(list) != 1 || !strings.Contains(list[0], run) {
			t.Errorf("listed: %q", list)
		}
		b.want(b.post("/v1/workflows/"+run+"/stop", ""), 202)
		b.want(b.post("/v1/workflows/"+run+"/stop", ""), 202)
		end := stream.now()
		last := end[len(end)-1]
		if got := last.Payload.(*narya.SessionStatusChanged); got.Status != narya.Idle {
			t.Errorf("the last event is %s", last.data)
		}
		got = b.want(b.get("/v1/workflows/"+run), 200)
		if got.field("status") != "stopped" || got.field("finishedAt") == "" || !strings.Contains(got.items("steps")[1], `"stopped"`) {
			t.Errorf("after the stop: %s", got)
		}
		if list := b.want(b.get("/v1/workflows?status=running"), 200).items("items"); len(list) != 0 {
			t.Errorf("running after the stop: %q", list)
		}
		if got := b.want(b.get("/v1/workflows?status=stopped&limit=1"), 200); len(got.items("items")) != 1 {
			t.Errorf("stopped: %s", got)
		}
	})
}

// Steps that have not begun stand in the order of the file.
func TestStepsInTheOrderOfTheFile(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		definition := "workflow: 1\nnodes:\n" +
			"  zeta: {approval: {title: Go on}, next: mid}\n  mid: {set: {a: x}, next: alpha}\n  over: {end: completed}\n" +
			"  alpha: {set: {a: x}, next: beta}\n  beta: {set: {a: x}, next: over}\n"
		body := `{"sessionId":` + quote(b.begun("s1")) + `,"definition":` + quote(definition) + `}`
		run := b.want(b.post("/v1/workflows", body), 202).field("runId")
		var names []string
		for _, step := range b.want(b.get("/v1/workflows/"+run), 200).items("steps") {
			names = append(names, text(step, "name"))
		}
		if want := []string{"zeta", "mid", "alpha", "beta"}; !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
	})
}

func TestWorkflowsRefused(t *testing.T) {
	b := begin(t, bedOptions{})
	session := b.begun("s1")
	nobody := "3f2f6a3e-0000-4000-8000-000000000000"
	b.wantError(b.post("/v1/workflows", `no json`), narya.CodeMalformed)
	b.wantError(b.post("/v1/workflows", `{}`), narya.CodeInvalid, "sessionId", "definition")
	b.wantError(b.post("/v1/workflows", `{"sessionId":7,"definition":"x"}`), narya.CodeInvalid, "sessionId")
	b.wantError(b.post("/v1/workflows", `{"sessionId":`+quote(nobody)+`,"definition":"x"}`), narya.CodeSessionNotFound)
	b.wantError(b.post("/v1/workflows", `{"sessionId":`+quote(session)+`,"definition":"x"}`), narya.CodeInvalid, "definition")
	b.wantError(b.get("/v1/workflows/"+nobody), narya.CodeWorkflowNotFound)
	b.wantError(b.get("/v1/workflows/x"), narya.CodeWorkflowNotFound)
	b.wantError(b.post("/v1/workflows/"+nobody+"/stop", ""), narya.CodeWorkflowNotFound)
	b.wantError(b.get("/v1/workflows?status=pending"), narya.CodeMalformed)
	b.wantError(b.get("/v1/workflows?cursor=x"), narya.CodeMalformed)
}

// TestWorkflowEnded: one that has ended in its own way cannot be stopped any more.
func TestWorkflowEnded(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		session := b.begun("s1")
		text := strings.Replace(twoSteps, "next: second", "next: over", 1)
		text = strings.Replace(text, "  second: {approval: {title: Continue}, next: over}\n", "", 1)
		run := b.want(b.post("/v1/workflows", `{"sessionId":`+quote(session)+`,"definition":`+quote(text)+`}`), 202).field("runId")
		synctest.Wait()
		if got := b.want(b.get("/v1/workflows/"+run), 200); got.field("status") != "completed" {
			t.Errorf("got %s", got)
		}
		b.wantError(b.post("/v1/workflows/"+run+"/stop", ""), narya.CodeWorkflowEnded)
	})
}

func TestExtensionEvents(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		session := b.begun("s1")
		all, one, both := b.stream("", ""), b.stream("sessionId="+session, ""), b.stream("hostEvents=true&sessionId="+session, "")
		synctest.Wait()
		b.want(b.post("/v1/extensions/events", `{"extension":"lab/review","name":"left","payload":{"files":[1.10,"é"]},"sessionId":`+quote(session)+`}`), 202)
		b.want(b.post("/v1/extensions/events", `{"extension":"lab/review","name":"done"}`), 202)
		for _, want := range []struct {
			from *reading
			n    int
		}{{all, 2}, {one, 1}, {both, 2}} {
			events := want.from.now()
			if len(events) != want.n || events[0].SessionID != session || string(events[0].Payload.(*narya.Extension).Payload) != `{"files":[1.10,"é"]}` {
				t.Fatalf("got %d events, want %d: %+v", len(events), want.n, events)
			}
			if want.n == 2 && (events[1].SessionID != "" || events[1].Payload.(*narya.Extension).Name != "done") {
				t.Errorf("of the host: %s", events[1].data)
			}
		}
	})
}

func TestExtensionEventsRefused(t *testing.T) {
	b := begin(t, bedOptions{})
	session := b.begun("s1")
	for body, field := range map[string]string{
		`{"name":"x"}`: "extension", `{"extension":"a/b"}`: "name", `{"extension":"A/b","name":"x"}`: "extension",
		`{"extension":"a/b/c","name":"x"}`: "extension", `{"extension":"a/b","name":"x\u0007"}`: "name",
		`{"extension":"a/b","name":` + quote(strings.Repeat("é", 129)) + `}`:                        "name",
		`{"extension":"a/b","name":"x","payload":[1]}`:                                              "payload",
		`{"extension":"a/b","name":"x","payload":{"a":` + quote(strings.Repeat("x", 70_000)) + `}}`: "payload",
		`{"extension":7,"name":"x"}`:                                                                "extension",
	} {
		b.wantError(b.post("/v1/extensions/events", body), narya.CodeInvalid, field)
	}
	b.wantError(b.post("/v1/extensions/events", `{"extension":"a/b","name":"x","sessionId":"~host"}`), narya.CodeSessionNotFound)
	b.wantError(b.post("/v1/extensions/events", `[]`), narya.CodeMalformed)
	if _, err := b.host.Do(t.Context(), access.Owner(), host.Request{Action: access.ArchiveSession, Session: "s1", Command: decide.Archive{}}); err != nil {
		t.Fatal(err)
	}
	b.wantError(b.post("/v1/extensions/events", `{"extension":"a/b","name":"x","sessionId":`+quote(session)+`}`), narya.CodeArchived)
	if mark := b.journal.Durable(); mark.Offset != 2 {
		t.Errorf("what was refused has left facts: %d, want 2", mark.Offset)
	}
}

// TestTasksAndOutput: an agent's plan is on the stream as a whole list, and what its tool
// prints as updates of the call, between its start and its end.
func TestTasksAndOutput(t *testing.T) {
	agents := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		plan := []facts.Planned{{ID: "1", Text: "look", Status: "completed"}, {ID: "2", Text: "mend", Status: "active"}}
		_ = h.Tasks(ctx, "", plan)
		id, _ := h.StartTool(ctx, agent.Tool{Name: "shell"})
		_ = h.ToolOutput(ctx, id, "ok\n")
		_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: "success"})
		_ = h.Tasks(ctx, "", nil)
		return done
	})
	bubble(t, bedOptions{agent: agents}, func(t *testing.T, b *bed) {
		session := b.begun("s1")
		stream := b.stream("sessionId="+session, "")
		_, err := b.host.Do(t.Context(), access.Owner(), host.Request{Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "go"}})
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, e := range stream.now() {
			switch p := e.Payload.(type) {
			case *narya.TaskList:
				told = append(told, "tasks")
				for _, one := range p.Tasks {
					told = append(told, one.Content+" "+string(one.Status))
				}
			case *narya.ToolCallStarted, *narya.ToolCallUpdate, *narya.ToolCallFinished:
				told = append(told, string(e.Type()))
			}
		}
		want := "tasks, look completed, mend in_progress, tool-call-started, tool-call-update, tool-call-finished, tasks"
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
