package narad

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatARecordIs classifies before anything else is judged (facts §2).
func TestWhatARecordIs(t *testing.T) {
	const rest = `,"protocolVersion":"narad/v1","eventId":"1.a","timestamp":"2026-08-05T00:00:00Z","sessionId":"s","sessionSequence":1}`
	for _, tc := range []struct {
		text string
		code Code
		path string
	}{
		{`null`, CodeUnknownRecord, ""},
		{`7`, CodeUnknownRecord, ""},
		{`"run.started"`, CodeUnknownRecord, ""},
		{`[]`, CodeUnknownRecord, ""},
		{`[{"type":"run.started"` + rest + `]`, CodeUnknownRecord, ""},
		{`{}`, CodeUnknownRecord, "/type"},
		{`{"type":null` + rest, CodeUnknownRecord, "/type"},
		{`{"type":7` + rest, CodeUnknownRecord, "/type"},
		{`{"type":["run.started"]` + rest, CodeUnknownRecord, "/type"},
		{`{"Type":"run.started"` + rest, CodeUnknownRecord, "/type"},
		{`{"type":"run.started","protocolVersion":"narad/v1"}`, CodeUnknownRecord, "/eventId"}, // V1
		{`{"type":"foo.bar","protocolVersion":"narad/v1"}`, CodeUnknownRecord, "/type"},
		{`{"type":"foo.bar","protocolVersion":"narad/v1","eventId":7}`, CodeUnknownRecord, "/type"},
		{`{"type":"client.detached","protocolVersion":"narad/v1"}`, CodeUnknownRecord, "/type"},
		{`{"type":"foo.bar"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":""` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"Run.started"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"run.started "` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"run.foo"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"run.heartbeat"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"workflow.foo"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"ui.state.compacted"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"run.custom.x"` + rest, CodeUnknownEvent, "/type"},
		{`{"type":"graph.snapshot"` + rest, CodeInvalidHydrate, "/eventId"},
		{`{"type":"client.heartbeat"` + rest, CodeInvalidControl, "/eventId"},
	} {
		for _, d := range decoders {
			rec, err := d.Decode([]byte(tc.text))
			if got := refusalOf(err); got.Code != tc.code || got.Path != tc.path || rec != nil {
				t.Errorf("strict %v: got %v, %v; want %s at %q\n%s", d.Strict, rec, err, tc.code, tc.path, tc.text)
			}
		}
	}
}

// TestProtocolVersions: only narad/v1 is understood.
func TestProtocolVersions(t *testing.T) {
	for _, s := range shapes {
		for _, version := range []string{``, `null`, `1`, `""`, `"narad/v2"`, `"narad/v1.0"`, `"Narad/v1"`, `"narad/v1 "`, `["narad/v1"]`} {
			o := example(t, s.kind).without("protocolVersion")
			if version != "" {
				o = o.with("protocolVersion", version)
			}
			for _, d := range decoders {
				if _, err := d.Decode([]byte(o.text())); refusalOf(err).Code != CodeUnsupported {
					t.Errorf("%s, version %s, strict %v: got %v", s.kind, version, d.Strict, err)
				}
			}
		}
	}
}

// classes and profiles as the specification lists them (§2.1, §8, §9, §11).
func TestClassesAndProfiles(t *testing.T) {
	classOf := map[string]Class{
		"session": ClassAuthority, "workflow": ClassAuthority, "run": ClassAuthority, "activity": ClassAuthority,
		"watch": ClassWatch, "hydrate": ClassHydrate, "control": ClassControl,
	}
	of := map[Profile]string{
		Core:         "run.started run.paused run.resumed run.stop.requested run.finished run.error run.cancelled interrupt.requested interrupt.resolved tool.call.started tool.call.finished session.revision run.revision client.attached client.heartbeat client.tool.execute client.tool.finish server.heartbeat",
		Workflow:     "workflow.started workflow.paused workflow.resumed workflow.stop.requested workflow.finished workflow.error workflow.cancelled workflow.step.started workflow.step.finished workflow.step.failed workflow.edge.taken workflow.revision",
		Conversation: "message.user.recorded message.text.started message.text.delta message.text.completed message.redacted reasoning.started reasoning.delta reasoning.completed messages.snapshot",
		Attachments:  "attachment.added attachment.ready attachment.failed attachment.removed",
		Artifacts:    "artifact.added artifact.ready artifact.failed",
		StateProfile: "state.snapshot state.delta state.compacted",
		UI:           "ui.state.snapshot ui.state.delta view.opened view.updated view.closed",
		Graph:        "graph.snapshot graph.delta node.revision",
		Progress:     "progress.recorded",
		Workspace:    "workspace.revision session.created session.updated session.archived",
		Extensions:   "session.custom session.raw workflow.custom workflow.raw run.custom run.raw node.custom node.raw",
		Trace:        "trace.span.started trace.span.completed trace.event",
		Debug:        "debug.log debug.snapshot",
	}
	profiles := map[Type]Profile{}
	for p, names := range of {
		for name := range strings.FieldsSeq(names) {
			profiles[Type(name)] = p
		}
	}
	for _, s := range shapes {
		if got, want := s.kind.Class(), classOf[s.lane]; got != want {
			t.Errorf("%s is %s, want %s", s.kind, got, want)
		}
		if got, ok := profiles[s.kind]; !ok || s.kind.Profile() != got {
			t.Errorf("%s belongs to %v, want %v", s.kind, s.kind.Profile().IDs(), got.IDs())
		}
	}
	for unknown, want := range map[Type]Profile{
		"workflow.foo": Workflow, "messages.foo": Conversation, "node.foo.custom": Extensions, "x.raw": Extensions,
		"foo.bar": Core, "run.foo": Core, "": Core,
	} {
		if got := unknown.Profile(); got != want || unknown.Class() != ClassUnknown {
			t.Errorf("%q belongs to %v and is %s, want %v", unknown, got.IDs(), unknown.Class(), want.IDs())
		}
	}
}

func TestProfileIDs(t *testing.T) {
	ids := AllProfiles.IDs()
	want := strings.Fields("workflow conversation attachments artifacts state ui graph progress workspace extensions trace debug")
	for i, name := range want {
		if ids[i] != "narad."+name+"/v1" {
			t.Errorf("profile %d is %s, want %s", i, ids[i], name)
		}
		long, ok := ParseProfile(ids[i])
		short, ok2 := ParseProfile(name)
		if !ok || !ok2 || long != short || !slices.Equal(long.IDs(), ids[i:i+1]) {
			t.Errorf("%s reads as %v, %v", name, long.IDs(), short.IDs())
		}
	}
	if len(ids) != len(want) || Core.IDs() != nil {
		t.Errorf("all profiles are %v, the core is %v", ids, Core.IDs())
	}
	for _, id := range []string{"", "narad.core/v1", "narad.workflow/v2", "Workflow", "narad./v1"} {
		if p, ok := ParseProfile(id); ok {
			t.Errorf("%q reads as %v", id, p.IDs())
		}
	}
	if !AllProfiles.Has(Graph) || !Graph.Has(Core) || Graph.Has(Trace) || (Graph | UI).Has(Graph|Trace) {
		t.Error("Has")
	}
}

// TestNotNegotiated: of an event of a profile nobody claimed only the envelope is
// read, even if its type is unknown; watch and hydrate records are read as ever.
func TestNotNegotiated(t *testing.T) {
	for _, s := range shapes {
		without := s.kind.Profile()
		skipped := without != Core && s.kind.Class() == ClassAuthority
		for _, d := range decoders {
			d.Without = AllProfiles
			rec := mustDecode(t, d, example(t, s.kind).text())
			got, isSkipped := rec.(*Skipped)
			if isSkipped != skipped || rec.Type() != s.kind {
				t.Errorf("%s, strict %v: got a %T", s.kind, d.Strict, rec)
			}
			if !isSkipped {
				continue
			}
			want := mustDecode(t, Decoder{}, example(t, s.kind).text()).(Authority).Envelope()
			e := got.Envelope()
			if e.EventID != want.EventID || e.SessionID != want.SessionID || e.SessionSequence != want.SessionSequence ||
				e.WorkflowID != want.WorkflowID || e.WorkflowSequence != want.WorkflowSequence || e.Fingerprint() != want.Fingerprint() {
				t.Errorf("%s: the envelope is %+v, want %+v", s.kind, e, want)
			}
			if _, err := Encode(got); refusalOf(err).Code != CodeUnknownEvent {
				t.Errorf("%s: a skipped event was written: %v", s.kind, err)
			}
			for _, f := range s.fields { // the body may be anything, the envelope may not
				broken := example(t, s.kind).with(f.name, `{}`).text()
				_, err := d.Decode([]byte(broken))
				envelope := strings.Contains(envelopes["session"], f.name)
				if (err != nil) != envelope {
					t.Errorf("%s with a broken %s, strict %v: %v", s.kind, f.name, d.Strict, err)
				}
			}
		}
	}
	const tail = `","protocolVersion":"narad/v1","eventId":"1.a","timestamp":"2026-08-05T00:00:00Z","sessionId":"s","sessionSequence":1}`
	for name, want := range map[string]Code{
		"workflow.foo": "", "message.foo": "", "x.custom": "", "trace.foo": "",
		"foo.bar": CodeUnknownEvent, "run.foo": CodeUnknownEvent,
	} {
		_, err := Decoder{Without: AllProfiles}.Decode([]byte(`{"type":"` + name + tail))
		if refusalOf(err).Code != want {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if _, err := (Decoder{Without: AllProfiles &^ Workflow}).Decode([]byte(`{"type":"workflow.foo` + tail)); refusalOf(err).Code != CodeUnknownEvent {
		t.Errorf("an unknown type of a negotiated profile: %v", err)
	}
}

// TestProjections: a row copied from a child session keeps its own form, for a
// client alone (R20).
func TestProjections(t *testing.T) {
	for _, s := range shapes {
		if s.kind.Class() != ClassAuthority {
			continue
		}
		o := example(t, s.kind).with("sourceEventId", `"7.a"`).with("sourceSessionId", `"buoy"`)
		if s.lane == "run" || s.lane == "activity" {
			o = o.without("sequence", "workflowId", "workflowSequence")
		}
		rec := mustDecode(t, Decoder{}, o.text()).(Authority)
		e := rec.Envelope()
		if !e.Projection() || e.SourceEventID != "7.a" || e.SourceSessionID != "buoy" || !e.Nested() == (e.RunID == "tide.north") {
			t.Errorf("%s: the envelope is %+v", s.kind, e)
		}
		if _, err := DecodeStrict([]byte(o.text())); refusalOf(err).Path != "/sourceEventId" {
			t.Errorf("%s, strict: %v", s.kind, err)
		}
		if _, err := Encode(rec); refusalOf(err).Path != "/sourceEventId" {
			t.Errorf("%s was written: %v", s.kind, err)
		}
	}
}

// TestPack: a client leaves out members that it cannot read, and takes those that
// have not decided (§18.10).
func TestPack(t *testing.T) {
	text := example(t, TypeInterruptResolved).with("members",
		`[{"requestId":"a"},7,{"requestId":""},{"requestId":"b","decision":"x","toolName":7},{"decision":"x"}]`).text()
	got := mustDecode(t, Decoder{}, text).(*InterruptResolved).Members
	if len(got) != 2 || got[0].RequestID != "a" || got[0].Decision != "" || got[1].RequestID != "b" || got[1].Decision != "x" || got[1].ToolName != "" {
		t.Errorf("got %+v", got)
	}
}

// TestActions: a client reads what is no string as its text (§18.26).
func TestActions(t *testing.T) {
	text := example(t, TypeInterruptRequested).with("actions", `["a",7,null,"a"]`).text()
	if got := mustDecode(t, Decoder{}, text).(*InterruptRequested).Actions; !slices.Equal(got, []string{"a", "7", "null", "a"}) {
		t.Errorf("got %q", got)
	}
}

// TestUsage: unknown is not zero, and what is no number is left out.
func TestUsage(t *testing.T) {
	for text, want := range map[string]string{
		`{"promptTokens":0}`:                          `{"promptTokens":0}`,
		`{"promptTokens":-1,"totalTokens":3,"x":"y"}`: `{"totalTokens":3,"x":"y"}`,
		`{"elapsedMs":1204.5,"completionTokens":1e2}`: `{"completionTokens":100,"elapsedMs":1204.5}`,
		`{"promptTokens":"1","elapsedMs":1e400}`:      ``,
		`{}`:                                          ``,
		`[]`:                                          ``,
		`null`:                                        ``,
		`{"cachedTokens":{"deep":9007199254740993}}`:     `{"cachedTokens":{"deep":9007199254740993}}`,
		`{"totalTokens":9007199254740993,"totalCost":1}`: `{"totalCost":1}`,
	} {
		rec := mustDecode(t, Decoder{}, example(t, TypeRunFinished).with("usage", text).text())
		if got := parseObject(t, mustEncode(t, rec)).get("usage"); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// TestSnapshotItems reads the messages of a snapshot, whose form no text defines.
func TestSnapshotItems(t *testing.T) {
	text := example(t, TypeMessagesSnapshot).with("messages", `[
		{"messageId":"a","role":"user","content":"x","messageScope":"run","sessionSequence":3,"timestamp":"t","rootRunId":"r","runId":"s","attachmentIds":["f"],"redacted":true},
		{"messageId":"b","completed":false,"content":7,"sessionSequence":0,"messageScope":"moon"},
		{"role":"user"}, 7, null, {"messageId":""}
	]`).text()
	items := mustDecode(t, Decoder{Strict: true}, text).(*MessagesSnapshot).Items()
	if len(items) != 2 {
		t.Fatalf("got %d items: %+v", len(items), items)
	}
	a, b := items[0], items[1]
	if a.Role != RoleUser || a.Content != "x" || !a.Completed || a.MessageScope != ScopeRun || a.SessionSequence != 3 || a.Timestamp != "t" ||
		a.RootRunID != "r" || a.RunID != "s" || !slices.Equal(a.AttachmentIDs, []string{"f"}) || !a.Redacted {
		t.Errorf("the first is %+v", a)
	}
	if b.MessageID != "b" || b.Role != RoleAssistant || b.Content != "" || b.Completed || b.MessageScope != "" || b.SessionSequence != 0 || b.Redacted {
		t.Errorf("the second is %+v", b)
	}
}
