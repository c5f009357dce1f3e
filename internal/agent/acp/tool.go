package acp

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// tool is one open tool call.
type tool struct {
	agentID string // the agent's own, which may repeat over time (R4)
	id      string // the host's; "" while it is not announced
	refused bool   // it may not start any more
	works   bool   // the agent said that it is in progress
	by      *voice

	delegate *voice // guarded by turn.mu: who works below it; written by the reader
	denied   bool   // guarded by turn.mu
	because  string // guarded by turn.mu: what the person said who denied it

	name, kind, title string
	paths             []string
	args              narad.Raw
	corrected         narad.Raw // arguments that came after the start, nil if they are the same
	content           content
	output            narad.Raw // the raw output
	told              string    // of its output
}

// toolCall records the news of a tool call. begins says that it may be a new one.
func (t *turn) toolCall(u *update, begins bool) error {
	tool := t.find(u.ToolCallID)
	if tool == nil {
		if tool = t.newTool(u, begins); tool == nil {
			return nil
		}
	}
	if err := tool.learn(u); err != nil {
		return err
	}
	if tool.unwritten(u) || !t.announce(tool) {
		return nil
	}
	switch u.Status {
	case string(wire.ToolCallStatusCompleted):
		t.finish(tool, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		return nil
	case string(wire.ToolCallStatusFailed):
		t.finish(tool, agent.ToolResult{Outcome: narad.OutcomeError, Code: "tool_failed", Message: tool.reason()})
		return nil
	case "cancelled":
		t.finish(tool, agent.ToolResult{Outcome: narad.OutcomeCancelled, Message: tool.reason()})
		return nil
	case string(wire.ToolCallStatusInProgress):
		tool.works = true
	}
	// What a call shows before it works is what it is about, not what comes of it.
	if tool.works {
		t.tellOutput(tool)
	}
	return nil
}

func (t *turn) find(agentID string) *tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tool := range t.open {
		if tool.agentID == agentID {
			return tool
		}
	}
	return nil
}

// newTool keeps a call that is not open. An update of one that has ended comes too late
// and is none; neither is what is above the bound.
func (t *turn) newTool(u *update, begins bool) *tool {
	t.mu.Lock()
	_, ended := t.closed[u.ToolCallID]
	full := len(t.open) >= maxOpen
	t.mu.Unlock()
	if ended && !begins || full {
		return nil
	}
	v := t.voiceOf(u)
	if v == nil {
		v = t.root
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tool := &tool{agentID: u.ToolCallID, by: v}
	t.open = append(t.open, tool)
	return tool
}

// learn takes over what an update says. Each field replaces what was known of it.
func (tool *tool) learn(u *update) error {
	if u.Title != "" {
		tool.title = label(u.Title.plain(), maxTitle)
	}
	if u.ToolKind != "" {
		tool.kind = u.ToolKind
	}
	if u.Meta.ToolName != "" {
		tool.name = label(u.Meta.ToolName, maxName)
	}
	if paths := u.paths(); len(paths) > 0 {
		tool.paths = paths
	}
	if !blank(u.RawInput) {
		tool.learnArgs(narad.Raw(u.RawInput))
	}
	if !absent(u.RawOutput) {
		tool.output = narad.Raw(u.RawOutput)
	}
	if absent(u.Content) {
		return nil
	}
	c, err := readContent(u.Content)
	if err != nil {
		return err
	}
	tool.content = c
	return nil
}

// learnArgs takes over arguments. Those that come after the start cannot stand in its
// fact; they are told with the end.
func (tool *tool) learnArgs(args narad.Raw) {
	switch {
	case tool.id == "":
		tool.args = args
	case bytes.Equal(args, tool.args):
		tool.corrected = nil
	default:
		tool.corrected = fit(args)
	}
}

// unwritten reports whether the agent has only said that it is writing the arguments of
// a call: it has not begun, and its fact would have none.
func (tool *tool) unwritten(u *update) bool {
	pending := u.Status == "" || u.Status == string(wire.ToolCallStatusPending)
	return tool.id == "" && pending && !absent(u.RawInput) && tool.args == nil
}

// announce records the start of a call once. It reports whether the call is open.
func (t *turn) announce(tool *tool) bool {
	if tool.id != "" || tool.refused {
		return !tool.refused
	}
	t.endMessage(tool.by)
	t.beginRound(tool.by)
	args := tool.args
	if args == nil {
		args = narad.Raw("{}")
	}
	start := agent.Tool{
		AgentID: short(tool.agentID, maxID), Name: tool.calledName(), Kind: tool.knownKind(), Title: tool.title,
		Paths: t.files(tool),
	}
	err := mended(fit(args), func(args narad.Raw) (err error) {
		start.Args = args
		tool.id, err = tool.by.h.StartTool(t.record, start)
		return err
	})
	if !t.took(tool.by, err) {
		tool.id, tool.refused = "", true
	}
	return !tool.refused
}

// files returns the files that a call names or would change, as the policy knows them: by
// absolute paths. The protocol demands these, and some agents tell others.
func (t *turn) files(tool *tool) []string {
	list := slices.Clone(tool.paths)
	for _, d := range tool.content.Diffs {
		list = append(list, d.Path)
	}
	for i, path := range list {
		if !filepath.IsAbs(path) {
			list[i] = filepath.Join(t.peer.child.dir, path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// touches are the files that a call which succeeded has read or changed, as far as its
// agent tells: a diff without an old text has made its file.
func (t *turn) touches(tool *tool) []facts.FileTouch {
	var list []facts.FileTouch
	told := map[string]bool{}
	add := func(path, op string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(t.peer.child.dir, path)
		}
		if !told[path] {
			told[path] = true
			list = append(list, facts.FileTouch{Path: path, Op: op})
		}
	}
	for _, d := range tool.content.Diffs {
		op := "edit"
		if d.made() {
			op = "write"
		}
		add(d.Path, op)
	}
	if kind := tool.knownKind(); kind == string(wire.ToolKindRead) || kind == string(wire.ToolKindEdit) || kind == string(wire.ToolKindDelete) {
		for _, path := range tool.paths {
			add(path, kind)
		}
	}
	return list
}

var kinds = []wire.ToolKind{
	wire.ToolKindRead, wire.ToolKindEdit, wire.ToolKindDelete, wire.ToolKindMove, wire.ToolKindSearch,
	wire.ToolKindExecute, wire.ToolKindThink, wire.ToolKindFetch,
}

// knownKind returns the word by which a policy knows the call.
func (tool *tool) knownKind() string {
	if slices.Contains(kinds, wire.ToolKind(tool.kind)) {
		return tool.kind
	}
	return string(wire.ToolKindOther)
}

var oneWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:/-]{0,63}$`)

// calledName returns the tool's name. The protocol has none: some agents tell it aside,
// some as the title; else the kind has to do.
func (tool *tool) calledName() string {
	switch {
	case tool.name != "":
	case oneWord.MatchString(tool.title):
		tool.name = tool.title
	default:
		tool.name = tool.knownKind()
	}
	return tool.name
}

// tellOutput records what is new of a call's output. The protocol replaces content as a
// whole; output that does not go on where it was is told again.
func (t *turn) tellOutput(tool *tool) {
	const most = 2 << 20 // the host keeps less (R43)
	now := tool.content.text.settled()
	if now == tool.told || len(tool.told) > most {
		return
	}
	news := now
	if rest, ok := strings.CutPrefix(now, tool.told); ok {
		news = rest
	}
	tool.told = now
	t.took(tool.by, tool.by.h.ToolOutput(t.record, tool.id, news))
}

// claim reports whether the caller is the one that finishes a call, and whether the call
// was denied.
func (t *turn) claim(called *tool) (first, denied bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.open, called)
	if i < 0 {
		return false, false
	}
	t.open = slices.Delete(t.open, i, i+1)
	if len(t.closed) >= maxClosed {
		clear(t.closed)
	}
	t.closed[called.agentID] = struct{}{}
	last := !slices.ContainsFunc(t.open, func(other *tool) bool { return other.by == called.by })
	if called.id != "" && last {
		called.by.worked = true
	}
	return true, called.denied
}

// codeDenied is the code of a call that was not permitted (R10).
const codeDenied = "denied"

// finish records the end of a call, and before it that of the run below it.
func (t *turn) finish(tool *tool, r agent.ToolResult) {
	first, denied := t.claim(tool)
	if !first {
		return
	}
	if denied {
		r = tool.denial()
	}
	if tool.delegate != nil {
		t.endDelegate(tool.delegate, r)
	}
	if tool.id == "" {
		return // it never began
	}
	for i := range tool.content.Other {
		t.keep(tool.by, tool.id, &tool.content.Other[i])
	}
	if r.Outcome == narad.OutcomeSuccess {
		r.Touches = t.touches(tool)
	}
	err := mended(tool.response(), func(response narad.Raw) error {
		r.Response = response
		return tool.by.h.FinishTool(t.record, tool.id, r)
	})
	t.took(tool.by, err)
}

// denial is the end of a call that was not permitted. The reason is settled once it is.
func (tool *tool) denial() agent.ToolResult {
	return agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: codeDenied, Message: tool.because}
}

// reason is what a call says of why it failed: its text, else what its raw output calls an
// error or a message.
func (tool *tool) reason() string {
	if tool.content.Text != "" {
		return tool.content.Text
	}
	if s, ok := tool.output.IsString(); ok {
		return s
	}
	failed := tool.output.Field("error")
	for _, told := range []narad.Raw{failed, failed.Field("message"), tool.output.Field("message")} {
		if s, ok := told.IsString(); ok && s != "" {
			return s
		}
	}
	return ""
}

// deny records that a call was not permitted, whatever its agent will say of it. The
// call of a delegate that is at work ends when the agent says so.
func (t *turn) deny(tool *tool, said string) {
	t.mu.Lock()
	tool.denied, tool.because, t.denied = true, said, true
	works := tool.delegate != nil
	t.mu.Unlock()
	if works {
		return
	}
	if first, _ := t.claim(tool); first {
		t.took(tool.by, tool.by.h.FinishTool(t.record, tool.id, tool.denial()))
	}
}

// endDelegate ends the run below a call, and first the calls that are open in it.
func (t *turn) endDelegate(v *voice, r agent.ToolResult) {
	for _, tool := range t.openOf(v) {
		t.finish(tool, agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: "unfinished"})
	}
	t.hush(v)
	e := agent.Ending{StopReason: "completed"}
	switch r.Outcome {
	case narad.OutcomeError:
		e = agent.Ending{Outcome: agent.Failed, Code: r.Code, Message: r.Message}
	case narad.OutcomeCancelled:
		e = agent.Ending{Outcome: agent.Cancelled, Code: r.Code}
	}
	t.took(v, v.h.End(t.record, e))
}

// openOf returns the open calls of a run, the oldest first.
func (t *turn) openOf(v *voice) []*tool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*tool
	for _, tool := range t.open {
		if tool.by == v {
			list = append(list, tool)
		}
	}
	return list
}

// response is what a call brought: its content, under "output" the raw output, and under
// "input" the arguments if they became others.
func (tool *tool) response() narad.Raw {
	var r narad.Raw
	if !tool.content.empty() {
		r = encode(tool.content)
	}
	for _, more := range []struct {
		name  string
		value narad.Raw
	}{{"output", tool.output}, {"input", tool.corrected}} {
		if more.value == nil {
			continue
		}
		head := narad.Raw("{")
		if len(r) > len("{}") {
			head = slices.Concat(r[:len(r)-1], narad.Raw(","))
		}
		r = slices.Concat(head, narad.Quote(more.name), narad.Raw(":"), more.value, narad.Raw("}"))
	}
	return r // the host keeps what no event can hold (R7)
}
