package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/conformance"
)

// sabotage is one fault that a host may have.
type sabotage struct {
	check string
	// fault says what is wrong, and says is a part of what the check must say of it.
	fault, says string
	spoiler     func() spoiler
}

// TestEachCheckFails: under its sabotage a check fails, and says why.
func TestEachCheckFails(t *testing.T) {
	spoiled := map[string]bool{}
	for i, s := range sabotages {
		spoiled[s.check] = true
		t.Run(s.check+"/"+strings.ReplaceAll(s.fault, " ", "_"), func(t *testing.T) {
			t.Parallel()
			broken := target(front(t, s.spoiler()), s.check)
			broken.Executor = fmt.Sprintf("executor-%d", i) // each its own: they supersede one another
			report, err := conformance.Run(t.Context(), broken)
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) != 1 {
				t.Fatalf("got %d results for the check %s", len(report.Results), s.check)
			}
			got := report.Results[0]
			if notOffered(got) {
				t.Skip(got.Detail)
			}
			if got.Outcome != conformance.Fail || !strings.Contains(got.Detail, s.says) {
				t.Errorf("the host has the fault %q: got %s %q, want fail with %q", s.fault, got.Outcome, got.Detail, s.says)
			}
			if strings.Contains(got.Detail, running.token) {
				t.Errorf("the report has the token in it: %s", got.Detail)
			}
		})
	}
	for _, c := range conformance.Checks() {
		if !spoiled[c.Name] {
			t.Errorf("nothing shows that the check %s can fail", c.Name)
		}
	}
}

// TestProxyIsHonest: without a sabotage the way through the proxy changes nothing.
func TestProxyIsHonest(t *testing.T) {
	honest := spoiler{
		ask:   func(_ *http.Request, body string) string { return body },
		say:   func(*http.Request, *said) {},
		frame: func(_ *http.Request, frame string) []string { return []string{frame} },
	}
	report, err := conformance.Run(t.Context(), target(front(t, honest), "facts.", "stream.", "executor."))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Outcome != conformance.Pass {
			t.Errorf("%s: got %s: %s", r.Check, r.Outcome, r.Detail)
		}
	}
}

// says replaces a text in the answers to requests whose path ends so.
func says(path, old, by string) func() spoiler {
	return func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if strings.HasSuffix(r.URL.Path, path) {
				a.body = strings.ReplaceAll(a.body, old, by)
			}
		}}
	}
}

// fact replaces a text in facts of a type, in history alone.
func fact(kind, old, by string) func() spoiler {
	return func() spoiler {
		pattern := regexp.MustCompile(old)
		return spoiler{say: func(_ *http.Request, a *said) {
			a.facts(func(text string) string {
				if strings.Contains(text, `"type":"`+kind) {
					return pattern.ReplaceAllString(text, by)
				}
				return text
			})
		}}
	}
}

// asks replaces a text in the bodies of requests.
func asks(old, by string) func() spoiler {
	return func() spoiler {
		pattern := regexp.MustCompile(old)
		return spoiler{ask: func(_ *http.Request, body string) string { return pattern.ReplaceAllString(body, by) }}
	}
}

// status gives a status for another one.
func status(path string, old, by int) func() spoiler {
	return func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if strings.Contains(r.URL.Path, path) && a.status == old {
				a.status = by
			}
		}}
	}
}

// query changes the query of requests whose path ends so.
func query(path string, change func(q map[string][]string)) func() spoiler {
	return func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if strings.HasSuffix(r.URL.Path, path) {
				q := r.URL.Query()
				change(q)
				r.URL.RawQuery = q.Encode()
			}
			return body
		}}
	}
}

// sessionFrames changes the n-th frame with a fact of each session's stream, from 1.
func sessionFrames(n int, change func(frame string) []string) func() spoiler {
	return func() spoiler {
		var mu sync.Mutex
		seen := map[*http.Request]int{}
		return spoiler{frame: func(r *http.Request, frame string) []string {
			if !strings.Contains(r.URL.Path, "/sessions/") || !strings.Contains(frame, `"sessionSequence"`) {
				return []string{frame}
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[r]++; seen[r] != n {
				return []string{frame}
			}
			return change(frame)
		}}
	}
}

func twice(frame string) []string { return []string{frame, frame} }
func never(string) []string       { return nil }

// heartbeats changes the heartbeats of streams.
func heartbeats(change func(frame string) []string) func() spoiler {
	return func() spoiler {
		return spoiler{frame: func(_ *http.Request, frame string) []string {
			if strings.Contains(frame, `"server.heartbeat"`) {
				return change(frame)
			}
			return []string{frame}
		}}
	}
}

// executes changes the execute controls of an executor's stream; n counts them from 1.
func executes(change func(n int, frame string) []string) func() spoiler {
	return func() spoiler {
		n := 0
		return spoiler{frame: func(_ *http.Request, frame string) []string {
			if !strings.Contains(frame, `"client.tool.execute"`) {
				return []string{frame}
			}
			n++
			return change(n, frame)
		}}
	}
}

// remembered keeps what a pattern found last in answers and frames.
type remembered struct {
	mu      sync.Mutex
	pattern *regexp.Regexp
	last    string
}

func remember(pattern string) *remembered { return &remembered{pattern: regexp.MustCompile(pattern)} }

func (m *remembered) see(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.pattern.FindStringSubmatch(text); found != nil {
		m.last = found[1]
	}
}

func (m *remembered) get() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// anyLease takes every lease for the newest.
func anyLease() spoiler {
	newest := remember(`"leaseId":"([^"]*)"`)
	return spoiler{
		say: func(r *http.Request, a *said) {
			if strings.HasSuffix(r.URL.Path, "/attach") {
				newest.see(a.body)
			}
		},
		ask: func(r *http.Request, body string) string {
			if r.Header.Get("Narad-Lease") != "" && newest.get() != "" {
				r.Header.Set("Narad-Lease", newest.get())
			}
			return regexp.MustCompile(`"leaseId":"[^"]*"`).ReplaceAllString(body, `"leaseId":"`+newest.get()+`"`)
		},
	}
}

// fromFrames puts what the last execute control has in a field into the same field of
// each finish.
func fromFrames(field string) func() spoiler {
	return func() spoiler {
		seen := remember(`"` + field + `":"([^"]*)"`)
		return spoiler{
			frame: func(_ *http.Request, frame string) []string {
				if strings.Contains(frame, `"client.tool.execute"`) {
					seen.see(frame)
				}
				return []string{frame}
			},
			ask: func(_ *http.Request, body string) string {
				if strings.Contains(body, "client.tool.finish") {
					return regexp.MustCompile(`"`+field+`":"[^"]*"`).ReplaceAllString(body, `"`+field+`":"`+seen.get()+`"`)
				}
				return body
			},
		}
	}
}

// direct sends a command to the host itself.
func direct(command, body string) {
	q, err := http.NewRequest(http.MethodPost, running.url.String()+conformance.Prefix+"/commands/"+command, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	q.Header.Set("Authorization", "Bearer "+running.token)
	if a, err := http.DefaultClient.Do(q); err == nil {
		a.Body.Close()
	}
}

// sabotages are the faults, in the order of the checks.
var sabotages = []sabotage{
	{"capabilities.answer", "another protocol", "the protocol is", says("/capabilities", "narad/v1", "narad/v2")},
	{"capabilities.answer", "a profile nobody knows", "no profile", says("/capabilities", "narad.ui/v1", "narad.gui/v1")},
	{"capabilities.answer", "no epoch", "no epoch", says("/capabilities", `"epoch"`, `"era"`)},
	{"auth.required", "history for everybody", "want 401", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if strings.HasSuffix(r.URL.Path, "/events") {
				r.Header.Set("Authorization", "Bearer "+running.token)
			}
			return body
		}}
	}},
	{"auth.required", "a token in the URL", "want 401", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if token := r.URL.Query().Get("access_token"); token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
				r.URL.RawQuery = ""
			}
			return body
		}}
	}},
	{"errors.problem", "a status member", "no member status", says("", `{"code"`, `{"status":"not_found","code"`)},
	{"errors.problem", "plain JSON", "content type", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if a.status >= 400 {
				a.header.Set("Content-Type", "application/json")
			}
		}}
	}},
	{"errors.sanitised", "the request in the refusal", "repeats a value", func() spoiler {
		var sent string
		return spoiler{
			ask: func(_ *http.Request, body string) string { sent = body; return body },
			say: func(_ *http.Request, a *said) {
				if a.status == http.StatusBadRequest {
					a.object(func(o map[string]any) { o["detail"] = "cannot read " + sent })
				}
			},
		}
	}},
	{"errors.method", "no Allow", "Allow is", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) { a.header.Del("Allow") }}
	}},
	{"input.json", "names twice", "want 400", asks(`^{"sessionId":"a","sessionId":"b"}$`, `{"sessionId":"a"}`)},
	{"input.json", "any depth", "want 400", asks(`\[{70}\]{70}`, `[]`)},
	{"input.size", "a body too large is malformed", "want 413", status("", 413, 400)},
	{"input.ids", "spaces in ids", "want a refusal", asks(`"a b"`, `"a-b"`)},
	{"session.create", "made twice", "want 200", status("/sessions", 200, 201)},
	{"session.unknown", "every session has a page", "want 404", status("/events", 404, 200)},
	{"session.list", "one left out", "is not in the list", func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if items := `{"items":[`; strings.HasSuffix(r.URL.Path, "/sessions") && strings.Contains(a.body, items) {
				a.object(func(o map[string]any) { o["items"] = o["items"].([]any)[1:] })
			}
		}}
	}},
	{"session.list", "one twice", "in the list twice", func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if items := `{"items":[`; strings.HasSuffix(r.URL.Path, "/sessions") && strings.Contains(a.body, items) {
				a.object(func(o map[string]any) { list := o["items"].([]any); o["items"] = []any{list[0], list[0]} })
			}
		}}
	}},
	{"session.delete", "gone without a trace", "want 410", status("/sessions", 410, 404)},
	{"attach.answer", "a boundary beyond the head", "boundarySessionSequence", says("/attach", `"boundarySessionSequence":`, `"boundarySessionSequence":1`)},
	{"attach.answer", "an active run that is none", "active run", says("/attach", `"historyLimit"`, `"activeRootRunId":"r","historyLimit"`)},
	{"attach.active", "no active run", "does not name", says("/attach", "activeRootRunId", "running")},
	{"attach.profiles", "any claim is taken", "want 409", query("/attach", func(q map[string][]string) {
		if q["profiles"] != nil {
			q["unclaimed"] = []string{"skip"}
		}
	})},
	{"facts.strict", "a resume of another wait", "wait_mismatch", fact("run.resumed", `"waitId":"[^"]*"`, `"waitId":"other"`)},
	{"facts.strict", "an outcome that is none", "outcome", fact("tool.call.finished", `"outcome":"success"`, `"outcome":"done"`)},
	{"facts.order", "a hole in the run tree", "another sequence", fact("tool.call.started", `"sequence":\d+`, `"sequence":99`)},
	{"facts.order", "a hole in the session", "another sessionSequence", fact("run.finished", `"sessionSequence":\d+`, `"sessionSequence":99`)},
	{"facts.identity", "one id twice", "is there twice", fact("", `"eventId":"[^"]*"`, `"eventId":"1.AAAAAAAA"`)},
	{"facts.identity", "other bytes each time", "other bytes", func() spoiler {
		n := 0
		return spoiler{say: func(_ *http.Request, a *said) {
			n++
			a.facts(func(text string) string { return strings.TrimSuffix(text, "}") + fmt.Sprintf(`,"read":%d}`, n) })
		}}
	}},
	{"facts.text", "normalised", "recorded as", fact("message.user.recorded", "e\u0301", "\u00e9")},
	{"facts.text", "a character cut", "agent's text", fact("message.text.delta", "⚓", "\ufffd")},
	{"history.paging", "a cursor that skips", "leads to", func() spoiler {
		next := regexp.MustCompile(`"nextSessionSequence":(\d+)`)
		return spoiler{say: func(_ *http.Request, a *said) { a.body = next.ReplaceAllString(a.body, `"nextSessionSequence":${1}0`) }}
	}},
	{"history.paging", "no cursor at the end", "not even null", says("/events", `,"nextSessionSequence":null`, "")},
	{"history.paging", "more promised at the head", "", says("/events", `"nextSessionSequence":null`, `"nextSessionSequence":1`)},
	{"history.limit", "limit 0 is all", "brought to 1", query("/events", func(q map[string][]string) {
		if len(q["limit"]) > 0 && q["limit"][0] == "0" {
			q["limit"] = []string{"100"}
		}
	})},
	{"history.cursor", "an empty page above the head", "want 409", status("/events", 409, 200)},
	{"history.run", "a fact left out", "by itself", func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if r.URL.Query().Get("rootRunId") != "" {
				a.object(func(o map[string]any) { o["events"] = o["events"].([]any)[1:] })
			}
		}}
	}},
	{"history.conflict", "the session's cursor ignored", "want 409", query("/events", func(q map[string][]string) {
		if q["rootRunId"] != nil {
			delete(q, "afterSessionSequence")
		}
	})},
	{"history.headers", "no active run", "Narad-Active-Root", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) { a.header.Del("Narad-Active-Root") }}
	}},
	{"stream.frames", "a fact without id", "a frame has the id", sessionFrames(2, func(f string) []string {
		return []string{f[strings.Index(f, "data:"):]}
	})},
	{"stream.frames", "an event field", "the field", sessionFrames(2, func(f string) []string { return []string{"event: fact\n" + f} })},
	{"stream.frames", "two data lines", "several data lines", sessionFrames(2, func(f string) []string { return []string{f + "\ndata: {}"} })},
	{"stream.frames", "a control among the facts", "carries a", sessionFrames(2, func(f string) []string {
		return []string{`data: {"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":"x","leaseId":"x"}`, f}
	})},
	{"stream.replay", "a frame dropped", "differs from history", sessionFrames(2, never)},
	{"stream.live", "a frame repeated", "differs from history", sessionFrames(6, twice)},
	{"stream.live", "two frames exchanged", "differs from history", func() spoiler {
		held := ""
		return sessionFramesFrom(5, func(f string) []string {
			switch {
			case held == "":
				held = f
				return nil
			case held == "-":
				return []string{f}
			}
			first := held
			held = "-"
			return []string{f, first}
		})
	}},
	{"stream.once", "the second reader misses one", "reader's stream", func() spoiler {
		var mu sync.Mutex
		var readers []*http.Request
		dropped := false
		return spoiler{frame: func(r *http.Request, frame string) []string {
			mu.Lock()
			defer mu.Unlock()
			if len(readers) == 0 || readers[0] != r && len(readers) == 1 {
				readers = append(readers, r)
			}
			if len(readers) == 2 && readers[1] == r && strings.Contains(frame, `"run.started"`) && !dropped {
				dropped = true
				return nil
			}
			return []string{frame}
		}}
	}},
	{"stream.resume", "Last-Event-ID ignored", "differs from history", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string { r.Header.Del("Last-Event-ID"); return body }}
	}},
	{"stream.resume", "the query beats Last-Event-ID", "differs from history", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if r.URL.Query().Has("afterSessionSequence") {
				r.Header.Del("Last-Event-ID")
			}
			return body
		}}
	}},
	{"stream.unknown", "an unknown id means the beginning", "want 409", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string { r.Header.Del("Last-Event-ID"); return body }}
	}},
	{"stream.heartbeat", "no heartbeats", "no heartbeat comes", heartbeats(never)},
	{"stream.heartbeat", "a heartbeat with an id", "has the id", heartbeats(func(f string) []string { return []string{"id: 7\n" + f} })},
	{"stream.silent", "the header comes late", "header of a silent stream", func() spoiler {
		return spoiler{serve: func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if strings.HasSuffix(r.URL.Path, "/stream") {
				<-time.After(1500 * time.Millisecond)
			}
			next(w, r)
		}}
	}},
	{"stream.leave", "leaving stops the run", "", func() spoiler {
		return spoiler{serve: func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			if session, ok := strings.CutSuffix(r.URL.Path, "/stream"); ok {
				defer direct("stop-active-root", `{"sessionId":"`+session[strings.LastIndex(session, "/")+1:]+`"}`)
			}
			next(w, r)
		}}
	}},
	{"command.message", "another run named", "the run", says("/commands/message", `"runId":"`, `"runId":"x`)},
	{"command.once", "command ids ignored", "as before", asks(`,"commandId":"[^"]*"`, "")},
	{"command.other", "the first answer for any content", "want the status", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if a.status == http.StatusConflict {
				a.status, a.body = http.StatusAccepted, strings.Replace(a.body, "conflict", "accepted", 1)
			}
		}}
	}},
	{"command.unknown", "a problem document", "want the status", says("/commands/resolve-interrupt", `"status":"not_found"`, `"code":"not_found"`)},
	{"command.unknown", "another code than the word's", "want 404", status("/commands", 404, 422)},
	{"command.refused", "an empty message is taken", "want a refusal", asks(`"content":""`, `"content":"conformance: speak"`)},
	{"command.busy", "reject means queue", "want the status", asks(`"whenBusy":"reject"`, `"whenBusy":"queue"`)},
	{"command.queue", "queued messages run twice", "messages began", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if strings.Contains(body, "conformance: speak") {
				direct("message", body)
			}
			return body
		}}
	}},
	{"stop.root", "a stopped run finishes", "ended as", fact("run.cancelled", `"type":"run.cancelled"`, `"type":"run.finished"`)},
	{"stop.root", "the stop is not recorded", "was recorded as", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			a.facts(func(text string) string {
				if strings.Contains(text, `"type":"run.stop.requested"`) {
					return ""
				}
				return text
			})
		}}
	}},
	{"stop.late", "any stop hits what is active", "want the status", asks(`,"rootRunId":"[^"]*"`, "")},
	{"interrupt.pause", "a pause of another wait", "another waitId", fact("run.paused", `"waitId":"[^"]*"`, `"waitId":"other"`)},
	{"interrupt.pause", "a fact between", "is followed by", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			a.facts(func(text string) string {
				if strings.Contains(text, `"type":"run.paused"`) {
					return strings.Replace(text, "run.paused", "run.custom", 1) + "," + text
				}
				return text
			})
		}}
	}},
	{"interrupt.inbox", "an empty inbox", "not in the inbox", says("/interrupts", `"items":[{`, `"items":[],"others":[{`)},
	{"interrupt.decide", "decided otherwise", "", asks(`"decision":"approve"`, `"decision":"deny"`)},
	{"interrupt.decide", "the reason forgotten", "recorded as", asks(`,"reason":"read it"`, "")},
	{"interrupt.once", "a second decision is accepted", "want the status", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if a.status == http.StatusConflict {
				a.status, a.body = http.StatusAccepted, strings.Replace(a.body, "conflict", "accepted", 1)
			}
		}}
	}},
	{"interrupt.once", "the loser is not told", "is told", func() spoiler {
		return spoiler{say: func(r *http.Request, a *said) {
			if strings.HasSuffix(r.URL.Path, "/resolve-interrupt") && a.status != http.StatusAccepted {
				a.object(func(o map[string]any) { delete(o, "decision") })
			}
		}}
	}},
	{"interrupt.race", "two are accepted", "want one accepted", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if strings.Contains(a.body, "already_applied") {
				a.status, a.body = http.StatusAccepted, strings.Replace(a.body, "already_applied", "accepted", 1)
			}
		}}
	}},
	{"interrupt.offered", "any word is a yes", "want the status", asks(`"decision":"maybe"`, `"decision":"approve"`)},
	{"interrupt.revision", "expectedRevision ignored", "want the status", asks(`,"expectedRevision":\d+`, "")},
	{"interrupt.expiry", "expired is a conflict", "want the status", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if a.status == http.StatusGone {
				a.status, a.body = http.StatusConflict, strings.Replace(a.body, `"status":"expired"`, `"status":"conflict"`, 1)
			}
		}}
	}},
	{"interrupt.stop", "a stop denies", "closed by", fact("interrupt.resolved", `"decision":"expired"`, `"decision":"deny"`)},
	{"executor.attach", "a lease that has ended", "before its first heartbeat", func() spoiler {
		until := regexp.MustCompile(`"leaseExpiresAt":"[^"]*"`)
		return spoiler{say: func(_ *http.Request, a *said) {
			a.body = until.ReplaceAllString(a.body, `"leaseExpiresAt":"2001-01-01T00:00:00Z"`)
		}}
	}},
	{"executor.attach", "an authority field", "no client.attached", says("/attach", `{"type"`, `{"eventId":"x","type"`)},
	{"executor.heartbeat", "a heartbeat gives another lease", "another lease", says("/controls", `"leaseId":"`, `"leaseId":"x`)},
	{"executor.supersede", "old leases hold", "want 403", anyLease},
	{"executor.lease", "a lease in the URL", "without Narad-Lease", func() spoiler {
		return spoiler{ask: func(r *http.Request, body string) string {
			if lease := r.URL.Query().Get("lease"); lease != "" {
				r.Header.Set("Narad-Lease", lease)
			}
			return body
		}}
	}},
	{"executor.lease", "any lease will do", "renews nothing", anyLease},
	{"executor.execute", "sent twice", "after the call was finished", executes(func(_ int, f string) []string { return []string{f, f} })},
	{"executor.execute", "numbers respelled", "in the control and", executes(func(_ int, f string) []string { return []string{strings.Replace(f, "1.10", "1.1", 1)} })},
	{"executor.execute", "with an id", "has the id", executes(func(_ int, f string) []string { return []string{"id: 7\n" + f} })},
	{"executor.finish", "another response is recorded", "recorded as", asks(`"response":{[^}]*}`, `"response":{}`)},
	{"executor.finish", "a second finish is taken", "want the status", func() spoiler {
		return spoiler{say: func(_ *http.Request, a *said) {
			if a.status == http.StatusConflict {
				a.status, a.body = http.StatusAccepted, strings.Replace(a.body, "conflict", "accepted", 1)
			}
		}}
	}},
	{"executor.token", "tokens are not looked at", "want the status", fromFrames("executionToken")},
	{"executor.handover", "a new lease may finish", "want the status", fromFrames("leaseId")},
	{"executor.again", "other bytes", "other bytes", executes(func(n int, f string) []string {
		return []string{strings.Replace(f, "data: {", "data: {"+strings.Repeat(" ", n), 1)}
	})},
	{"executor.secrets", "the execute control on the session's stream", "differs from history", sessionFrames(3, func(f string) []string {
		return []string{`data: {"type":"client.tool.execute","protocolVersion":"narad/v1"}`, f}
	})},
	{"executor.secrets", "the lease in a fact", "holds a secret", func() spoiler {
		lease := remember(`"leaseId":"([^"]*)"`)
		return spoiler{say: func(_ *http.Request, a *said) {
			lease.see(a.body)
			a.facts(func(text string) string { return strings.TrimSuffix(text, "}") + `,"lease":"` + lease.get() + `"}` })
		}, frame: func(_ *http.Request, frame string) []string {
			if strings.Contains(frame, `"sessionSequence"`) {
				frame = strings.TrimSuffix(frame, "}") + `,"lease":"` + lease.get() + `"}`
			}
			return []string{frame}
		}}
	}},
	{"executor.controls", "any protocol", "want 400", asks("narad/v2", "narad/v1")},
	{"messages.snapshot", "a transcript of the future", "the transcript covers", says("/messages", `"coversThroughSessionSequence":`, `"coversThroughSessionSequence":1`)},
	{"messages.snapshot", "another transcript each time", "other bytes", func() spoiler {
		n := 0
		return spoiler{say: func(r *http.Request, a *said) {
			if strings.HasSuffix(r.URL.Path, "/messages") {
				n++
				a.body = strings.Replace(a.body, `"snapshotId":"`, fmt.Sprintf(`"snapshotId":"%d`, n), 1)
			}
		}}
	}},
	{"messages.redact", "still shown", "shows the redacted", says("/messages", "[gone]", "conformance: speak")},
	{"messages.stream", "the transcript instead of the facts", "differs from history", sessionFrames(2, never)},
	{"messages.stream", "a transcript with an id", "has the id", extras("messages.snapshot", withID)},
	{"graph.stream", "a delta dropped", "graph.delta is", extras("graph.delta", never)},
	{"graph.stream", "a snapshot with an id", "has the id", extras("graph.snapshot", withID)},
	{"graph.stream", "a fact dropped", "", sessionFrames(3, never)},
	{"watch.session", "a revision twice", "does not rise", extras("session.revision", twice)},
	{"watch.session", "more than was delivered", "was delivered", extras("session.revision", ahead)},
	{"watch.session", "another id", "has the id", extras("run.revision", withID)},
	{"watch.workspace", "another id", "has the id", extras("session.created", withID)},
	{"messages.redact", "the fact is changed", "changed fact", func() spoiler {
		redacted := false
		return spoiler{say: func(r *http.Request, a *said) {
			redacted = redacted || strings.HasSuffix(r.URL.Path, "/redact")
			a.facts(func(text string) string {
				if redacted {
					return strings.Replace(text, `"content":"conformance: speak"`, `"content":""`, 1)
				}
				return text
			})
		}}
	}},
}

// extras changes the first frame of a type.
func extras(kind string, change func(frame string) []string) func() spoiler {
	return func() spoiler {
		var once sync.Once
		return spoiler{frame: func(_ *http.Request, frame string) (frames []string) {
			frames = []string{frame}
			if strings.Contains(frame, `"type":"`+kind) {
				once.Do(func() { frames = change(frame) })
			}
			return frames
		}}
	}
}

func withID(frame string) []string {
	return []string{"id: 7\n" + frame[strings.Index(frame, "data:"):]}
}

// ahead gives a watch event a revision that nothing has.
func ahead(frame string) []string {
	return []string{regexp.MustCompile(`"revision":\d+`).ReplaceAllString(frame, `"revision":9999`)}
}

// sessionFramesFrom changes frames with facts from the n-th on.
func sessionFramesFrom(n int, change func(frame string) []string) spoiler {
	seen := 0
	return spoiler{frame: func(_ *http.Request, frame string) []string {
		if seen++; seen < n || !strings.Contains(frame, `"sessionSequence"`) {
			return []string{frame}
		}
		return change(frame)
	}}
}
