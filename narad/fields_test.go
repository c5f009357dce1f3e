package narad

import (
	"strings"
	"testing"
)

// fieldTable is what the specification, the published schemas and R19 say of each
// type, written down apart from the code: the type, its lane, and its fields. A
// field is NAME, NAME:KIND or NAME=WORD|WORD; a ? at the end makes it optional. The
// kind of a plain NAME is id, a non-empty string.
//
//	id      a non-empty string       text    a string, also ""
//	time    a timestamp              or-null a string or null
//	count   an integer from 1        index   an integer from 0
//	any     a value, null too        number  a number
//	words   non-empty strings        set     non-empty strings that differ
//	actions a set of at least one    list    an array
//	patch   a JSON patch             usage, members, cursor: objects of their own
const fieldTable = `
run.started            run      parentRunId? parentToolCallId? clientExecutorId?
run.paused             run      waitId reason resumeMode=automatic|command interruptId? retryAt:time? message:text?
run.resumed            run      waitId
run.stop.requested     run      targetRunId
run.finished           run      artifactIds:set? usage:usage?
run.error              run      code message:text usage:usage?
run.cancelled          run      code:text? message:text? usage:usage?
interrupt.requested    run      interruptId waitId kind actions:actions expiresAt:time? title:text? message:text? input:any?
interrupt.resolved     run      interruptId waitId decision reason:text? actor:any? members:members?
tool.call.started      run      toolCallId toolName executor=backend|client args:any parentToolCallId?
tool.call.finished     run      toolCallId outcome=success|error|cancelled response:any code:text? message:text?

workflow.started        workflow nodeId? defaultClientExecutorId?
workflow.paused         workflow waitId interruptId nodeId?
workflow.resumed        workflow waitId nodeId?
workflow.stop.requested workflow
workflow.finished       workflow code:text? message:text?
workflow.error          workflow code:text? message:text?
workflow.cancelled      workflow code:text? message:text?
workflow.step.started   workflow nodeId agentRunId? agentSessionId? stepAttempt:index?
workflow.step.finished  workflow nodeId agentRunId? agentSessionId? stepAttempt:index?
workflow.step.failed    workflow nodeId agentRunId? agentSessionId? stepAttempt:index?
workflow.edge.taken     workflow from to caseIndex:index? pointer:text? op?

message.user.recorded  session  messageId messageScope=session|workflow|run content:text attachmentIds:words?
message.text.started   session  messageId role=assistant|system messageScope=session|workflow|run
message.text.delta     session  messageId delta:text
message.text.completed session  messageId
message.redacted       session  messageId reason displayReplacement:or-null
reasoning.started      session  reasoningId messageId?
reasoning.delta        session  reasoningId messageId? delta:text
reasoning.completed    session  reasoningId messageId?

attachment.added       session  attachmentId code:text? message:text?
attachment.ready       session  attachmentId code:text? message:text?
attachment.failed      session  attachmentId code:text? message:text?
attachment.removed     session  attachmentId code:text? message:text?
artifact.added         session  artifactId code:text? message:text?
artifact.ready         session  artifactId code:text? message:text?
artifact.failed        session  artifactId code:text? message:text?

state.snapshot         session  scope=session|workflow|run revision:count state:any
state.delta            session  scope=session|workflow|run baseRevision:index revision:count patch:patch
state.compacted        session  scope=session|workflow|run coversThroughSessionSequence:index snapshotRevision:count
ui.state.snapshot      session  scope=session|workflow|run revision:count state:any
ui.state.delta         session  scope=session|workflow|run baseRevision:index revision:count patch:patch
view.opened            session  viewId model:any?
view.updated           session  viewId operation=replace model:any
view.closed            session  viewId

progress.recorded      activity progressId category label detail:text? status=active|completed|failed|cancelled privacy=public|internal|sensitive usage:usage?

session.custom         session  name:name value:any
workflow.custom        workflow name:name value:any
run.custom             session  name:name value:any
node.custom            session  name:name value:any nodeId
session.raw            session  contentType payload:text
workflow.raw           workflow contentType payload:text
run.raw                session  contentType payload:text
node.raw               session  contentType payload:text nodeId

trace.span.started     session
trace.span.completed   session
trace.event            session
debug.log              session
debug.snapshot         session

session.revision       watch    sessionId revision:count cursor:cursor?
run.revision           watch    sessionId rootRunId runId revision:count cursor:cursor?
workflow.revision      watch    sessionId workflowId revision:count cursor:cursor?
node.revision          watch    sessionId workflowId nodeId revision:count cursor:cursor?
workspace.revision     watch    workspaceId revision:count cursor:cursor?
session.created        watch    workspaceId sessionId revision:count cursor:cursor?
session.updated        watch    workspaceId sessionId revision:count cursor:cursor?
session.archived       watch    workspaceId sessionId revision:count cursor:cursor?

messages.snapshot      hydrate  snapshotId sessionId coversThroughSessionSequence:index messages:list
graph.snapshot         hydrate  sessionId scope=run graphSchemaVersion=narad.graph/v1 rootRunId sourceRunCursor:source revision:count rootNodeId nodes:list edges:list
graph.delta            hydrate  sessionId scope=run graphSchemaVersion=narad.graph/v1 rootRunId sourceRunCursor:source baseRevision:index revision:count patch:patch

client.attached        control  clientExecutorId leaseId heartbeatIntervalMs:count leaseExpiresAt:time
client.heartbeat       control  clientExecutorId leaseId
client.tool.execute    control  clientExecutorId leaseId executionToken executionTokenExpiresAt:time toolCallId toolName args:any
client.tool.finish     control  clientExecutorId leaseId executionToken toolCallId outcome=success|error|cancelled response:any
server.heartbeat       control  serverTime:time?
`

// envelopes are the fields that a lane adds. The pair and the triple, which may
// stand where they are not required, are not fields of their own here.
var envelopes = map[string]string{
	"session":  "eventId timestamp:time sessionId sessionSequence:count",
	"workflow": "eventId timestamp:time sessionId sessionSequence:count workflowId workflowSequence:count",
	"run":      "eventId timestamp:time sessionId sessionSequence:count rootRunId runId sequence:count",
	"activity": "eventId timestamp:time sessionId sessionSequence:count rootRunId runId sequence:count",
	"watch":    "eventId timestamp:time",
	"hydrate":  "timestamp:time",
	"control":  "",
}

// field is one field of the table.
type field struct {
	name, kind string
	allowed    []string // the words of a closed set
	optional   bool
}

// shape is one row of the table.
type shape struct {
	kind   Type
	lane   string
	fields []field // those of the lane first
}

func (s shape) code() Code {
	switch s.lane {
	case "hydrate":
		return CodeInvalidHydrate
	case "control":
		return CodeInvalidControl
	}
	return CodeInvalidRecord
}

// shapes are the rows of the table, in its order.
var shapes = func() []shape {
	var all []shape
	for line := range strings.Lines(fieldTable) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s := shape{kind: Type(words[0]), lane: words[1]}
		for _, word := range append(strings.Fields(envelopes[s.lane]), words[2:]...) {
			s.fields = append(s.fields, parseField(word))
		}
		all = append(all, s)
	}
	return all
}()

func parseField(word string) field {
	word, optional := strings.CutSuffix(word, "?")
	if name, words, ok := strings.Cut(word, "="); ok {
		return field{name, "word", strings.Split(words, "|"), optional}
	}
	name, kind, ok := strings.Cut(word, ":")
	if !ok {
		kind = "id"
	}
	return field{name, kind, nil, optional}
}

// TestTableIsComplete holds the table to the registry: every type of narad/v1 has a
// row and an example, and nothing else has.
func TestTableIsComplete(t *testing.T) {
	rows, types := map[Type]bool{}, map[Type]bool{}
	for _, s := range shapes {
		rows[s.kind] = true
	}
	for _, kind := range Types() {
		types[kind] = true
		if !rows[kind] {
			t.Errorf("%s is a type of the package without a row in the table", kind)
		}
		if len(examples(t)[kind]) == 0 {
			t.Errorf("%s has no example in testdata/valid", kind)
		}
	}
	for kind := range rows {
		if !types[kind] {
			t.Errorf("%s has a row and is no type of the package", kind)
		}
	}
	if len(rows) != len(shapes) {
		t.Errorf("the table has %d rows for %d types", len(shapes), len(rows))
	}
}

// wrong are values that a field of a kind must not have, whatever else is right.
func (f field) wrong() []string {
	always := []string{`null`, `true`, `{}`}
	switch f.kind {
	case "id", "word", "name", "time":
		return append(always, `""`, `7`, `["x"]`)
	case "text":
		return append(always, `7`, `["x"]`)
	case "or-null":
		return []string{`true`, `{}`, `7`, `[]`}
	case "count":
		return append(always, `"1"`, `0`, `-1`, `1.5`, `[]`, `9007199254740992`)
	case "index":
		return append(always, `"1"`, `-1`, `1.5`, `[]`, `9007199254740992`)
	case "actions":
		return append(always, `[]`, `"x"`, `7`)
	case "words", "set", "list", "patch", "members":
		return append(always, `"x"`, `7`)
	case "usage", "cursor", "source":
		return []string{`null`, `true`, `[]`, `"x"`, `7`}
	}
	return nil // any
}

// TestRequiredFields takes each required field of each type away and makes it null,
// empty and of a wrong type: a client and a host refuse it, at its path.
func TestRequiredFields(t *testing.T) {
	for _, s := range shapes {
		for _, f := range s.fields {
			if f.optional {
				continue
			}
			checkRefused(t, s, f, "")
			for _, value := range f.wrong() {
				checkRefused(t, s, f, value)
			}
		}
	}
}

func checkRefused(t *testing.T, s shape, f field, value string) {
	t.Helper()
	record := example(t, s.kind).without(f.name)
	if value != "" {
		record = record.with(f.name, value)
	}
	text := record.text()
	code, path := s.code(), "/"+f.name
	if f.name == "eventId" && value != `""` && s.lane != "watch" {
		code = CodeUnknownRecord // no authority event at all (V1)
	}
	for _, d := range decoders {
		if !d.Strict && takesWrong(s, f, value) {
			continue
		}
		_, err := d.Decode([]byte(text))
		if got := refusalOf(err); got.Code != code || got.Path != path && !strings.HasPrefix(got.Path, path+"/") {
			t.Errorf("%s, %s = %s, strict %v: got %v, want %s at %s\n%s", s.kind, f.name, value, d.Strict, err, code, path, text)
		}
	}
}

// takesWrong lists what the public client takes in a required field though no host
// may write it, and so does our client: a fraction of a millisecond (facts §3.6),
// whatever stands for displayReplacement (§18.27), and an extension's event without
// the node it is about (§18.24).
func takesWrong(s shape, f field, value string) bool {
	node := s.kind == TypeNodeCustom || s.kind == TypeNodeRaw
	return f.name == "heartbeatIntervalMs" && value == "1.5" || f.kind == "or-null" && value != "" || f.name == "nodeId" && node
}

// TestOptionalFields gives each optional field of each type a wrong form: a client
// goes on without the field, a host must not write it (§18.25).
func TestOptionalFields(t *testing.T) {
	// Where the public client refuses a wrong optional field, so do we.
	refusedByClients := map[string]bool{"caseIndex": true, "pointer": true, "op": true}
	for _, s := range shapes {
		for _, f := range s.fields {
			if !f.optional {
				continue
			}
			for _, value := range f.wrong() {
				text := example(t, s.kind).without(f.name).with(f.name, value).text()
				_, err := DecodeStrict([]byte(text))
				got := refusalOf(err)
				if got.Code != s.code() || got.Path != "/"+f.name && !strings.HasPrefix(got.Path, "/"+f.name+"/") {
					if !(f.kind == "usage" && value == "{}") {
						t.Errorf("%s, %s = %s, strict: got %v, want %s at /%s", s.kind, f.name, value, err, s.code(), f.name)
					}
				}
				if _, err := Decode([]byte(text)); (err != nil) != refusedByClients[f.name] {
					t.Errorf("%s, %s = %s, lenient: got %v, want refused %v", s.kind, f.name, value, err, refusedByClients[f.name])
				}
			}
			text := example(t, s.kind).without(f.name).text()
			if _, err := DecodeStrict([]byte(text)); err != nil {
				t.Errorf("%s without %s: %v", s.kind, f.name, err)
			}
		}
	}
}
