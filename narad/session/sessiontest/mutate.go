package sessiontest

import (
	"math/rand"
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// Mutate returns a spoiled copy of a trace: a few lines are dropped, doubled, moved or
// changed, and strangers stand among them. Often the sequences are then put right
// again, so that what is wrong is not only a gap.
func Mutate(rng *rand.Rand, trace [][]byte) [][]byte {
	lines := slices.Clone(trace)
	for range 1 + rng.Intn(4) {
		if len(lines) == 0 {
			break
		}
		lines = mutateOnce(rng, lines)
	}
	if rng.Intn(4) > 0 {
		renumber(lines)
	}
	return lines
}

func mutateOnce(rng *rand.Rand, lines [][]byte) [][]byte {
	at := rng.Intn(len(lines))
	switch rng.Intn(10) {
	case 0:
		return slices.Delete(lines, at, at+1)
	case 1:
		return slices.Insert(lines, at, lines[rng.Intn(len(lines))])
	case 2:
		other := rng.Intn(len(lines))
		lines[at], lines[other] = lines[other], lines[at]
		return lines
	case 3:
		return slices.Insert(lines, at, stranger(rng))
	case 4:
		return slices.Insert(lines, at, spoiled(rng, lines[rng.Intn(len(lines))]))
	default:
		lines[at] = spoiled(rng, lines[at])
		return lines
	}
}

// spoiled changes a line.
func spoiled(rng *rand.Rand, line []byte) []byte {
	v, err := Parse(line)
	o, ok := v.(object)
	if err != nil || !ok {
		return line
	}
	switch rng.Intn(12) {
	case 0:
		return spelling{rng}.line(o) // the same in other words
	case 1:
		types := narad.Types()
		slices.Sort(types)
		o["type"] = string(types[rng.Intn(len(types))])
	case 2:
		o["type"] = pick(rng, "workflow.foo", "foo.bar", "run.foo", "message.", "debug.more", "x", "")
	case 3:
		o["sessionId"] = "s-other"
	case 4: // a projection
		o["sourceEventId"], o["sourceSessionId"] = "e-source", "s-source"
		delete(o, "sequence")
		delete(o, "workflowId")
		delete(o, "workflowSequence")
	case 5: // a nested run's
		o["rootRunId"] = pick(rng, "r-1", "r-x")
	default:
		for range 1 + rng.Intn(2) {
			spoilField(rng, o)
		}
	}
	return spelling{}.line(o)
}

// spoilField changes, adds or removes one field.
func spoilField(rng *rand.Rand, o object) {
	names := sortedKeys(o)
	if len(names) == 0 {
		return
	}
	name := names[rng.Intn(len(names))]
	if rng.Intn(5) == 0 {
		name = fieldNames[rng.Intn(len(fieldNames))]
	}
	switch rng.Intn(6) {
	case 0:
		delete(o, name)
	case 1:
		o[name] = []any{nil, true, Number("0"), Number("-1"), Number("1.5"), "", []any{}, object{}, Number("1e400")}[rng.Intn(9)]
	case 2:
		o[name] = otherValue(rng, name, o[name])
	default:
		if i, ok := integer(o[name]); ok {
			o[name] = number(i + int64(rng.Intn(5)) - 2)
			return
		}
		o[name] = otherValue(rng, name, o[name])
	}
}

// fieldNames are fields that some types have and others do not.
var fieldNames = []string{
	"runId", "rootRunId", "sequence", "workflowId", "workflowSequence", "nodeId", "scope", "interruptId", "waitId",
	"parentRunId", "parentToolCallId", "messageScope", "sourceEventId", "members", "input", "usage", "completed", "unknown", "eventId",
}

// otherValue returns a value that the field might have had.
func otherValue(rng *rand.Rand, name string, old any) any {
	switch name {
	case "timestamp", "expiresAt", "retryAt":
		return pick(rng, "2026-08-05T00:00:00Z", "2026-08-05T00:00:00.5Z", "2026-08-05", "soon", "2026-08-05T02:00:00+02:00")
	case "decision":
		return pick(rng, "approve", "deny", "stop", "expired", "maybe")
	case "scope", "messageScope":
		return pick(rng, "session", "workflow", "run", "galaxy")
	case "executor":
		return pick(rng, "backend", "client")
	case "runId", "rootRunId", "parentRunId", "targetRunId":
		return pick(rng, "r-1", "r-3", "r-7", "r-x")
	case "workflowId":
		return pick(rng, "w-1", "w-x")
	case "operation":
		return pick(rng, "replace", "patch")
	case "actions", "attachmentIds":
		return []any{Number("5"), "approve", true}
	case "members":
		return []any{object{"requestId": "m-1", "decision": "approve"}, object{"requestId": ""}, object{"requestId": "m-1", "decision": "deny"}}
	case "input":
		return object{"members": []any{object{"requestId": "m-1"}, object{"requestId": "m-2"}}}
	case "usage":
		return object{"promptTokens": "many", "totalTokens": 7, "elapsedMs": nil, "more": true}
	case "patch":
		return []any{object{"op": pick(rng, "add", "remove", "replace", "test", "invoke"), "path": pick(rng, "/a", "/list/9", "a", "/__proto__/x", "/k1", "/~2"), "value": 1}}
	case "completed":
		return rng.Intn(2) == 0
	case "protocolVersion":
		return "narad/v2"
	}
	if _, ok := old.(string); ok {
		return pick(rng, "e-1", "w-1", "plan", "x")
	}
	return object{"a": old}
}

// stranger returns a line that belongs to no story.
func stranger(rng *rand.Rand) []byte {
	return []byte(pick(rng,
		``, `null`, `[]`, `{}`, `{"type":1}`, `{"type":"run.started"`, `{"a":1,"a":2}`, "\xff", `"run.started"`,
		`{"type":"server.heartbeat","protocolVersion":"narad/v1","sequence":1}`,
		`{"type":"server.heartbeat","protocolVersion":"narad/v1"}`,
		`{"type":"server.heartbeat","protocolVersion":"narad/v2"}`,
		`{"type":"messages.snapshot","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","snapshotId":"x","sessionId":"s-1","coversThroughSessionSequence":0,"messages":[]}`,
		`{"type":"messages.snapshot","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","snapshotId":"x","sessionId":"s-2","coversThroughSessionSequence":9,"messages":[]}`,
		`{"type":"messages.snapshot","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","snapshotId":"x","sessionId":"s-1","coversThroughSessionSequence":4,"messages":[{"messageId":"m-2","content":"edited"},5,{"messageId":"new","completed":false,"redacted":true,"role":"user","attachmentIds":[1]}]}`,
		`{"type":"session.revision","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","eventId":"e-2","sessionId":"s-1","revision":3}`,
		`{"type":"workspace.revision","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00Z","eventId":"e-2","workspaceId":"ws-1","revision":3}`,
	))
}

func pick(rng *rand.Rand, of ...string) string { return of[rng.Intn(len(of))] }

// renumber gives the events of a trace the sequences that their order demands.
func renumber(lines [][]byte) {
	var session int64
	workflows, roots, seen := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for i, line := range lines {
		v, err := Parse(line)
		o, ok := v.(object)
		if err != nil || !ok {
			continue
		}
		f := fact{body: o}
		if f.session() == 0 || seen[f.eventID()] {
			continue
		}
		seen[f.eventID()] = true
		if session == 0 {
			session = f.session() - 1
		}
		session++
		o["sessionSequence"] = number(session)
		if f.workflow() > 0 {
			workflows[f.workflowID()]++
			o["workflowSequence"] = number(workflows[f.workflowID()])
		}
		if f.sequence() > 0 {
			roots[f.rootID()]++
			o["sequence"] = number(roots[f.rootID()])
		}
		lines[i] = spelling{}.line(o)
	}
}
