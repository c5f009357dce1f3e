package decide_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// tb is the part of testing.TB that a property test has too.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// bed is a session that takes decisions as its owner does, and proves each fact legal
// twice: to the state that the owner has, and to one that forgets nothing.
type bed struct {
	t       tb
	owner   *session.State // open work alone, as decisions see it
	whole   *session.State // everything, with every event id
	desk    *desk.State
	list    []narad.Authority
	env     decide.Env
	ids     int
	shown   int // how much of the list story has told
	outcome decide.Outcome
}

func newBed(t tb) *bed {
	b := &bed{
		t: t, desk: &desk.State{},
		owner: session.New(session.Options{SessionID: "s", NoDisplay: true}),
		whole: session.New(session.Options{SessionID: "s", Remember: session.RememberAll}),
	}
	b.env = decide.Env{
		Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), NewID: b.newID, Actor: facts.Actor{ID: "ada"},
		MayStart: true, QueueLimit: 3, Run: b.ended, Interrupt: b.closed, Remembered: b.remembered, Message: b.recorded,
		Log: decide.Log{Mapping: harness.Mapping, Agent: "writer"},
	}
	return b
}

// open is a bed with a session.
func open(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	b.ok(decide.Create{Payload: created("default")})
	b.shown = len(b.list)
	return b
}

func created(workspace string) facts.Created {
	return facts.Created{WorkspaceID: workspace, RequiredProfiles: []string{"narad.conversation/v1"}}
}

// running is a bed with a run under way, and the run's id.
func running(t *testing.T) (*bed, string) {
	t.Helper()
	b := open(t)
	run := b.ok(decide.Message{Content: "go"}).RunID
	b.shown = len(b.list)
	return b, run
}

func (b *bed) newID() string {
	b.ids++
	return fmt.Sprintf("id-%d", b.ids)
}

// do decides a command and applies what it leads to.
func (b *bed) do(c decide.Command) decide.Answer {
	b.t.Helper()
	before := b.owner.EncodeControl()
	deskBefore := b.desk.Encode()
	b.outcome = decide.Decide(c, b.owner, b.desk, b.env)
	if !slices.Equal(before, b.owner.EncodeControl()) || !slices.Equal(deskBefore, b.desk.Encode()) {
		b.t.Fatalf("%T changed the state that it was given", c)
	}
	b.checkOutcome(c)
	for _, fact := range b.outcome.Facts {
		b.apply(fact)
	}
	if diff := cmp.Diff(recount(b.list), b.desk, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(desk.State{}, "Spent")); diff != "" {
		b.t.Fatalf("after %#v the desk is not what the facts add up to:\n%s", c, diff)
	}
	return b.outcome.Answer
}

// checkOutcome holds what every outcome promises.
func (b *bed) checkOutcome(c decide.Command) {
	b.t.Helper()
	o := b.outcome
	refused := o.Answer.Status != decide.Accepted && o.Answer.Status != decide.Expired
	switch {
	case refused && len(o.Facts) > 0:
		b.t.Fatalf("%#v is refused as %+v and proposes %d facts", c, o.Answer, len(o.Facts))
	case refused && o.Answer.Status != decide.AlreadyApplied && o.Answer.Detail == "":
		b.t.Fatalf("%#v is refused without a word: %+v", c, o.Answer)
	case len(o.Facts) > 0 && (o.About < 0 || o.About >= len(o.Facts)):
		b.t.Fatalf("%#v is about fact %d of %d", c, o.About, len(o.Facts))
	case len(o.Facts) > 1000:
		b.t.Fatalf("%#v proposes %d facts, more than a batch holds", c, len(o.Facts))
	}
	for _, f := range o.Facts {
		if o.Closing && opens(f) {
			b.t.Fatalf("%#v only closes, and proposes %s", c, f.Type())
		}
	}
}

// opens reports whether a fact begins something that must be ended later.
func opens(f narad.Authority) bool {
	switch f.(type) {
	case *narad.RunStarted, *narad.ToolCallStarted, *narad.InterruptRequested:
		return true
	}
	return false
}

// apply gives a fact its places and proves that it may stand there.
func (b *bed) apply(fact narad.Authority) {
	b.t.Helper()
	b.owner.Number(fact)
	e := fact.Envelope()
	e.EventID = fmt.Sprintf("%d.aaaaaaaa", e.SessionSequence)
	e.Timestamp = narad.Timestamp(b.env.Now)
	data, err := narad.Encode(fact)
	if err != nil {
		b.t.Fatalf("encode %s: %v", fact.Type(), err)
	}
	if r := b.whole.ApplyJSON(data, true); r.Kind != session.Applied || r.Code != "" {
		b.t.Fatalf("illegal fact: %v %s %s\n%s\nafter\n%s", r.Kind, r.Code, r.Detail, data, tellAll(b.list))
	}
	if r := b.owner.Admit(fact); r.Kind != session.Applied || r.Code != "" {
		b.t.Fatalf("the owner's state refuses: %v %s\n%s", r.Kind, r.Code, data)
	}
	b.desk.Apply(fact)
	b.list = append(b.list, fact)
}

// ok is do for a command that must be accepted.
func (b *bed) ok(c decide.Command) decide.Answer {
	b.t.Helper()
	a := b.do(c)
	if a.Status != decide.Accepted {
		b.t.Fatalf("%#v: got %+v, want accepted", c, a)
	}
	return a
}

// refuses is do for a command that must be answered with a status and no fact.
func (b *bed) refuses(c decide.Command, want decide.Status) decide.Answer {
	b.t.Helper()
	before := len(b.list)
	a := b.do(c)
	if a.Status != want || len(b.list) != before {
		b.t.Fatalf("%#v: got %+v and %d facts, want %s and none", c, a, len(b.list)-before, want)
	}
	return a
}

// bars is do for an agent's record that must be refused for a reason.
func (b *bed) bars(c decide.Command, why decide.Refusal) {
	b.t.Helper()
	if a := b.refuses(c, decide.Rejected); a.Err != why {
		b.t.Fatalf("%#v: refused as %q (%s), want %q", c, a.Err, a.Detail, why)
	}
}

// ended, closed and recorded are what an owner looks up, from the facts.
func (b *bed) ended(id string) (session.RunState, bool) {
	for _, f := range b.list {
		if w, ok := facts.Read[facts.Withdrawn](f, facts.InputWithdrawn); ok && w.RunID == id {
			return decide.Withdrawn, true
		}
	}
	r, ok := b.whole.Run(id)
	return r.State, ok && r.State.Ended()
}

func (b *bed) closed(id string) (decide.Closed, bool) {
	var asked *narad.InterruptRequested
	for _, f := range b.list {
		if q, ok := f.(*narad.InterruptRequested); ok && q.InterruptID == id {
			asked = q
		}
		if r, ok := f.(*narad.InterruptResolved); ok && r.InterruptID == id {
			c := decide.Closed{
				RootRunID: r.RootRunID, Kind: asked.Kind, Decision: r.Decision, SessionSequence: r.SessionSequence, Members: map[string]string{},
				Facts: func() (*narad.InterruptRequested, *narad.InterruptResolved) { return asked, r },
			}
			for _, m := range r.Members {
				c.Members[m.RequestID] = m.Decision
			}
			return c, true
		}
	}
	return decide.Closed{}, false
}

func (b *bed) remembered(interruptID, requestID string) (facts.PermissionRule, bool) {
	for _, f := range b.list {
		r, ok := facts.Read[facts.PermissionRule](f, facts.PermissionRemembered)
		if ok && r.InterruptID == interruptID && r.RequestID == requestID {
			return r, true
		}
	}
	return facts.PermissionRule{}, false
}

func (b *bed) recorded(id string) bool {
	return slices.ContainsFunc(b.whole.Messages(), func(m session.Message) bool { return m.MessageID == id })
}

// recount is the desk as the facts tell it, each question asked of all of them.
func recount(list []narad.Authority) *desk.State {
	d := &desk.State{}
	stopped := map[string]bool{}
	for _, f := range list {
		e := f.Envelope()
		switch f := f.(type) {
		case *narad.RunStopRequested:
			stopped[f.TargetRunID] = true
			if f.TargetRunID == f.RootRunID {
				d.Stopping, d.StoppedBy = f.RootRunID, facts.Cause{CommandID: facts.Caused(e), InputID: facts.InputID(e)}
			}
		case *narad.RunStarted:
			if f.RunID == f.RootRunID {
				d.Parked = false
				if facts.Harness(e) == 1 {
					d.Log = desk.Log{RootRunID: f.RunID, Mapping: 1}
				}
			}
			if facts.Gate(e) {
				d.Gates = with(d.Gates, f.RunID, true)
			}
			d.Queue = without(d.Queue, f.RunID)
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			delete(d.Gates, e.RunID)
			delete(d.Made, e.RunID)
			d.Rules = slices.DeleteFunc(d.Rules, func(r facts.PermissionRule) bool { return r.RunID == e.RunID })
			if e.RunID == e.RootRunID {
				d.Parked, d.Stopping = stopped[e.RunID] && len(d.Queue) > 0, ""
				d.StoppedBy, d.Log = facts.Cause{}, desk.Log{}
			}
		case *narad.MessageTextStarted:
			d.Said = with(d.Said, f.MessageID, e.SessionSequence)
		case *narad.MessageTextCompleted:
			delete(d.Said, f.MessageID)
		case *narad.InterruptResolved:
			delete(d.Votes, f.InterruptID)
			delete(d.Ballots, f.InterruptID)
		case *narad.Artifact:
			recountArtifact(d, f)
		case *narad.Custom:
			recountCustom(d, f)
		}
		if len(d.Queue) == 0 {
			d.Parked = false
		}
		recountChange(d, f)
	}
	return d
}

// recountChange follows when the session last changed as a whole, and whether anybody saw it.
func recountChange(d *desk.State, f narad.Authority) {
	e := f.Envelope()
	c, custom := f.(*narad.Custom)
	switch {
	case custom && c.Name == facts.SessionViewed:
		d.ViewedAt, d.Seen = e.Timestamp, true
	case custom && (e.RunID == "" || c.Name == facts.Intercom) && e.WorkflowID == "" && c.Name != facts.AgentRemembered && c.Name != facts.QueueReleased:
		d.UpdatedAt, d.Seen = e.Timestamp, false
	}
	switch f.(type) {
	case *narad.RunStarted, *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		if e.RunID == e.RootRunID {
			d.UpdatedAt, d.Seen = e.Timestamp, false
		}
	case *narad.WorkflowStarted, *narad.WorkflowEnded, *narad.InterruptRequested, *narad.InterruptResolved:
		d.UpdatedAt, d.Seen = e.Timestamp, false
	}
}

func recountArtifact(d *desk.State, f *narad.Artifact) {
	delete(d.Making, f.ArtifactID)
	switch f.Kind {
	case narad.TypeArtifactAdded:
		d.Making = with(d.Making, f.ArtifactID, desk.Making{RunID: f.RunID, Material: facts.MaterialOf(&f.Event)})
	case narad.TypeArtifactReady:
		d.Made = with(d.Made, f.RunID, append(d.Made[f.RunID], f.ArtifactID))
	}
}

func recountSetup(d *desk.State, f *narad.Custom) {
	if p, ok := facts.Read[facts.Titled](f, facts.SessionTitled); ok {
		d.Title = p.Title
	}
	if p, ok := facts.Read[facts.Moved](f, facts.SessionMoved); ok {
		d.Cwd = p.Cwd
	}
	if p, ok := facts.Read[facts.Modelled](f, facts.SessionModel); ok {
		d.Provider, d.Model, d.Variant = p.Provider, p.Model, p.Variant
	}
	if p, ok := facts.Read[facts.Varied](f, facts.SessionVariant); ok {
		d.Variant = p.Variant
	}
	if p, ok := facts.Read[facts.Styled](f, facts.SessionStyle); ok {
		d.Style = p.Style
	}
	if p, ok := facts.Read[facts.Warmed](f, facts.SessionWarming); ok {
		d.Warming = &p
	}
}

func recountCustom(d *desk.State, f *narad.Custom) {
	if p, ok := facts.Read[facts.Created](f, facts.SessionCreated); ok {
		d.Created, d.CreatedAt, d.Posture = p, f.Timestamp, p.Posture
		d.Setup = desk.Setup{
			Cwd: p.Cwd, Title: p.Title, Provider: p.Provider, Model: p.Model, Variant: p.Variant, Style: p.Style,
		}
	}
	recountSetup(d, f)
	if p, ok := facts.Read[facts.Postured](f, facts.Posture); ok {
		d.Posture = p.Posture
	}
	if p, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
		w := desk.Waiting{
			Queued: p, Sequence: f.SessionSequence, EnqueuedAt: f.Timestamp,
			CommandID: facts.Caused(&f.Event), InputID: facts.InputID(&f.Event),
		}
		d.Queue, d.Parked = append(d.Queue, w), false
	}
	if p, ok := facts.Read[facts.Withdrawn](f, facts.InputWithdrawn); ok {
		d.Queue = without(d.Queue, p.RunID)
	}
	if p, ok := facts.Read[facts.Remembered](f, facts.AgentRemembered); ok {
		d.Ref = p.Ref
	}
	if p, ok := facts.Read[facts.PermissionRule](f, facts.PermissionRemembered); ok {
		d.Rules = append(slices.DeleteFunc(d.Rules, p.Same), p)
	}
	if p, ok := facts.Read[facts.Forgotten](f, facts.PermissionForgotten); ok {
		d.Rules = slices.DeleteFunc(d.Rules, func(r facts.PermissionRule) bool { return r.Rule == p.Rule })
	}
	if p, ok := facts.Read[facts.Decided](f, facts.Decision); ok {
		for _, m := range p.Members {
			if m.Vote {
				votes := d.Ballots[p.InterruptID]
				d.Ballots = with(d.Ballots, p.InterruptID, with(votes, m.RequestID, with(votes[m.RequestID], p.Actor.ID, m.Decision)))
			} else if d.Votes[p.InterruptID][m.RequestID] == "" {
				d.Votes = with(d.Votes, p.InterruptID, with(d.Votes[p.InterruptID], m.RequestID, m.Decision))
			}
		}
	}
	switch f.Name {
	case facts.SessionArchived, facts.SessionRestored:
		d.Archived = f.Name == facts.SessionArchived
	case facts.QueueReleased:
		d.Parked = false
	}
}

func with[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

func without(queue []desk.Waiting, run string) []desk.Waiting {
	return slices.DeleteFunc(queue, func(q desk.Waiting) bool { return q.RunID == run })
}

// story tells the facts since the last time it was asked, one a line.
func (b *bed) story() string {
	told := tellAll(b.list[b.shown:])
	b.shown = len(b.list)
	for i, run := range b.runs() {
		told = regexp.MustCompile(`\b`+run+`\b`).ReplaceAllString(told, fmt.Sprintf("run-%d", i+1))
	}
	return told
}

// runs are the top-level runs in the order in which their ids were given.
func (b *bed) runs() []string {
	var ids []string
	for _, f := range b.list {
		id := ""
		if q, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
			id = q.RunID
		} else if r, ok := f.(*narad.RunStarted); ok && r.RunID == r.RootRunID {
			id = r.RunID
		}
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// tells compares what came with what should have.
func (b *bed) tells(want string) {
	b.t.Helper()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if got := strings.TrimSpace(b.story()); got != want {
		b.t.Errorf("the facts differ (- want, + got):\n%s", cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
}

func tellAll(list []narad.Authority) string {
	var out strings.Builder
	for _, f := range list {
		fmt.Fprintln(&out, tell(f))
	}
	return out.String()
}

// tell says of a fact what decisions decide.
func tell(f narad.Authority) string {
	e := f.Envelope()
	words := []string{string(f.Type())}
	add := func(more ...string) {
		for _, w := range more {
			if w != "" {
				words = append(words, w)
			}
		}
	}
	add(e.RunID)
	switch f := f.(type) {
	case *narad.RunStarted:
		add(of("parent", f.ParentRunID), of("call", f.ParentToolCallID))
		if facts.Gate(e) {
			add("gate")
		}
	case *narad.RunStopRequested:
		add(of("target", f.TargetRunID))
	case *narad.RunError:
		add(f.Code)
	case *narad.RunCancelled:
		add(f.Code)
	case *narad.RunFinished:
		add(facts.StopReason(e))
	case *narad.InterruptRequested:
		add(f.InterruptID, f.Kind, strings.Join(f.Actions, ","))
	case *narad.InterruptResolved:
		add(f.InterruptID, f.Decision, f.Reason)
		for _, m := range f.Members {
			add(m.RequestID + ":" + m.Decision)
		}
		add(string(facts.Answers(e)))
	case *narad.ToolCallStarted:
		add(f.ToolCallID, f.ToolName)
	case *narad.ToolCallFinished:
		add(f.ToolCallID, string(f.Outcome), f.Code)
	case *narad.MessageUserRecorded:
		add(f.MessageID, string(f.MessageScope), f.Content)
		if facts.WasQueued(e) {
			add("queued")
		}
	case *narad.MessageTextStarted:
		add(f.MessageID, string(f.MessageScope))
	case *narad.MessageTextDelta:
		add(f.MessageID, f.Delta)
	case *narad.MessageTextCompleted:
		add(f.MessageID)
	case *narad.ReasoningStarted:
		add(f.ReasoningID)
	case *narad.ReasoningDelta:
		add(f.ReasoningID, f.Delta)
	case *narad.ReasoningCompleted:
		add(f.ReasoningID)
	case *narad.MessageRedacted:
		add(f.MessageID)
	case *narad.ProgressRecorded:
		add(f.ProgressID, string(f.Status))
	case *narad.Custom:
		words[0] = f.Name
		add(customWords(f)...)
	}
	if s := e.Optional("status"); s != nil {
		was, _ := s.Field("was").IsString()
		now, _ := s.Field("now").IsString()
		add(was + ">" + now)
	}
	return strings.Join(words, " ")
}

func customWords(f *narad.Custom) []string {
	if q, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
		return []string{q.RunID, q.Kind, q.Content}
	}
	if w, ok := facts.Read[facts.Withdrawn](f, facts.InputWithdrawn); ok {
		return []string{w.RunID}
	}
	if d, ok := facts.Read[facts.Decided](f, facts.Decision); ok {
		words := []string{d.InterruptID}
		for _, m := range d.Members {
			words = append(words, m.RequestID+":"+m.Decision)
		}
		return words
	}
	return nil
}

func of(what, id string) string {
	if id == "" {
		return ""
	}
	return what + "=" + id
}

// detach puts the session into the posture in which nobody is there (R18).
func (b *bed) detach() {
	b.apply(facts.Session(facts.Posture, facts.Postured{Posture: facts.Detached, Was: facts.Attended}))
	b.shown = len(b.list)
}

// idle fails if anything is open.
func (b *bed) idle() {
	b.t.Helper()
	if b.owner.HasOpenWork() || b.whole.HasOpenWork() || len(b.owner.OpenInterrupts()) > 0 {
		b.t.Fatalf("something is open:\n%s", tellAll(b.list))
	}
	for _, m := range b.whole.Snapshot().Messages {
		if m.Streaming {
			b.t.Fatalf("message %s is not complete:\n%s", m.MessageID, tellAll(b.list))
		}
	}
	for _, r := range b.whole.Reasoning() {
		if !r.Completed {
			b.t.Fatalf("reasoning %s is not complete:\n%s", r.ReasoningID, tellAll(b.list))
		}
	}
}

func name(c decide.Command) string { return reflect.TypeOf(c).Name() }

func msec(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
