package naradhttp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/narad"
)

const flowFile = `workflow: 1
nodes:
  one: {agent: test, prompt: "{{/input/task}}", next: sure}
  sure: {approval: {title: "Go on?"}, next: end}
  end: {end: completed, output: "{{/one}}"}
`

// R19, §3.2: a workflow over HTTP. Its question is of its own scope, decided by its id
// alone, and the decision repeats the scope; attach names the workflow; its history has an
// order of its own.
func TestWorkflow(t *testing.T) {
	bubble(t, rigOptions{agent: speaks}, func(t *testing.T, r *rig) {
		r.create("s1")
		body := `{"sessionId":"s1","definition":` + narad.Quote(flowFile).String() + `,"input":{"task":"say"},"commandId":"c1"}`
		got := r.post("/commands/start-workflow", body)
		r.wantWord(got, 202, "accepted")
		workflow := got.field("workflowId")
		synctest.Wait()
		if again := r.post("/commands/start-workflow", body); again.field("workflowId") != workflow || workflow == "" {
			t.Errorf("the same command again: %s, want %s", again, workflow)
		}
		r.wantWord(r.post("/commands/start-workflow", `{"sessionId":"s1","definition":{"workflow":1,"nodes":{"end":{"end":"completed"}}}}`), 409, "conflict")
		if attach := r.get("/sessions/s1/attach"); !strings.Contains(attach.String(), `"activeWorkflowId":"`+workflow+`"`) {
			t.Errorf("attach names no workflow: %s", attach)
		}
		inbox := r.get("/interrupts").String()
		if !strings.Contains(inbox, `"scope":"workflow"`) || !strings.Contains(inbox, `"workflowId":"`+workflow+`"`) {
			t.Errorf("the inbox shows %s", inbox)
		}
		ask := between(inbox, `"interruptId":"`, `"`)
		r.wantWord(r.post("/commands/resolve-interrupt", `{"interruptId":"`+ask+`","decision":"approve"}`), 202, "accepted")
		synctest.Wait()
		all := r.get("/sessions/s1/events").String()
		for _, want := range []string{`"type":"workflow.finished"`, `"output":"Hello, world."`} {
			if !strings.Contains(all, want) {
				t.Errorf("the history lacks %s: %s", want, all)
			}
		}
		resolved := all[strings.Index(all, `"type":"interrupt.resolved"`):]
		if !strings.Contains(between(resolved, "", "}"), `"scope":"workflow"`) {
			t.Errorf("the decision does not repeat its scope: %s", resolved)
		}
		r.pagesOfWorkflow(workflow, strings.Count(all, `"workflowSequence":`))
	})
}

var workflowPlace = regexp.MustCompile(`"workflowSequence":(\d+)`)

// pagesOfWorkflow reads the history of a workflow in pages of two, and wants its own order
// to be dense.
func (r *rig) pagesOfWorkflow(workflow string, events int) {
	r.t.Helper()
	next := 0
	for after := 0; ; {
		page := r.get(fmt.Sprintf("/sessions/s1/events?workflowId=%s&afterWorkflowSequence=%d&limit=2", workflow, after)).String()
		for _, at := range workflowPlace.FindAllStringSubmatch(page, -1) {
			if next++; at[1] != fmt.Sprint(next) {
				r.t.Errorf("event %d of the workflow says %s", next, at[1])
			}
		}
		if strings.Contains(page, `"nextWorkflowSequence":null`) {
			break
		}
		if after += 2; after > events {
			r.t.Fatalf("the history of the workflow has no end: %s", page)
		}
	}
	if next != events || events == 0 {
		r.t.Errorf("%d events in the order of the workflow, want %d", next, events)
	}
}

// between returns what stands between two marks.
func between(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, _ = strings.Cut(text, to)
	return text
}

// A definition that cannot be run is refused with the place of the fault, and changes
// nothing; a body that is none is no command.
func TestWorkflowDefinitions(t *testing.T) {
	bubble(t, rigOptions{agent: speaks}, func(t *testing.T, r *rig) {
		r.create("s1")
		refused := r.post("/commands/start-workflow", `{"sessionId":"s1","definition":"workflow: 1\nnodes:\n  a: {agent: nobody, prompt: x, next: b}\n  b: {end: completed}"}`)
		r.wantWord(refused, 422, "rejected")
		if refused.field("detail") != `no agent has the name "nobody"` {
			t.Errorf("got %s", refused)
		}
		wrong := r.post("/commands/start-workflow", `{"sessionId":"s1","definition":"workflow: 1\nnodes:\n  a: {next: a}"}`)
		if r.wantWord(wrong, 422, "rejected"); !strings.HasPrefix(wrong.field("detail"), "workflow:3: the node a must have exactly one of") {
			t.Errorf("got %s", wrong)
		}
		r.wantWord(r.post("/commands/start-workflow", `{"sessionId":"none","definition":{}}`), 404, "not_found")
		r.want(r.post("/commands/start-workflow", `{"sessionId":"s1","definition":7}`), 400)
		r.want(r.post("/commands/start-workflow", `{"sessionId":"s1"}`), 400)
		r.want(r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"a","workflowId":"b"}`), 400)
		if n := strings.Count(r.get("/sessions/s1/events").String(), `"type"`); n != 1 {
			t.Errorf("%d facts, want the session's first alone", n)
		}
		r.wantWord(r.post("/commands/start-workflow", `{"sessionId":"s1","definition":{"workflow":1,"nodes":{"end":{"end":"failed","code":"never"}}}}`), 202, "accepted")
		synctest.Wait()
		if got := r.get("/sessions/s1/events").String(); !strings.Contains(got, `"code":"never"`) {
			t.Errorf("got %s", got)
		}
	})
}
