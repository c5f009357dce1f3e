package naradhttp_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
)

// Every refusal is a specific error and changes nothing.
func TestBadInput(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	deep := `{"sessionId":"s1","content":"x","extra":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`
	tests := []struct {
		name, method, path, body string
		status                   int
		code                     string // a problem's, or a command's word
	}{
		{"no JSON", "POST", "/sessions", `hello`, 400, "bad_request"},
		{"no body", "POST", "/sessions", ``, 400, "bad_request"},
		{"no object", "POST", "/sessions", `null`, 400, "bad_request"},
		{"two objects", "POST", "/sessions", `{}{}`, 400, "bad_request"},
		{"a name twice", "POST", "/sessions", `{"sessionId":"a","sessionId":"b"}`, 400, "bad_request"},
		{"not UTF-8", "POST", "/sessions", "{\"title\":\"\xff\"}", 400, "bad_request"},
		{"half a character", "POST", "/sessions", `{"title":"\ud800"}`, 400, "bad_request"},
		{"too deep", "POST", "/commands/message", deep, 400, "bad_request"},
		{"too large", "POST", "/commands/message", `{"sessionId":"s1","content":"` + long(1<<20) + `"}`, 413, "body_too_large"},
		{"a wrong type", "POST", "/sessions", `{"sessionId":7}`, 400, "invalid_field"},
		{"an id with a space", "POST", "/sessions", `{"sessionId":"a b"}`, 400, "invalid_field"},
		{"an id with a control character", "POST", "/sessions", `{"sessionId":"a\u0007"}`, 400, "invalid_field"},
		{"an id of 129", "POST", "/sessions", `{"sessionId":"` + long(129) + `"}`, 400, "invalid_field"},
		{"the host's own stream", "POST", "/sessions", `{"sessionId":"~host"}`, 400, "invalid_field"},
		{"a trace session", "POST", "/sessions", `{"sessionId":"s1~trace"}`, 400, "invalid_field"},
		{"a workspace id", "POST", "/sessions", `{"workspaceId":"a/b"}`, 400, "invalid_field"},
		{"a title of 513", "POST", "/sessions", `{"title":"` + long(513) + `"}`, 400, "invalid_field"},
		{"a title with an escape", "POST", "/sessions", `{"title":"\u001b[31m"}`, 400, "invalid_field"},
		{"an agent's name of 257", "POST", "/sessions", `{"agent":"` + long(257) + `"}`, 400, "invalid_field"},
		{"a path with NUL", "POST", "/sessions", `{"cwd":"/a\u0000b"}`, 400, "invalid_field"},
		{"no session", "POST", "/commands/message", `{"content":"x"}`, 400, "invalid_field"},
		{"a message of 256 KiB and one", "POST", "/commands/message", `{"sessionId":"s1","content":"` + long(256<<10+1) + `"}`, 400, "invalid_field"},
		{"a wrong word", "POST", "/commands/message", `{"sessionId":"s1","content":"x","whenBusy":"wait"}`, 400, "invalid_field"},
		{"an odd command id", "POST", "/commands/message", `{"sessionId":"s1","content":"x","commandId":"a b"}`, 400, "invalid_field"},
		{"an odd message id", "POST", "/commands/message", `{"sessionId":"s1","content":"x","messageId":"a b"}`, 400, "invalid_field"},
		{"an unknown session", "POST", "/commands/message", `{"sessionId":"nothing","content":"x"}`, 404, "not_found"},
		{"a stop of an unknown session", "POST", "/commands/stop-active-root", `{"sessionId":"nothing"}`, 404, "not_found"},
		{"a stop of an unknown run", "POST", "/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"nothing"}`, 404, "not_found"},
		{"a queue action", "POST", "/commands/queue", `{"sessionId":"s1","action":"shuffle"}`, 400, "invalid_field"},
		{"a withdrawal of nothing", "POST", "/commands/queue", `{"sessionId":"s1","action":"withdraw"}`, 400, "invalid_field"},
		{"no such session", "GET", "/sessions/nothing", ``, 404, "not_found"},
		{"no such session to attach to", "GET", "/sessions/nothing/attach", ``, 404, "not_found"},
		{"no such session to delete", "DELETE", "/sessions/nothing", ``, 404, "not_found"},
		{"no such session to archive", "POST", "/sessions/nothing/archive", ``, 404, "not_found"},
		{"an id in the path", "GET", "/sessions/a%0ab/events", ``, 400, "invalid_field"},
		{"the host's stream in the path", "GET", "/sessions/~host/events", ``, 400, "invalid_field"},
		{"another state of interrupts", "GET", "/interrupts?state=closed", ``, 400, "bad_request"},
		{"another method", "PUT", "/sessions/s1", ``, 405, "method_not_allowed"},
		{"a title with a control of C1", "POST", "/sessions", `{"title":"\u009b31m"}`, 400, "invalid_field"},
		{"a title of two lines", "POST", "/sessions", `{"title":"a\u2028b"}`, 400, "invalid_field"},
		{"an agent's name with a control of C1", "POST", "/sessions", `{"agent":"a\u0085b"}`, 400, "invalid_field"},
		{"a reason with an escape", "POST", "/commands/stop-active-root", `{"sessionId":"s1","reason":"a\u009bb"}`, 400, "invalid_field"},
		{"an id that a path drops", "POST", "/sessions", `{"sessionId":".."}`, 400, "invalid_field"},
		{"another that a path drops", "POST", "/sessions", `{"sessionId":"."}`, 400, "invalid_field"},
		{"a name twice, once escaped", "POST", "/sessions", `{"sessionId":"a","session\u0049d":"b"}`, 400, "bad_request"},
		{"a name twice, deep within what is ignored", "POST", "/sessions", `{"sessionId":"a","x":[{"y":1,"y":2}]}`, 400, "bad_request"},
		{"a BOM", "POST", "/sessions", "\ufeff{}", 400, "bad_request"},
		{"400,000 brackets", "POST", "/sessions", strings.Repeat("[", 400_000), 400, "bad_request"},
		{"400,000 brackets in an object", "POST", "/sessions", `{"x":` + strings.Repeat("[", 400_000), 400, "bad_request"},
		{"a path that leads back", "POST", "/sessions/../sessions", `{"sessionId":"a"}`, 404, "not_found"},
		{"a path with an empty step", "POST", "//sessions", `{"sessionId":"a"}`, 404, "not_found"},
		{"a step in disguise", "DELETE", "/sessions/%2e%2e", ``, 404, "not_found"},
		{"a slash in disguise", "DELETE", "/sessions/..%2fs1", ``, 404, "not_found"},
		{"a route of nobody", "GET", "/sessions/s1/nothing", ``, 404, "not_found"},
		{"a command of nobody", "POST", "/commands/dance", `{}`, 404, "not_found"},
	}
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		before := r.heads()
		for _, test := range tests {
			got := r.send(r.request(test.method, test.path, test.body))
			if said := got.field("status") + got.field("code"); got.status != test.status || said != test.code {
				t.Errorf("%s: got %s, want %d %s", test.name, got, test.status, test.code)
			}
			if test.code == "invalid_field" && got.field("detail") == "" {
				t.Errorf("%s: no detail: %s", test.name, got)
			}
		}
		if r.heads() != before {
			t.Errorf("refusals moved the store from %v to %v", before, r.heads())
		}
		exact := `{"sessionId":"s1","content":"` + long(256<<10) + `"}`
		r.wantWord(r.post("/commands/message", exact), 202, "accepted")
	})
}

// A refused field is named by its path, and nothing of its value is repeated.
func TestRefusalsNameTheField(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		for body, want := range map[string]string{
			`{"interruptId":"i","decision":["secret"]}`:                             "decision has the wrong type",
			`{"interruptId":"i","decision":"d","members":[{"requestId":"a"},5]}`:    "members[1] has the wrong type",
			`{"interruptId":"i","decision":"d","answers":[{"options":["secret"]}]}`: "answers[0].options[0] has the wrong type",
			`{"interruptId":"i","decision":"d","expectedRevision":1.5}`:             "expectedRevision has the wrong type",
			`{"interruptId":"i","decision":"d","commandId":"secret secret"}`:        "commandId must be 1 to 128 letters, digits and . _ : -",
			`{"interruptId":"` + strings.Repeat("secret", 30) + `","decision":"d"}`: "interruptId must be 1 to 128 letters, digits and . _ : -",
		} {
			got := r.post("/commands/resolve-interrupt", body)
			r.wantProblem(got, 400, "invalid_field")
			if detail := got.field("detail"); !strings.HasPrefix(detail, want) || strings.Contains(got.body, "secret") {
				t.Errorf("%s: got %q, want %q", body, detail, want)
			}
		}
	})
}

func TestForeignOriginAndHost(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		before := r.heads()
		for code, edit := range map[string]func(*http.Request){
			"origin_not_allowed": func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
			"host_not_allowed":   func(q *http.Request) { q.Host = "evil.example" },
		} {
			q := r.request("POST", "/commands/message", `{"sessionId":"s1","content":"x"}`)
			edit(q)
			r.wantProblem(r.send(q), 403, code)
		}
		if r.heads() != before {
			t.Errorf("refusals moved the store from %v to %v", before, r.heads())
		}
	})
}

func TestAFullStoreRefusesAndReads(t *testing.T) {
	var free atomic.Uint64
	free.Store(10 << 30)
	o := journal.Options{Free: func() (uint64, error) { return free.Load(), nil }}
	bubble(t, rigOptions{agent: waits, journal: o}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		free.Store(1000 << 20) // below the reserve, and above what only closing may use
		pass(5 * time.Second)
		before := r.heads()
		r.wantProblem(r.post("/commands/message", `{"sessionId":"s1","content":"x"}`), 507, "storage_full")
		r.wantProblem(r.post("/sessions", `{}`), 507, "storage_full")
		if r.heads() != before {
			t.Errorf("refusals moved the store from %v to %v", before, r.heads())
		}
		r.want(r.get("/sessions/s1/events"), 200)
		r.wantWord(r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+run+`"}`), 202, "accepted")
	})
}

func TestTooManyCommandsWait(t *testing.T) {
	var hold atomic.Bool
	var gate chan struct{}
	o := journal.Options{Fault: func(s journal.Stage, _ journal.Group) error {
		if s == journal.StageBuilt && hold.Load() {
			<-gate
		}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		gate = make(chan struct{})
		r := start(t, rigOptions{agent: waits, journal: o, host: host.Options{Mailbox: 1}})
		r.create("s1")
		hold.Store(true)
		answers := make(chan reply, 2)
		for range 2 { // one is being written, one waits
			go func() { answers <- r.post("/commands/message", `{"sessionId":"s1","content":"x"}`) }()
			synctest.Wait()
		}
		got := r.post("/commands/message", `{"sessionId":"s1","content":"x"}`)
		r.wantProblem(got, 503, "overloaded")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After: got %q", got.header.Get("Retry-After"))
		}
		hold.Store(false)
		close(gate)
		for range 2 {
			r.wantWord(<-answers, 202, "accepted")
		}
	})
}

// R17: a host that recovers says so, never that something is not there.
func TestARecoveringHost(t *testing.T) {
	bubble(t, rigOptions{unstarted: true}, func(t *testing.T, r *rig) {
		for _, q := range []*http.Request{
			r.request("GET", "/sessions/s1", ""), r.request("GET", "/sessions", ""), r.request("GET", "/interrupts", ""),
			r.request("POST", "/sessions", "{}"), r.request("DELETE", "/sessions/s1", ""),
			r.request("POST", "/commands/message", `{"sessionId":"s1","content":"x"}`),
		} {
			got := r.send(q)
			r.wantProblem(got, 503, "recovering")
			if got.header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %s", got)
			}
		}
	})
}

// Field case 98: no secret and no content reaches the log or an error, at the highest
// level of logging.
func TestSecretsStayOut(t *testing.T) {
	const marker = "marker-of-"
	bubble(t, rigOptions{agent: asks, binding: naradhttp.Options{}}, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"s1","title":"marker-of-title"}`), 201)
		r.say("s1", "marker-of-prompt")
		synctest.Wait()
		id := r.opened()[0]
		var errors []string
		for _, got := range []reply{
			r.post("/commands/resolve-interrupt", `{"interruptId":"`+id+`","decision":"marker-of-decision","reason":"marker-of-reason"}`),
			r.post("/commands/resolve-interrupt", `{"interruptId":"`+id+`","decision":{"x":"marker-of-type"}}`),
			r.post("/commands/message", `{"sessionId":"s1","content":"marker-of-cut`),
			r.post("/commands/message", `{"sessionId":"s1","content":"x","commandId":"marker-of-id with a space"}`),
			r.get("/sessions/s1/events?afterSessionSequence=marker-of-cursor"),
			r.get("/sessions/s1/stream?token=marker-of-token&watch=marker-of-token"),
			r.get("/marker-of-path"),
		} {
			if got.status < 400 {
				t.Errorf("not refused: %s", got)
			}
			errors = append(errors, got.body)
		}
		stranger := r.request("GET", "/sessions/s1", "")
		stranger.Header.Set("Authorization", "Bearer mht_marker-of-bearer")
		errors = append(errors, r.send(stranger).body)
		r.wantWord(r.post("/commands/resolve-interrupt", `{"interruptId":"`+id+`","decision":"approve","reason":"marker-of-reason"}`), 202, "accepted")
		synctest.Wait()
		r.close()
		for what, text := range map[string]string{"the log": r.log.String(), "an error": strings.Join(errors, "\n")} {
			for _, secret := range []string{marker, r.token, strings.TrimPrefix(r.token, "mht_")} {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s shows %q: ...%s...", what, secret, text[max(0, at-80):min(len(text), at+80)])
				}
			}
		}
	})
}
