package harness

import (
	"fmt"
	"strings"
)

// logOf writes a log of run r: each text is a type and, after a blank, a payload. A class
// may stand between them in parentheses; otherwise records are public.
func logOf(records ...string) string {
	var log strings.Builder
	for i, text := range records {
		log.WriteString(recordOf(i+1, text) + "\n")
	}
	return log.String()
}

func recordOf(sequence int, text string) string {
	kind, payload, _ := strings.Cut(text, " ")
	class := "public"
	if rest, classed := strings.CutPrefix(payload, "("); classed {
		class, payload, _ = strings.Cut(rest, ")")
		payload = strings.TrimSpace(payload)
	}
	if payload != "" {
		payload = `,"payload":` + payload
	}
	return fmt.Sprintf(`{"version":"fak.harness.run/v1","run_id":"r","sequence":%d,"event_id":"e%d","type":%q,"sensitivity":%q%s}`, sequence, sequence, kind, class, payload)
}

const started = `run.started {"status":"running"}`

// story has a record of every kind.
var story = []string{
	started,
	`message.started {"message_id":"m1","role":"user"}`,
	`message.delta {"message_id":"m1","text":"héllo "}`,
	`message.completed {"message_id":"m1","text":"wörld"}`,
	`tool.started {"call_id":"c1","name":"read","status":"running"}`,
	`vendor.progress {"x":[1]}`,
	`approval.requested (private) {"approval_id":"a1","prompt":"ok?","status":"pending","scope":"s"}`,
	`approval.resolved {"approval_id":"a1","status":"approved"}`,
	`tool.completed {"call_id":"c1","name":"","status":"completed","summary":"done"}`,
	`message.delta (secret) {"message_id":"m2","text":"key"}`,
	`message.delta (private) {"redacted":true}`,
	`plan.updated {"steps":[{"id":"s1","text":"t","status":"done"}]}`,
	`ui.block {"block_id":"b","kind":"k","data":{"a":1.50}}`,
	`artifact.published {"artifact_id":"x","media_type":"text/plain","uri":"u:1"}`,
	`error {"code":"c","message":"m","retryable":true}`,
	`usage {"input_tokens":3,"output_tokens":4,"cost_micros":5}`,
	`usage {"input_tokens":1,"output_tokens":1}`,
	`run.canceled {"status":"canceled","reason":"enough"}`,
	`checkpoint {"cursor":{"version":"fak.harness.run/v1","run_id":"r","sequence":18,"checkpoint":"tok"}}`,
}
