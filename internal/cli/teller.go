package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// known answers what facts before the present one told.
type known interface {
	Run(id string) (session.Run, bool)
	Tool(id string) (session.Tool, bool)
}

// teller tells facts to people as they come.
type teller struct {
	screen *screen
	state  known
	who    func(facts.Actor) string
	gates  map[string]bool   // runs that exist to ask: not told as runs (R10)
	names  map[string]string // who works in a nested run
}

func newTeller(s *screen, state known, who func(facts.Actor) string) *teller {
	return &teller{screen: s, state: state, who: who, gates: map[string]bool{}, names: map[string]string{}}
}

// learn takes from a fact what is needed to tell later ones.
func (t *teller) learn(record narad.Record) {
	if f, ok := record.(*narad.RunStarted); ok {
		t.gates[f.RunID] = facts.Gate(&f.Event)
		t.names[f.RunID] = helperName(f)
	}
}

// helperName is who works in a nested run; a run of the session itself is called by no name.
func helperName(f *narad.RunStarted) string {
	if f.RunID == f.RootRunID {
		return ""
	}
	if f.WorkflowID != "" && f.ParentToolCallID == "" { // a branch, which is called by its own name
		return facts.AgentID(&f.Event)
	}
	return facts.AgentName(&f.Event)
}

// tell tells one fact.
func (t *teller) tell(record narad.Record) {
	t.learn(record)
	switch f := record.(type) {
	case *narad.RunStarted, *narad.RunFinished, *narad.RunError, *narad.RunCancelled, *narad.RunPaused, *narad.RunStopRequested:
		t.run(f.(narad.Authority))
	case *narad.MessageUserRecorded, *narad.MessageTextDelta, *narad.MessageTextCompleted, *narad.MessageRedacted,
		*narad.ReasoningDelta, *narad.ReasoningCompleted:
		t.conversation(f.(narad.Authority))
	case *narad.ToolCallStarted:
		t.toolStarted(f)
	case *narad.ToolCallFinished:
		t.toolFinished(f)
	case *narad.InterruptRequested:
		t.asked(f)
	case *narad.InterruptResolved:
		t.decided(f)
	case *narad.Attachment:
		t.attachment(f)
	case *narad.Artifact:
		t.artifact(f)
	case *narad.ProgressRecorded:
		t.progress(f)
	case *narad.Custom:
		t.custom(f)
	default:
		if fact, ok := record.(narad.Authority); ok {
			t.workflow(fact)
		}
	}
}

// margin shows how deep below the root a run is.
func (t *teller) margin(runID string) string {
	return strings.Repeat(t.screen.dim("│ "), t.depth(runID))
}

const maxDepthShown = 6

func (t *teller) depth(runID string) int {
	depth := 0
	for depth < maxDepthShown {
		run, ok := t.state.Run(runID)
		if !ok || run.ParentRunID == "" {
			break
		}
		if !t.gates[runID] {
			depth++
		}
		runID = run.ParentRunID
	}
	return depth
}

func (t *teller) line(runID, text string) { t.screen.line(t.margin(runID), text) }

func (t *teller) run(fact narad.Authority) {
	e := fact.Envelope()
	if t.gates[e.RunID] {
		return
	}
	switch f := fact.(type) {
	case *narad.RunStarted:
		t.runStarted(f)
	case *narad.RunStopRequested:
		if f.TargetRunID == e.RootRunID {
			t.line(e.RunID, t.screen.yellow("■ stop requested"))
		}
	case *narad.RunPaused:
		if f.InterruptID == "" {
			t.line(e.RunID, t.screen.dim("paused: "+oneLine(joined(", ", f.Reason, f.Message, f.RetryAt))))
		}
	default:
		t.runEnded(fact)
	}
}

func (t *teller) runStarted(f *narad.RunStarted) {
	if f.RunID != f.RootRunID {
		t.line(f.ParentRunID, t.screen.cyan("┌ "+orWord(t.names[f.RunID], "nested run")))
	}
}

func (t *teller) runEnded(fact narad.Authority) {
	e := fact.Envelope()
	name, margin := "run", ""
	if e.Nested() {
		name, margin = "└ "+orWord(t.names[e.RunID], "nested run"), t.parentMargin(e.RunID)
	}
	t.screen.line(margin, t.ending(fact, name))
}

func (t *teller) parentMargin(runID string) string {
	run, _ := t.state.Run(runID)
	return t.margin(run.ParentRunID)
}

// ending is the line about a run's end.
func (t *teller) ending(fact narad.Authority, name string) string {
	switch f := fact.(type) {
	case *narad.RunFinished:
		text := t.screen.green(name+" finished") + t.screen.dim(usageWords(f.Usage))
		if reason := facts.StopReason(&f.Event); reason != "" && reason != "completed" {
			text += t.screen.yellow(" (" + oneLine(reason) + ")")
		}
		return text
	case *narad.RunError:
		return t.screen.red(name+" failed: "+oneLine(joined(": ", f.Code, f.Message))) + t.screen.dim(usageWords(f.Usage))
	case *narad.RunCancelled:
		return t.screen.yellow(name+" cancelled") + t.screen.dim(" "+oneLine(joined(": ", f.Code, f.Message)))
	}
	return ""
}

func usageWords(u *narad.Usage) string {
	if u == nil || u.TotalTokens == nil {
		return ""
	}
	return ", " + strconv.FormatInt(*u.TotalTokens, 10) + " tokens"
}

func plain(text string) string { return text }

func (t *teller) conversation(fact narad.Authority) {
	e := fact.Envelope()
	switch f := fact.(type) {
	case *narad.MessageUserRecorded:
		for part := range strings.SplitSeq(strings.TrimSpace(escape(f.Content)), "\n") {
			t.line(e.RunID, t.screen.bold("› "+part))
		}
	case *narad.MessageTextDelta:
		t.screen.piece("message "+f.MessageID, t.margin(e.RunID), escape(f.Delta), plain)
	case *narad.ReasoningDelta:
		t.screen.piece("reasoning "+f.ReasoningID, t.margin(e.RunID)+t.screen.dim("~ "), escape(f.Delta), t.screen.dim)
	case *narad.MessageTextCompleted:
		t.completed("message " + f.MessageID)
	case *narad.ReasoningCompleted:
		t.completed("reasoning " + f.ReasoningID)
	case *narad.MessageRedacted:
		t.screen.line("", t.screen.yellow("message "+oneLine(f.MessageID)+" redacted: "+oneLine(f.Reason)))
	}
}

// completed ends the line of a voice that says no more.
func (t *teller) completed(voice string) {
	if t.screen.voice == voice {
		t.screen.finish()
	}
}

// askUser is the tool through which questions are asked (R13): the question says it all.
const askUser = "ask_user"

func (t *teller) toolStarted(f *narad.ToolCallStarted) {
	if f.ToolName == askUser {
		return
	}
	title, _ := f.Optional("title").IsString()
	if title == "" {
		title = string(f.Args)
	}
	t.line(f.RunID, t.screen.cyan("● "+oneLine(f.ToolName))+" "+short(title, 100))
}

func (t *teller) toolFinished(f *narad.ToolCallFinished) {
	call, _ := t.state.Tool(f.ToolCallID)
	name := orWord(facts.ToolName(&f.Event), orWord(call.ToolName, "tool"))
	if name == askUser {
		return
	}
	code := f.Code
	if code == "" { // that of an executor stands in its response
		code, _ = f.Response.Field("code").IsString()
	}
	reason := oneLine(joined(": ", code, f.Message))
	switch f.Outcome {
	case narad.OutcomeSuccess:
		t.line(f.RunID, t.screen.green("✓ "+name)+t.screen.dim(duration(f.Optional("durationMs"))))
	case narad.OutcomeCancelled:
		t.line(f.RunID, t.screen.yellow("– "+name+" cancelled ")+reason)
	default:
		t.line(f.RunID, t.screen.red("✗ "+name+" failed ")+reason)
	}
}

func duration(ms narad.Raw) string {
	n, err := strconv.ParseInt(string(ms), 10, 64)
	if err != nil {
		return ""
	}
	return " " + (time.Duration(n) * time.Millisecond).String()
}

// asked tells what is to be decided, whether or not somebody here will.
func (t *teller) asked(f *narad.InterruptRequested) {
	t.waits(session.Interrupt{
		InterruptID: f.InterruptID, RunID: f.RunID, Title: f.Title, Message: f.Message, Input: f.Input, Actions: f.Actions,
	})
}

// waits tells an interrupt that is open.
func (t *teller) waits(i session.Interrupt) {
	margin := t.margin(i.RunID)
	t.screen.line(margin, t.screen.yellow("? "+orWord(i.Title, "a decision is needed"))+t.screen.dim("  "+oneLine(i.InterruptID)))
	t.screen.matter(margin+"  ", i.Message, i.Input)
	t.screen.line(margin+"  ", t.screen.dim(oneLine(strings.Join(i.Actions, " · "))))
}

// matter writes what an interrupt is about.
func (s *screen) matter(margin, message string, input narad.Raw) {
	for _, text := range []string{message, resource(input)} {
		if text != "" {
			s.line(margin, escape(strings.TrimRight(text, "\n")))
		}
	}
	for _, m := range packOf(input) {
		s.line(margin, m.words())
	}
	for i, q := range questionsOf(input) {
		s.line(margin, q.words(i+1))
	}
}

// resource is what a permission is about (R11).
func resource(input narad.Raw) string {
	var parts []string
	for _, name := range []string{"action", "resource"} {
		if text, ok := input.Field(name).IsString(); ok {
			parts = append(parts, text)
		}
	}
	detail, _ := input.Field("detail").IsString()
	return joined("\n", joined(" ", parts...), detail, quorumWords(input))
}

func (t *teller) attachment(f *narad.Attachment) {
	switch m := facts.MaterialOf(&f.Event); f.Kind {
	case narad.TypeAttachmentReady:
		t.screen.line("", "⇪ "+materialWords(m))
	case narad.TypeAttachmentFailed:
		t.screen.line("", t.screen.red("⇪ "+materialWords(m)+": "+oneLine(f.Code)))
	case narad.TypeAttachmentRemoved:
		t.screen.line("", t.screen.dim("⇪ "+materialWords(m)+" was removed"))
	}
}

func (t *teller) artifact(f *narad.Artifact) {
	switch m := facts.MaterialOf(&f.Event); f.Kind {
	case narad.TypeArtifactReady:
		t.line(f.RunID, "⇩ "+materialWords(m)+t.screen.dim("  "+oneLine(f.ArtifactID)))
	case narad.TypeArtifactFailed:
		t.line(f.RunID, t.screen.red("⇩ "+materialWords(m)+": "+oneLine(f.Code)))
	}
}

func materialWords(m facts.Material) string {
	size := ""
	if m.Digest != "" {
		size = count(m.Bytes, "byte")
	}
	return oneLine(joined(", ", m.Name, m.MediaType, size))
}

func (t *teller) decided(f *narad.InterruptResolved) {
	actor := actorOf(f)
	text := t.screen.bold("→ "+oneLine(f.Decision)) + t.screen.dim(" by "+t.who(actor))
	if f.Reason != "" && f.Reason != "policy" {
		text += t.screen.dim(": " + oneLine(f.Reason))
	}
	t.line(f.RunID, text)
}

func (t *teller) progress(f *narad.ProgressRecorded) {
	if f.Privacy == narad.PrivacySensitive {
		return
	}
	how := f.Detail
	if how == "" || f.Status != narad.ProgressActive {
		how = string(f.Status)
	}
	t.line(f.RunID, t.screen.dim("· "+oneLine(f.Label+" ("+how+")")))
}

func (t *teller) custom(f *narad.Custom) {
	if output, ok := facts.Read[facts.Output](f, facts.ToolOutput); ok {
		t.screen.piece("tool "+output.ToolCallID, t.margin(f.RunID)+"    ", escape(output.Text), t.screen.dim)
		if output.Truncated {
			t.line(f.RunID, t.screen.dim("    (more output is not kept)"))
		}
		return
	}
	if votes, ok := facts.Read[facts.Decided](f, facts.Decision); ok {
		for _, m := range votes.Members {
			t.line(f.RunID, t.screen.bold("→ "+voteWords(votes.InterruptID, m))+t.screen.dim(" by "+t.who(votes.Actor)))
		}
		return
	}
	if f.Name == freshSession {
		t.line(f.RunID, t.screen.yellow("(the agent does not remember what was said before: it began a new session of its own)"))
		return
	}
	if text := t.deskWords(f); text != "" {
		t.screen.line("", t.screen.dim(text))
	}
}

// voteWords tells the decision of a member, or one vote for it.
func voteWords(interruptID string, m facts.MemberDecided) string {
	word := m.Decision
	if m.Vote {
		word += ", one vote"
	}
	if m.RequestID == interruptID {
		return oneLine(word)
	}
	return oneLine(m.RequestID + " " + word)
}

// freshSession is the fact of an agent that could not load its session (docs/agents.md).
const freshSession = "acp.session.fresh"

// deskWords tells the facts about a session that Narad has no types for.
func (t *teller) deskWords(f *narad.Custom) string {
	if created, ok := facts.Read[facts.Created](f, facts.SessionCreated); ok {
		return "session " + oneLine(joined(", ", f.SessionID, created.Title, "agent "+created.Agent, created.Cwd))
	}
	if queued, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
		return "queued: " + short(queued.Content, 100)
	}
	switch f.Name {
	case facts.InputWithdrawn:
		return "a queued message was withdrawn"
	case facts.QueueReleased:
		return "the queue moves again"
	case facts.SessionArchived:
		return "archived"
	case facts.SessionRestored:
		return "restored"
	}
	return ""
}

// actorOf says who decided an interrupt (R6).
func actorOf(f *narad.InterruptResolved) facts.Actor {
	id, _ := f.Actor.Field("id").IsString()
	rule, _ := f.Actor.Field("rule").IsString()
	return facts.Actor{ID: id, Rule: rule}
}
