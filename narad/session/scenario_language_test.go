package session_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// A player feeds one state and writes the records for it, so that a scenario only
// says what matters to it. testdata/README.md describes the short form. Everything
// that the player fills in depends on the lines before and on nothing else.
type player struct {
	state   *session.State
	strict  bool
	session string

	events    int    // lines played, refused ones too: they name ids and times
	last      int64  // the session's last sequence, as far as accepted
	trees     counts // the same of each run tree, by its root
	workflows counts // the same of each workflow

	previous []byte            // the line played last
	byID     map[string][]byte // each line by its eventId
}

type counts map[string]int64

func newPlayer(o session.Options, strict bool) *player {
	id := o.SessionID
	if id == "" {
		id = "s1"
	}
	o.Graphs = graph.NewView(o.SessionID, graph.ViewOptions{Strict: strict})
	return &player{
		state: session.New(o), strict: strict, session: id,
		trees: counts{}, workflows: counts{}, byID: map[string][]byte{},
	}
}

// outcome is what a line gave, without the detail.
type outcome struct{ kind, code string }

func (o outcome) String() string { return strings.TrimSpace(o.kind + " " + o.code) }

// play applies one line of the short form.
func (p *player) play(text string) (outcome, error) {
	line, err := p.compose(text)
	if err != nil {
		return outcome{}, err
	}
	return p.apply(line), nil
}

// apply applies one wire record and counts what it used up.
func (p *player) apply(line []byte) outcome {
	r := p.state.ApplyJSON(bytes.Clone(line), p.strict)
	got := outcome{r.Kind.String(), string(r.Code)}
	p.previous = line
	var e struct {
		Type                       narad.Type
		EventID                    string
		SessionSequence            float64 // scenarios spell numbers in odd ways too
		RootRunID, WorkflowID      string
		Sequence, WorkflowSequence float64
	}
	if json.Unmarshal(line, &e) != nil {
		return got
	}
	if _, known := p.byID[e.EventID]; !known {
		p.byID[e.EventID] = line
	}
	authority := e.Type.Class() == narad.ClassAuthority || e.Type.Class() == narad.ClassUnknown
	if authority && (got.kind == "applied" || got == outcome{"ignored", "profile_not_negotiated"}) {
		p.last = max(p.last, int64(e.SessionSequence))
		p.trees.raise(e.RootRunID, int64(e.Sequence))
		p.workflows.raise(e.WorkflowID, int64(e.WorkflowSequence))
	}
	return got
}

func (c counts) raise(id string, to int64) { c[id] = max(c[id], to) }

// compose writes the record that a line of the short form stands for.
func (p *player) compose(text string) ([]byte, error) {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	p.events++
	switch {
	case word == "json":
		return []byte(rest), nil
	case word == "same" && rest == "":
		return p.previous, nil
	case word == "same":
		if line, ok := p.byID[rest]; ok {
			return line, nil
		}
		return nil, fmt.Errorf("no line had the id %q", rest)
	}
	r := p.frame(narad.Type(word))
	for rest != "" {
		var err error
		if rest, err = r.assign(rest); err != nil {
			return nil, err
		}
	}
	p.number(r)
	return r.line(), nil
}

// frame returns a record with the fields that its class and type always have.
func (p *player) frame(t narad.Type) *record {
	r := &record{kind: t}
	r.put("type", quoted(string(t)))
	r.put("protocolVersion", `"narad/v1"`)
	class := t.Class()
	if class == narad.ClassControl {
		return r
	}
	if class != narad.ClassHydrate {
		r.put("eventId", quoted("e"+strconv.Itoa(p.events)))
	}
	at := time.Date(2026, 8, 5, 0, 0, 0, 0, time.UTC).Add(time.Duration(p.events) * time.Second)
	r.put("timestamp", quoted(at.Format(time.RFC3339)))
	if t != narad.TypeWorkspaceRevision {
		r.put("sessionId", quoted(p.session))
	}
	if class == narad.ClassAuthority || class == narad.ClassUnknown {
		r.ordered = true
		r.put("sessionSequence", strconv.FormatInt(p.last+1, 10))
	}
	for _, f := range defaults[t] {
		r.put(f[0], f[1])
	}
	return r
}

// defaults are the fields that a scenario seldom cares for.
var defaults = map[narad.Type][][2]string{
	narad.TypeRunPaused:           {{"reason", `"capacity"`}, {"resumeMode", `"command"`}},
	narad.TypeRunError:            {{"code", `"failed"`}, {"message", `"It failed."`}},
	narad.TypeInterruptRequested:  {{"kind", `"approval"`}, {"actions", `["approve","deny"]`}},
	narad.TypeInterruptResolved:   {{"decision", `"approve"`}},
	narad.TypeToolCallStarted:     {{"toolName", `"search"`}, {"executor", `"backend"`}, {"args", `{}`}},
	narad.TypeToolCallFinished:    {{"outcome", `"success"`}, {"response", `null`}},
	narad.TypeMessageUserRecorded: {{"messageScope", `"session"`}, {"content", `"hello"`}},
	narad.TypeMessageTextStarted:  {{"messageScope", `"session"`}, {"role", `"assistant"`}},
	narad.TypeMessageTextDelta:    {{"delta", `"word "`}},
	narad.TypeMessageRedacted:     {{"reason", `"policy"`}, {"displayReplacement", `null`}},
	narad.TypeReasoningDelta:      {{"delta", `"thought "`}},
	narad.TypeProgressRecorded:    {{"category", `"phase"`}, {"label", `"Working"`}, {"status", `"active"`}, {"privacy", `"public"`}},
	narad.TypeStateSnapshot:       {{"scope", `"session"`}, {"state", `{}`}},
	narad.TypeStateDelta:          {{"scope", `"session"`}},
	narad.TypeStateCompacted:      {{"scope", `"session"`}},
	narad.TypeUIStateSnapshot:     {{"scope", `"session"`}, {"state", `{}`}},
	narad.TypeUIStateDelta:        {{"scope", `"session"`}},
	narad.TypeSessionCustom:       {{"name", `"test.note"`}, {"value", `1`}},
	narad.TypeRunCustom:           {{"name", `"test.note"`}, {"value", `1`}},
	narad.TypeWorkflowCustom:      {{"name", `"test.note"`}, {"value", `1`}},
	narad.TypeNodeCustom:          {{"name", `"test.note"`}, {"value", `1`}},
	narad.TypeSessionRaw:          {{"contentType", `"text/plain"`}, {"payload", `""`}},
	narad.TypeRunRaw:              {{"contentType", `"text/plain"`}, {"payload", `""`}},
	narad.TypeWorkflowRaw:         {{"contentType", `"text/plain"`}, {"payload", `""`}},
	narad.TypeNodeRaw:             {{"contentType", `"text/plain"`}, {"payload", `""`}},
	narad.TypeWorkspaceRevision:   {{"workspaceId", `"ws"`}},
	narad.TypeSessionCreated:      {{"workspaceId", `"ws"`}},
	narad.TypeSessionUpdated:      {{"workspaceId", `"ws"`}},
	narad.TypeSessionArchived:     {{"workspaceId", `"ws"`}},
	narad.TypeMessagesSnapshot:    {{"snapshotId", `"snap"`}, {"messages", `[]`}},
	narad.TypeGraphSnapshot: {{"scope", `"run"`}, {"graphSchemaVersion", `"narad.graph/v1"`},
		{"rootNodeId", `"n"`}, {"nodes", `[]`}, {"edges", `[]`}},
	narad.TypeGraphDelta: {{"scope", `"run"`}, {"graphSchemaVersion", `"narad.graph/v1"`}},
}

// shortNames are the names of the short form and the fields that they stand for.
var shortNames = map[string]string{
	"seq": "sessionSequence", "tree": "sequence", "wseq": "workflowSequence",
	"session": "sessionId", "id": "eventId", "at": "timestamp",
	"run": "runId", "root": "rootRunId", "parent": "parentRunId", "parentTool": "parentToolCallId",
	"wf": "workflowId", "node": "nodeId", "tool": "toolCallId", "wait": "waitId", "int": "interruptId",
	"msg": "messageId", "reasoning": "reasoningId", "view": "viewId", "progress": "progressId",
	"attachment": "attachmentId", "artifact": "artifactId", "client": "clientExecutorId",
	"target": "targetRunId", "rev": "revision", "base": "baseRevision", "workspace": "workspaceId",
	"covers": "coversThroughSessionSequence", "source": "sourceEventId", "replacement": "displayReplacement",
}

// fieldName returns the wire name of a name of the short form.
func fieldName(t narad.Type, name string) string {
	switch {
	case name == "name" && t == narad.TypeToolCallStarted:
		return "toolName"
	case name == "scope" && (t == narad.TypeMessageUserRecorded || t == narad.TypeMessageTextStarted):
		return "messageScope"
	case name == "text" && t == narad.TypeMessageUserRecorded:
		return "content"
	case name == "text":
		return "delta"
	}
	if long, ok := shortNames[name]; ok {
		return long
	}
	return name
}

// A record is a JSON object whose fields keep their order.
type record struct {
	kind    narad.Type
	ordered bool // it has a place in the orderings
	fields  [][2]string
	absent  []string // fields that the scenario leaves out
}

func (r *record) get(name string) string {
	for _, f := range r.fields {
		if f[0] == name {
			return f[1]
		}
	}
	return ""
}

func (r *record) put(name, value string) {
	for i := range r.fields {
		if r.fields[i][0] == name {
			r.fields[i][1] = value
			return
		}
	}
	r.fields = append(r.fields, [2]string{name, value})
}

// fill puts a field that the scenario did not name.
func (r *record) fill(name, value string) {
	if r.get(name) == "" {
		r.put(name, value)
	}
}

// assign reads one NAME=VALUE or -NAME, and returns what follows it.
func (r *record) assign(text string) (rest string, err error) {
	if name, ok := strings.CutPrefix(text, "-"); ok {
		name, rest, _ = strings.Cut(name, " ")
		r.absent = append(r.absent, fieldName(r.kind, name))
		return strings.TrimSpace(rest), nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.Contains(name, " ") {
		return "", fmt.Errorf("want NAME=VALUE at %q", text)
	}
	value, rest, err = cutValue(value)
	r.put(fieldName(r.kind, name), value)
	return rest, err
}

// cutValue cuts a value off: JSON where the text begins with a bracket, a brace or
// a quote; otherwise a word, which is JSON if it can be and a string if not.
func cutValue(text string) (value, rest string, err error) {
	if text != "" && strings.ContainsRune(`{["`, rune(text[0])) {
		d := json.NewDecoder(strings.NewReader(text))
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return "", "", fmt.Errorf("want JSON at %q: %w", text, err)
		}
		return string(raw), strings.TrimSpace(text[d.InputOffset():]), nil
	}
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if n, ok := repeated(word, "*"); ok {
		return quoted(strings.Repeat("x", n)), rest, nil
	}
	if n, ok := repeated(word, "^"); ok {
		return strings.Repeat("[", n) + "1" + strings.Repeat("]", n), rest, nil
	}
	if json.Valid([]byte(word)) {
		return word, rest, nil
	}
	return quoted(word), rest, nil
}

func repeated(word, sign string) (int, bool) {
	digits, ok := strings.CutPrefix(word, sign)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil
}

// number fills in the places in the run tree and the workflow, and what follows
// from the fields that the scenario names.
func (p *player) number(r *record) {
	if run := r.get("runId"); run != "" && r.kind.Class() != narad.ClassHydrate {
		r.fill("rootRunId", run)
		if r.kind == narad.TypeRunStopRequested {
			r.fill("targetRunId", run)
		}
	}
	root, workflow := text(r.get("rootRunId")), text(r.get("workflowId"))
	switch {
	case r.get("sourceEventId") != "":
		r.fill("sourceSessionId", `"child-session"`)
	case r.ordered && root != "":
		r.fill("sequence", strconv.FormatInt(p.trees[root]+1, 10))
	}
	if r.ordered && workflow != "" {
		r.fill("workflowSequence", strconv.FormatInt(p.workflows[workflow]+1, 10))
	}
}

func (r *record) line() []byte {
	var out bytes.Buffer
	for _, f := range r.fields {
		if slices.Contains(r.absent, f[0]) {
			continue
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.WriteString(quoted(f[0]) + ":" + f[1])
	}
	return []byte("{" + out.String() + "}")
}

// text reads a JSON string; what is none is "".
func text(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) != nil {
		return ""
	}
	return s
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}
