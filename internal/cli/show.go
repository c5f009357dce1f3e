package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

type showCommand struct {
	hostFlags
	JSON    bool   `name:"json" help:"Print session, decisions and state as one JSON object."`
	Session string `arg:"" help:"Session."`
}

func (showCommand) Help() string { return "Example: mahati show SESSION" }

func (c showCommand) Run(ctx context.Context, a *app) error {
	home, err := c.dir(a)
	if err != nil {
		return err
	}
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	summary, err := host.Session(ctx, c.Session)
	if err != nil {
		return err
	}
	s := newStory(a.namer(home))
	for raw, err := range host.Events(ctx, c.Session, client.HistoryQuery{}) {
		if err != nil {
			return err
		}
		if err := s.add(raw); err != nil {
			return err
		}
	}
	if c.JSON {
		return a.printJSON(struct {
			Session   narad.Raw  `json:"session"`
			Decisions []decision `json:"decisions"`
			Snapshot  narad.Raw  `json:"snapshot"`
		}{summary.Raw, s.decisions, s.state.SnapshotJSON()})
	}
	s.print(&screen{console: a.out}, summary)
	return nil
}

// story is what happened in a session: its state, who decided what, and a timeline.
type story struct {
	state     *session.State
	who       func(facts.Actor) string
	names     map[string]string // of nested runs
	gates     map[string]bool
	decisions []decision
	times     []moment
	said      map[string]int // message -> its place in times
}

// decision is one answer to one question.
type decision struct {
	InterruptID string `json:"interruptId"`
	Kind        string `json:"kind"`
	Title       string `json:"title"`
	Member      string `json:"member,omitzero"`
	Decision    string `json:"decision"`
	ActorID     string `json:"actorId"`
	Rule        string `json:"rule,omitzero"`
	Who         string `json:"who"`
	Reason      string `json:"reason,omitzero"`
	RequestedAt string `json:"requestedAt"`
	DecidedAt   string `json:"decidedAt"`
	Sequence    int64  `json:"sessionSequence"`
}

// moment is one line of the timeline.
type moment struct {
	sequence  int64
	timestamp string
	what      string
	text      string
}

func newStory(who func(facts.Actor) string) *story {
	return &story{
		state: session.New(session.Options{}), who: who,
		names: map[string]string{}, gates: map[string]bool{}, decisions: []decision{}, said: map[string]int{},
	}
}

// add takes the next fact.
func (s *story) add(raw narad.Raw) error {
	record, err := narad.Decode(raw)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	fact, ok := record.(narad.Authority)
	if !ok {
		return nil
	}
	s.state.Apply(fact)
	s.decided(fact)
	s.timeline(fact)
	return nil
}

// decided keeps who decided what.
func (s *story) decided(fact narad.Authority) {
	e := fact.Envelope()
	switch f := fact.(type) {
	case *narad.InterruptResolved:
		actor := actorOf(f)
		d := s.decision(f.InterruptID, e, actor)
		d.Decision, d.Reason = f.Decision, f.Reason
		s.decisions = append(s.decisions, d)
	case *narad.Custom:
		votes, ok := facts.Read[facts.Decided](f, facts.Decision)
		if !ok {
			return
		}
		for _, m := range votes.Members {
			d := s.decision(votes.InterruptID, e, votes.Actor)
			d.Member, d.Decision, d.Reason = m.RequestID, m.Decision, votes.Reason
			s.decisions = append(s.decisions, d)
		}
	}
}

func (s *story) decision(interruptID string, e *narad.Event, actor facts.Actor) decision {
	asked, _ := s.state.Interrupt(interruptID)
	return decision{
		InterruptID: interruptID, Kind: asked.Kind, Title: asked.Title, ActorID: actor.ID, Rule: actor.Rule,
		Who: s.who(actor), RequestedAt: asked.RequestedAt, DecidedAt: e.Timestamp, Sequence: e.SessionSequence,
	}
}

// timeline adds a line for a fact that is worth one. Pieces of a message make one line.
func (s *story) timeline(fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.RunStarted:
		s.names[f.RunID] = helperName(f)
		s.gates[f.RunID] = facts.Gate(&f.Event)
		s.moment(fact, "run", joined(" ", s.names[f.RunID], "started"))
	case *narad.RunFinished:
		s.moment(fact, "run", joined(" ", s.names[f.RunID], "finished", facts.StopReason(&f.Event)))
	case *narad.RunError:
		s.moment(fact, "run", joined(" ", s.names[f.RunID], "failed:", f.Code, f.Message))
	case *narad.RunCancelled:
		s.moment(fact, "run", joined(" ", s.names[f.RunID], "cancelled", f.Code))
	case *narad.RunStopRequested:
		s.moment(fact, "run", joined(" ", s.names[f.TargetRunID], "stop requested"))
	case *narad.MessageUserRecorded:
		s.moment(fact, "user", f.Content)
	case *narad.MessageTextDelta:
		s.say(fact, f.MessageID, f.Delta)
	case *narad.ToolCallStarted:
		title, _ := f.Optional("title").IsString()
		s.moment(fact, "tool", joined(": ", f.ToolName+" called", title))
	case *narad.ToolCallFinished:
		s.moment(fact, "tool", joined(" ", facts.ToolName(&f.Event), string(f.Outcome), f.Code, f.Message))
	case *narad.InterruptRequested:
		s.moment(fact, "ask", joined(" ", f.Title, "["+strings.Join(f.Actions, ", ")+"]"))
	case *narad.InterruptResolved:
		s.moment(fact, "ask", joined(" ", f.Decision, "by", s.who(actorOf(f))))
	case *narad.Custom:
		if f.Name != facts.ToolOutput {
			s.moment(fact, "fact", f.Name)
		}
	default:
		if words, _ := workflowWords(fact); words != "" {
			s.moment(fact, "flow", words)
		}
	}
}

func (s *story) moment(fact narad.Authority, what, text string) {
	e := fact.Envelope()
	if s.gates[e.RunID] && what == "run" {
		return
	}
	s.times = append(s.times, moment{e.SessionSequence, e.Timestamp, what, text})
}

func (s *story) say(fact narad.Authority, messageID, delta string) {
	at, known := s.said[messageID]
	if !known {
		s.said[messageID] = len(s.times)
		s.moment(fact, "agent", delta)
		return
	}
	s.times[at].text += delta
}

func (s *story) print(out *screen, summary client.Session) {
	out.line("", out.bold(oneLine(summary.SessionID))+" "+oneLine(joined(", ", summary.Title, summary.State, "agent "+summary.Agent, summary.CWD)))
	out.line("", out.bold("\nRuns"))
	s.printRuns(out)
	if len(s.decisions) > 0 {
		out.line("", out.bold("\nDecisions"))
	}
	for _, d := range s.decisions {
		out.line("  ", fmt.Sprintf("%s %s: %s by %s%s", out.dim(clock(d.DecidedAt)), oneLine(joined(" ", d.Title, prefixed("member ", d.Member))),
			out.bold(oneLine(d.Decision)), d.Who, oneLine(prefixed(", ", d.Reason))))
	}
	out.line("", out.bold("\nTimeline"))
	for _, m := range s.times {
		out.line("  ", fmt.Sprintf("%5d %s %s %s", m.sequence, out.dim(clock(m.timestamp)), out.cyan(fmt.Sprintf("%-5s", m.what)), short(m.text, 100)))
	}
}

func clock(timestamp string) string {
	at, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return oneLine(timestamp)
	}
	return at.Local().Format("15:04:05")
}

// printRuns prints the run trees, each run with the tools that it called.
func (s *story) printRuns(out *screen) {
	snapshot := s.state.Snapshot()
	var runs []session.Run
	for _, r := range snapshot.Runs {
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b session.Run) int { return int(a.StartedSequence - b.StartedSequence) })
	for _, r := range runs {
		if r.ParentRunID == "" || snapshot.Runs[r.ParentRunID].RunID == "" {
			s.printRun(out, r, runs, snapshot, "  ")
		}
	}
}

func (s *story) printRun(out *screen, r session.Run, runs []session.Run, snapshot session.Snapshot, margin string) {
	if len(margin) > 2*maxDepthShown || s.gates[r.RunID] {
		return
	}
	name := orWord(s.names[r.RunID], "run "+r.RunID)
	out.line(margin, joined(" ", name, string(r.State), oneLine(joined(": ", r.Code, r.Message)), out.dim(took(r.StartedAt, r.CompletedAt)+usageWords(r.Usage))))
	var calls []session.Tool
	for _, t := range snapshot.Tools {
		if t.RunID == r.RunID {
			calls = append(calls, t)
		}
	}
	slices.SortFunc(calls, func(a, b session.Tool) int { return int(a.StartedSequence - b.StartedSequence) })
	for _, t := range calls {
		out.line(margin+"  ", joined(" ", out.cyan("● "+oneLine(t.ToolName)), orWord(string(t.Outcome), "open"), oneLine(t.Code), out.dim(took(t.StartedAt, t.CompletedAt))))
	}
	for _, child := range runs {
		if child.ParentRunID == r.RunID {
			s.printRun(out, child, runs, snapshot, margin+"  ")
		}
	}
}

func took(from, to string) string {
	start, err := time.Parse(time.RFC3339, from)
	end, err2 := time.Parse(time.RFC3339, to)
	if err != nil || err2 != nil {
		return ""
	}
	return end.Sub(start).Round(time.Millisecond).String()
}
