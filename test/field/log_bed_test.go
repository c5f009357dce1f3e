package field_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// logPrefix is the path of the headless contract below a host's address.
const logPrefix = "/api/harness/v1"

// headless sends one request of the headless contract. That there was no answer fails the
// test and does not end it, so that goroutines may use it.
func (b *bed) headless(method, path string, body any) answer {
	b.t.Helper()
	a, err := b.exchange(method, b.url+logPrefix+path, body)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

// starts starts a run by the headless contract; the input's id is its own.
func (b *bed) starts(sessionID, text string) (run string) {
	b.t.Helper()
	inputID := fmt.Sprint("start-", time.Now().UnixNano())
	a := b.headless(http.MethodPost, "/runs", object{"input_id": inputID, "session_id": sessionID, "text": text})
	if a.status != http.StatusCreated || a.field("run_id") == "" {
		b.fatalf("start: got %v, want 201 with a run", a)
	}
	return a.field("run_id")
}

// input is one of a run, complete.
func input(run, inputID string, body object) object {
	in := object{"version": harness.Version, "run_id": run, "input_id": inputID}
	for name, value := range body {
		in[name] = value
	}
	return in
}

// tell sends an input to a run.
func (b *bed) tell(run, inputID string, body object) answer {
	b.t.Helper()
	return b.headless(http.MethodPost, "/runs/"+run+"/inputs", input(run, inputID, body))
}

func decides(approval, decision string) object {
	return object{"type": "approval.resolve", "approval": object{"approval_id": approval, "decision": decision}}
}

func cancels(reason string) object { return object{"type": "run.cancel", "reason": reason} }

func submits(text string) object {
	return object{"type": "message.submit", "message": object{"text": text}}
}

func grants(credit int) object { return object{"type": "flow.credit", "credit": credit} }

// runLog is what a run's log is from a cursor on.
type runLog struct {
	lines  []string
	events []harness.Event
	next   string
	ended  bool
}

// logOf reads the log of a run behind a cursor, in batches, as far as it is there.
func (b *bed) logOf(run, cursor string) runLog {
	b.t.Helper()
	l := runLog{next: cursor}
	for batch := 1; !l.ended; batch = batch%7 + 1 {
		a := b.headless(http.MethodGet, fmt.Sprintf("/runs/%s/events?credit=%d&cursor=%s", run, batch*37, url.QueryEscape(l.next)), nil)
		if a.status != http.StatusOK {
			b.fatalf("the log of %s: %v", run, a)
		}
		items, _ := narad.Raw(a.body).Field("events").Elements()
		if len(items) > batch*37 {
			b.t.Errorf("%d records for a credit of %d", len(items), batch*37)
		}
		for _, item := range items {
			l.take(b.t, item)
		}
		l.next, l.ended = a.field("next_cursor"), a.field("ended") == "true"
		if len(items) == 0 {
			break
		}
	}
	return l
}

func (l *runLog) take(t *testing.T, line narad.Raw) {
	t.Helper()
	e, err := harness.Decode(line)
	if err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	l.lines, l.events = append(l.lines, string(line)), append(l.events, e)
}

// whole waits for the end of a run and returns its log, which must be sound by the strict
// rules, and say what the facts of its session say.
func (b *bed) whole(sessionID, run string) runLog {
	b.t.Helper()
	var l runLog
	b.eventually("the end of the log of "+run, func() bool { l = b.logOf(run, ""); return l.ended })
	b.sound(sessionID, run, l)
	return l
}

// sound demands of a log what the strict rules and the facts demand.
func (b *bed) sound(sessionID, run string, l runLog) {
	b.t.Helper()
	text := strings.Join(l.lines, "\n") + "\n"
	if _, err := harness.Check(strings.NewReader(text), func(f harness.Finding) error {
		if !f.Note {
			b.t.Errorf("the log of %s: line %d: %v", run, f.Line, f.Error)
		}
		return nil
	}); err != nil {
		b.t.Errorf("the log of %s: %v", run, err)
	}
	told, recorded := l.story(), storyOf(b.t, run, b.facts(sessionID))
	if !slices.Equal(told, recorded) {
		b.t.Errorf("the log of %s tells\n  %s\nthe facts say\n  %s", run, strings.Join(told, "\n  "), strings.Join(recorded, "\n  "))
	}
}

// story is what a log tells, one line for each thing.
func (l runLog) story() (lines []string) {
	for _, e := range l.events {
		word := func(name string) string { s, _ := e.Payload.Field(name).IsString(); return s }
		switch e.Type {
		case harness.RunStarted:
			lines = append(lines, "start")
		case harness.SubrunStarted, harness.SubrunCompleted:
			lines = append(lines, fmt.Sprintf("%s %s", e.Type, e.CorrelationID))
		case harness.MessageDelta, harness.MessageCompleted, harness.ReasoningDelta:
			if text := word("text"); text != "" {
				lines = append(lines, "text "+word("subrun_id")+" "+text)
			}
		case harness.ToolStarted, harness.ToolCompleted:
			lines = append(lines, fmt.Sprintf("%s %s", e.Type, word("call_id")))
		case harness.ApprovalRequested:
			lines = append(lines, "ask "+word("approval_id"))
		case harness.ApprovalResolved:
			lines = append(lines, "decide "+word("approval_id")+" "+word("decision"))
		case harness.RunCompleted, harness.RunCanceled:
			lines = append(lines, "end "+word("status"))
		}
	}
	return lines
}

// storyOf is what the facts of a run tell, in the same words.
func storyOf(t *testing.T, run string, raw []narad.Raw) (lines []string) {
	t.Helper()
	ends := map[narad.Type]string{narad.TypeRunFinished: "completed", narad.TypeRunError: "failed", narad.TypeRunCancelled: "canceled"}
	reduce(t, raw)
	stopped, gates := false, map[string]string{} // gate run -> the run that it asks for
	below := func(id string) string {
		if above := gates[id]; above != "" {
			id = above
		}
		if id == run {
			return ""
		}
		return id
	}
	for _, f := range decode(t, raw) {
		e := f.Envelope()
		if e.RootRunID != run || stopped && !(terminal(f) && e.RunID == run) {
			continue
		}
		switch f := f.(type) {
		case *narad.RunStarted:
			switch {
			case string(e.Optional("gate")) == "true":
				gates[e.RunID] = f.ParentRunID
			case e.RunID == run:
				lines = append(lines, "start")
			default:
				lines = append(lines, "subrun.started "+e.RunID)
			}
		case *narad.RunStopRequested:
			stopped = f.TargetRunID == run
		case *narad.MessageUserRecorded:
			lines = append(lines, "text "+below(e.RunID)+" "+f.Content)
		case *narad.MessageTextDelta:
			lines = append(lines, "text "+below(e.RunID)+" "+f.Delta)
		case *narad.ReasoningDelta:
			lines = append(lines, "text "+below(e.RunID)+" "+f.Delta)
		case *narad.ToolCallStarted:
			lines = append(lines, "tool.started "+f.ToolCallID)
		case *narad.ToolCallFinished:
			lines = append(lines, "tool.completed "+f.ToolCallID)
		case *narad.InterruptRequested:
			lines = append(lines, "ask "+f.InterruptID)
		case *narad.InterruptResolved:
			lines = append(lines, "decide "+f.InterruptID+" "+f.Decision)
		}
		switch {
		case !terminal(f) || gates[e.RunID] != "":
		case e.RunID == run:
			lines = append(lines, "end "+ends[f.Type()])
		default:
			lines = append(lines, "subrun.completed "+e.RunID)
		}
	}
	return lines
}

// of returns the records of a type.
func (l runLog) of(kind harness.Type) (events []harness.Event) {
	for _, e := range l.events {
		if e.Type == kind {
			events = append(events, e)
		}
	}
	return events
}

// payload reads that of a record.
func payload[T any](t *testing.T, e harness.Event) (p T) {
	t.Helper()
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		t.Fatalf("the payload of %+v: %v", e, err)
	}
	return p
}

// kinds are the types of the records.
func (l runLog) kinds() (kinds []harness.Type) {
	for _, e := range l.events {
		kinds = append(kinds, e.Type)
	}
	return kinds
}

// endsCanceled demands that behind a place nothing stands but the end of a run that was
// canceled.
func (l runLog) endsCanceled(t *testing.T, from int) {
	t.Helper()
	want := []harness.Type{harness.RunCanceled, harness.Checkpointed}
	if got := l.kinds()[min(from, len(l.events)):]; !slices.Equal(got, want) || !l.ended {
		t.Errorf("after the cancel: got %v, ended %v, want %v", got, l.ended, want)
	}
}

// awaitApproval waits for the n-th approval of a run, counted from 1, and returns its id.
func (b *bed) awaitApproval(run string, n int) (id string) {
	b.t.Helper()
	b.eventually(fmt.Sprint("approval ", n), func() bool {
		asked := b.logOf(run, "").of(harness.ApprovalRequested)
		if len(asked) < n {
			return false
		}
		id = asked[n-1].CorrelationID
		return true
	})
	return id
}

// following is a stream of a run's log.
type following struct {
	*runLog
	t      *testing.T
	body   *http.Response
	frames *sse.Reader
	ids    []string
}

// follow opens one; query is what stands behind the question mark.
func (b *bed) follow(address, run, query string) *following {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.context(), http.MethodGet, address+logPrefix+"/runs/"+run+"/stream?"+query, nil)
	b.must(err)
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.http.Do(req)
	b.must(err)
	b.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b.fatalf("the stream of %s: %d", run, resp.StatusCode)
	}
	return &following{runLog: &runLog{}, t: b.t, body: resp, frames: sse.NewReader(resp.Body, sse.Options{})}
}

// next waits for so many records; false at the end of the stream.
func (f *following) records(n int) bool {
	f.t.Helper()
	for range n {
		frame, err := f.frames.Next()
		if err != nil {
			return false
		}
		f.take(f.t, bytes.Clone(frame.Data))
		f.ids = append(f.ids, frame.ID)
	}
	return true
}

// position is the cursor behind the last record.
func (f *following) position() string { return f.ids[len(f.ids)-1] }

func (f *following) close() { f.body.Body.Close() }
