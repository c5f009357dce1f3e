package field_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mahati-host/mahati/harness"
)

// Case 21, on both contracts at once. Owed: of all who answer, by inputs and by commands, one
// decides; each of the others learns what was decided, whichever way it asked.
func TestCase21AnsweredTwiceOnTwoContracts(t *testing.T) {
	t.Parallel()
	b := newBed(t, askings["the permission of a tool"])
	b.session("s1")
	run := b.starts("s1", "go")
	id := b.awaitApproval(run, 1)

	const clients = 50
	words := []string{"approve", "deny"}
	answers := make([]answer, clients)
	answerAs := func(i int) answer {
		if i%4 < 2 {
			return b.tell(run, fmt.Sprint("click-", i), decides(id, words[i%2]))
		}
		return b.try(http.MethodPost, "/commands/resolve-interrupt", object{"interruptId": id, "decision": words[i%2], "commandId": fmt.Sprint("click-", i)})
	}
	var ready, all sync.WaitGroup
	ready.Add(clients)
	for i := range clients {
		all.Go(func() {
			ready.Done()
			ready.Wait()
			answers[i] = answerAs(i)
		})
	}
	all.Wait()
	winner := slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusAccepted })
	if winner < 0 {
		t.Fatalf("nobody was accepted: %v", answers)
	}
	decision := words[winner%2]
	for i, a := range answers {
		want := map[bool]int{true: http.StatusOK, false: http.StatusConflict}[i%2 == winner%2]
		if i == winner {
			want = http.StatusAccepted
		}
		if a.status != want || a.field("decision") != decision {
			t.Errorf("client %d, who said %s: got %v, want %d and %s", i, words[i%2], a, want, decision)
		}
	}
	l := b.whole("s1", run)
	resolved := l.of(harness.ApprovalResolved)
	if len(resolved) != 1 || !strings.Contains(string(resolved[0].Payload), `"`+decision+`"`) {
		t.Errorf("decided: %v, want once %s", resolved, decision)
	}
	b.restart()
	if a := answerAs(winner); a.status/100 != 2 || a.field("decision") != decision {
		t.Errorf("the winner again: got %v", a)
	}
	if after := b.logOf(run, ""); !slices.Equal(after.lines, l.lines) {
		t.Error("the log is another after a restart")
	}
}

// Case 22, by inputs. Owed: what names no approval that is pending in that run is refused,
// and nothing is recorded anywhere.
func TestCase22NoSuchApproval(t *testing.T) {
	t.Parallel()
	b := newBed(t, askings["a question of the run"])
	b.session("s1")
	b.session("s2")
	run, other := b.starts("s1", "go"), b.starts("s2", "go")
	id, foreign := b.awaitApproval(run, 1), b.awaitApproval(other, 1)
	refused := func(when, approval string, want int) {
		t.Helper()
		heads := [2]int64{b.head("s1"), b.head("s2")}
		if a := b.tell(run, "x", decides(approval, "approve")); a.status != want || a.field("code") != "approval_boundary" {
			t.Errorf("%s: got %v, want %d approval_boundary", when, a, want)
		}
		if now := [2]int64{b.head("s1"), b.head("s2")}; now != heads {
			t.Errorf("%s: the sessions moved from %v to %v", when, heads, now)
		}
	}
	refused("an id that nothing has", "0195a3c0-0000-7000-8000-000000000000", http.StatusNotFound)
	refused("the approval of another run", foreign, http.StatusNotFound)
	refused("the run's own id", run, http.StatusNotFound)
	if a := b.tell(other, "x", decides(id, "approve")); a.status != http.StatusNotFound {
		t.Errorf("through another run: got %v", a)
	}
	if a := b.tell("no-run", "x", decides(id, "approve")); a.status != http.StatusNotFound {
		t.Errorf("through no run: got %v", a)
	}
	if a := b.tell(run, "d", decides(id, "deny")); a.status != http.StatusAccepted {
		t.Fatalf("deny: %v", a)
	}
	b.whole("s1", run)
	refused("what was decided otherwise", id, http.StatusConflict)
	if got := b.open("s2"); !slices.Equal(got, []string{foreign}) {
		t.Errorf("the inbox is %v, want the other question alone", got)
	}
}

// Case 24, by inputs. Owed: a decision is for the approval that it names; the others of the
// same run stay pending and are decided in any order.
func TestCase24OneDecisionOneApproval(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - parallel:
      - [{agent: {name: a, tool: task, steps: [{tool: {name: one, permit: {title: One}}}]}}]
      - [{agent: {name: b, tool: task, steps: [{tool: {name: two, permit: {title: Two}}}]}}]
      - [{agent: {name: c, tool: task, steps: [{tool: {name: three, permit: {title: Three}}}]}}]
`)
	b.session("s1")
	run := b.starts("s1", "go")
	b.awaitApproval(run, 3)
	var ids []string
	tools := map[string]string{} // approval -> call
	for _, e := range b.logOf(run, "").of(harness.ApprovalRequested) {
		asked := payload[struct {
			harness.Approval
			harness.In
			CallID string `json:"call_id"`
		}](t, e)
		if asked.SubrunID == "" || asked.Status != "pending" {
			t.Errorf("the approval %+v is not told to be of a nested run, and pending", asked)
		}
		ids, tools[asked.ApprovalID] = append(ids, asked.ApprovalID), asked.CallID
	}
	if a := b.tell(run, "d-1", decides(ids[1], "deny")); a.status != http.StatusAccepted {
		t.Fatalf("deny: %v", a)
	}
	b.eventually("the end of the call that was denied", func() bool { return len(b.logOf(run, "").of(harness.ToolCompleted)) > 0 })
	l := b.logOf(run, "")
	if resolved := l.of(harness.ApprovalResolved); len(resolved) != 1 || resolved[0].CorrelationID != ids[1] || resolved[0].CausationID != "d-1" {
		t.Errorf("decided: %+v, want %s alone", resolved, ids[1])
	}
	if got := b.open("s1"); !slices.Equal(got, []string{ids[0], ids[2]}) {
		t.Errorf("pending: %v, want %v without the second", got, ids)
	}
	for _, id := range []string{ids[2], ids[0]} {
		if a := b.tell(run, "a-"+id, decides(id, "approve")); a.status != http.StatusAccepted {
			t.Fatalf("approve: %v", a)
		}
	}
	l = b.whole("s1", run)
	status := map[string]string{}
	for _, e := range l.of(harness.ToolCompleted) {
		call := payload[harness.Tool](t, e)
		status[call.CallID] = call.Status
	}
	if status[tools[ids[1]]] == status[tools[ids[0]]] || status[tools[ids[0]]] != status[tools[ids[2]]] {
		t.Errorf("the calls ended %v: the one that was denied must differ", slices.Collect(maps.Values(status)))
	}
}

// Case 27, by inputs. Owed: there are two words, exactly spelled; another is refused, and the
// approval can still be decided. The scope is empty or the one that was declared.
func TestCase27NoSuchWord(t *testing.T) {
	t.Parallel()
	b := newBed(t, askings["the permission of a tool"])
	b.session("s1")
	run := b.starts("s1", "go")
	id := b.awaitApproval(run, 1)
	head := b.head("s1")
	for _, word := range []any{"yes", "", "APPROVE", "approve ", "approve_always", "expired", "stop", nil, true, 1, []string{"approve"}} {
		a := b.tell(run, "x", object{"type": "approval.resolve", "approval": object{"approval_id": id, "decision": word}})
		if a.status != http.StatusBadRequest || a.field("code") != "invalid_input" {
			t.Errorf("decision %v: got %v, want 400 invalid_input", word, a)
		}
	}
	wider := object{"type": "approval.resolve", "approval": object{"approval_id": id, "decision": "approve", "scope": "everything"}}
	if a := b.tell(run, "x", wider); a.status != http.StatusUnprocessableEntity || a.field("code") != "scope_exceeded" {
		t.Errorf("a wider scope: got %v", a)
	}
	for _, version := range []string{"", "fak.harness.run/v2", "FAK.HARNESS.RUN/V1"} {
		in := input(run, "x", decides(id, "approve"))
		in["version"] = version
		if a := b.headless(http.MethodPost, "/runs/"+run+"/inputs", in); a.status != http.StatusBadRequest {
			t.Errorf("version %q: got %v", version, a)
		}
	}
	if now := b.head("s1"); now != head {
		t.Errorf("refusals moved the session from %d to %d", head, now)
	}
	if a := b.tell(run, "x", decides(id, "approve")); a.status != http.StatusAccepted {
		t.Errorf("approve: got %v", a)
	}
	b.whole("s1", run)
}

// Cases 30 and 31 are told by the log itself: who comes later with nothing but a token reads
// from the empty cursor what is pending, and decides it.
func TestCase30PendingFromTheEmptyCursor(t *testing.T) {
	t.Parallel()
	b := newBed(t, waitings["an approval"].with("1h"))
	b.session("s1")
	run := b.starts("s1", "go")
	first := b.follow(b.url, run, "credit=100")
	for len(first.of(harness.ApprovalRequested)) == 0 && first.records(1) {
	}
	first.close()
	late := b.as(b.run("token", "create", "--name", "late", "--role", "observe,decide"))
	l := late.logOf(run, "")
	asked := l.of(harness.ApprovalRequested)
	if len(asked) != 1 || !slices.Equal(l.lines, first.lines) {
		t.Fatalf("got %v, want what the first client saw: %v", l.lines, first.lines)
	}
	approval := payload[struct {
		harness.Approval
		Actions   []string `json:"actions"`
		ExpiresAt string   `json:"expires_at"`
	}](t, asked[0])
	if approval.Status != "pending" || approval.ExpiresAt == "" || !slices.Equal(approval.Actions, []string{"approve", "deny"}) || approval.Prompt != "Release?" {
		t.Errorf("got %+v", approval)
	}
	if a := late.tell(run, "a", decides(approval.ApprovalID, "approve")); a.status != http.StatusAccepted {
		t.Fatalf("approve: %v", a)
	}
	if n := len(b.whole("s1", run).of(harness.ApprovalRequested)); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// Case 31. Owed: what was pending before the host died is pending under the same id, and is
// not asked again; the log goes on where it was.
func TestCase31PendingAfterARestart(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"an approval", "a permission", "a choice"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, waitings[name].with(""))
			b.session("s1")
			run := b.starts("s1", "go")
			id := b.awaitApproval(run, 1)
			before := b.logOf(run, "")
			b.restart()
			after := b.logOf(run, "")
			if !slices.Equal(after.lines, before.lines) || after.ended {
				t.Errorf("after the restart the log is\n%s\nit was\n%s", strings.Join(after.lines, "\n"), strings.Join(before.lines, "\n"))
			}
			if more := b.logOf(run, before.next); len(more.lines) > 0 || more.next != before.next {
				t.Errorf("behind the old cursor: %v", more.lines)
			}
			decision := "approve"
			if name == "a choice" { // which recommends nothing
				if a := b.tell(run, "x", decides(id, "approve")); a.field("code") != "decision_not_offered" {
					t.Errorf("approve: got %v", a)
				}
				decision = "deny"
			}
			if a := b.tell(run, "a", decides(id, decision)); a.status != http.StatusAccepted {
				t.Fatalf("%s: %v", decision, a)
			}
			l := b.whole("s1", run)
			if asked, done := l.of(harness.ApprovalRequested), l.of(harness.ApprovalResolved); len(asked) != 1 || len(done) != 1 || done[0].CorrelationID != id {
				t.Errorf("asked %+v, decided %+v", asked, done)
			}
		})
	}
}

// Case 36. Owed: a cancel ends what is pending with the run. Nothing stands in the log behind
// it but the end, and a decision that comes late is refused, by the next host too.
func TestCase36CancelWithAnApprovalPending(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - tool: {name: one, run: "echo one >> ran", permit: true}
  - tool: {name: two, run: "echo two >> ran", permit: true}
`)
	dir := b.session("s1")
	run := b.starts("s1", "go")
	id := b.awaitApproval(run, 1)
	before := len(b.logOf(run, "").lines)
	if a := b.tell(run, "stop", cancels("not now")); a.status != http.StatusAccepted {
		t.Fatalf("cancel: %v", a)
	}
	l := b.whole("s1", run)
	l.endsCanceled(t, before)
	for _, when := range []string{"late", "after a restart"} {
		head := b.head("s1")
		if a := b.tell(run, "a-1", decides(id, "approve")); a.status != http.StatusGone && a.status != http.StatusConflict {
			t.Errorf("%s: got %v, want 410 or 409", when, a)
		}
		if now := b.head("s1"); now != head || len(b.open("s1")) > 0 {
			t.Errorf("%s: the session moved from %d to %d, or the inbox is %v", when, head, now, b.open("s1"))
		}
		if after := b.logOf(run, ""); !slices.Equal(after.lines, l.lines) {
			t.Errorf("%s: the log is another", when)
		}
		b.restart()
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
		t.Errorf("tools ran: %q", ran)
	}
}
