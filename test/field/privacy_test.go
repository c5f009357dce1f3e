package field_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// Case 98. With everything logged, no secret and no content stands in what the host prints
// or logs, in an error that it answers, or in how a run failed: not its environment, its
// agents' command lines and keys, a token, nor what people and tools said. Arguments of
// tools are in the facts that the contract puts them in, and nowhere else.
func TestCase98NoSecretsInLogs(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"the environment": "mk-environ", "the agent's command line": "mk-argument", "the provider's key": "mk-provider",
		"the prompt": "mk-prompt", "the title": "mk-title", "the reason of a decision": "mk-reason", "tool arguments": "mk-toolargs",
		"a tool's output": "mk-output", "a tool's response": "mk-response", "a question": "mk-question", "an answer": "mk-answer",
		"a broken body": "mk-broken", "a bad token": "mk-badtoken", "a query": "mk-query", "what the agent says": "mk-words",
		"an agent's message of failure": "mk-failure",
	}
	b := newACPBed(t, "MAHATI_LOG_LEVEL=debug", "HOST_SECRET=mk-environ", "PROVIDER_KEY=mk-provider")
	b.write(filepath.Join(b.home, "config.toml"), `[agents.acp]
kind = "acp"
command = ["/usr/bin/env", "ARGUMENT=mk-argument", "/bin/sh", "`+filepath.Join(b.home, "agent.sh")+`", "mk-argument"]
env = ["PROVIDER_KEY"]
`)
	b.write(b.script, `
script: 1
steps:
  - say: "mk-words {{prompt}}"
  - tool: {name: shell, kind: execute, title: Do, args: {x: mk-toolargs}, permit: true, output: mk-output, run: "echo mk-output; env; exit 3", respond: {y: mk-response}}
  - question: {text: "mk-question?", free: true, as: q}
  - tool: {name: broken, outcome: error, code: broke, message: mk-failure}
  - fail: {code: agents_code, message: It failed.}
`)
	b.stop()
	b.start()
	if a := b.post("/sessions", object{"sessionId": "s1", "title": "mk-title", "cwd": t.TempDir()}); a.status != http.StatusCreated {
		t.Fatalf("create: %v", a)
	}
	run := b.say("s1", "mk-prompt")
	permit := b.awaitAsk("s1", 1).InterruptID
	var refusals []answer
	refused := func(a answer) { refusals = append(refusals, a) }
	refused(b.post("/commands/resolve-interrupt", object{"interruptId": permit, "decision": "mk-answer", "reason": "mk-reason"}))
	refused(b.post("/commands/resolve-interrupt", object{"interruptId": permit, "decision": object{"x": "mk-answer"}}))
	refused(b.post("/commands/message", `{"sessionId":"s1","content":"mk-broken`))
	refused(b.post("/commands/message", object{"sessionId": "s1", "content": "mk-prompt", "commandId": "mk-broken with a space"}))
	refused(b.post("/commands/message", object{"sessionId": "s1", "content": "mk-prompt", "attachmentIds": []string{"mk-broken"}}))
	refused(b.post("/sessions", object{"title": strings.Repeat("mk-title", 1000)}))
	refused(b.post("/sessions", object{"cwd": "/mk-broken"}))
	refused(b.get("/sessions/s1/events?afterSessionSequence=mk-query"))
	refused(b.get("/sessions/s1/stream?token=mk-query&watch=mk-query"))
	refused(b.get("/mk-query"))
	mine := b.token
	b.token = "mht_mk-badtoken"
	refused(b.get("/sessions/s1"))
	b.token = mine
	if a := b.post("/commands/resolve-interrupt", object{"interruptId": permit, "decision": "approve", "reason": "mk-reason"}); a.status != http.StatusAccepted {
		t.Fatalf("approve: %v", a)
	}
	question := b.awaitAsk("s1", 2).InterruptID
	if a := b.post("/commands/resolve-interrupt", object{"interruptId": question, "decision": "answer", "answers": []object{{"options": []string{}, "text": "mk-answer"}}}); a.status != http.StatusAccepted {
		t.Fatalf("answer: %v", a)
	}
	b.awaitEnd("s1", run)

	// The provider refuses the key and repeats it, and the agent tells that on every way it has.
	b.acpSession("acp")
	b.awaitEnd("acp", b.say("acp", "keyfault"))
	b.awaitEnd("acp", b.say("acp", "keyexit"))
	b.restart() // recovery logs, too
	b.stop()

	told := map[string]string{"the log": b.log()}
	for _, a := range refusals {
		if a.status < 400 {
			t.Errorf("not refused: %v", a)
		}
		told["error answers"] += a.String() + "\n"
	}
	listed, _ := b.mahati("token", "list")
	checked, _ := b.mahati("config", "check")
	told["commands"] = listed + checked
	secrets["the token"] = strings.TrimPrefix(mine, "mht_")
	b.start()
	errors, inFacts := "", map[string]int{}
	for _, id := range []string{"s1", "acp"} {
		raw := b.facts(id)
		for i, e := range decode(t, raw) {
			if f, ok := e.(*narad.RunError); ok {
				errors += f.Code + " " + f.Message + "\n"
			}
			if bytes.Contains(raw[i], []byte("mk-toolargs")) {
				inFacts[string(e.Type())]++
			}
			for _, key := range []string{"mk-environ", "mk-argument", "mk-provider", secrets["the token"]} {
				if bytes.Contains(raw[i], []byte(key)) {
					t.Errorf("a fact shows %s: %s", key, raw[i])
				}
			}
		}
	}
	if strings.Count(errors, "\n") != 3 {
		t.Errorf("got %q, want three runs that failed", errors)
	}
	told["run.error"] = errors
	if len(inFacts) != 1 || inFacts["tool.call.started"] != 1 {
		t.Errorf("tool arguments stand in %v, want the start of the call alone", inFacts)
	}
	if !strings.Contains(told["the log"], "refused, told by") {
		t.Error("what the agent wrote to its own log is not in the host's: nothing was shown")
	}
	for where, text := range told {
		if len(text) < 20 {
			t.Errorf("%s say nothing: %q", where, text)
		}
		for what, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s shows %s: ...%s...", where, what, text[max(0, at-100):min(len(text), at+100)])
			}
		}
	}
	b.must(filepath.WalkDir(b.home, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || !d.Type().IsRegular() || name == "config.toml" || name == "token" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, what := range []string{"the environment", "the agent's command line", "the provider's key", "the token"} {
			if bytes.Contains(text, []byte(secrets[what])) {
				t.Errorf("%s shows %s", path, what)
			}
		}
		return err
	}))
}
