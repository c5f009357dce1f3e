package sessiontest

import (
	"github.com/mahati-host/mahati/narad"
)

// Verdict is what became of a line: applied, duplicate, ignored, gap, rejected or
// control, and for all but a plain success a code that says why.
type Verdict struct{ Result, Code string }

// Model is the obvious session state machine.
type Model struct {
	strict    bool
	without   narad.Profile
	sessionID string
	latched   bool // a gap is open
	history   history
}

// NewModel returns the model of an empty session. strict holds every line to what a
// host may emit; without are the profiles that were not negotiated; an empty
// sessionID leaves it to the first event to name the session.
func NewModel(strict bool, without narad.Profile, sessionID string) *Model {
	return &Model{strict: strict, without: without, sessionID: sessionID}
}

// Clone returns a model that goes on from here by itself.
func (m *Model) Clone() *Model {
	c := *m
	c.history = c.history[:len(c.history):len(c.history)]
	return &c
}

// Verdicts without a code.
var (
	applied   = Verdict{Result: "applied"}
	duplicate = Verdict{Result: "duplicate"}
	control   = Verdict{Result: "control"}
)

func ignored(code string) Verdict  { return Verdict{"ignored", code} }
func gap(code string) Verdict      { return Verdict{"gap", code} }
func rejected(code string) Verdict { return Verdict{"rejected", code} }

// Apply judges one line and takes it in, if it may stand.
func (m *Model) Apply(line []byte) Verdict {
	record, err := narad.Decoder{Strict: m.strict, Without: m.without}.Decode(line)
	if err != nil {
		return rejected(string(err.(*narad.Error).Code))
	}
	body, err := Parse(line)
	if err != nil {
		return rejected("invalid_json")
	}
	f := fact{kind: string(record.Type()), class: record.Type().Class(), body: body.(object)}
	switch f.class {
	case narad.ClassControl:
		return control
	case narad.ClassWatch:
		return m.watch(f)
	case narad.ClassHydrate:
		return m.hydrate(f)
	default: // also a type that only a profile nobody negotiated could define
		f.class = narad.ClassAuthority
		return m.authority(f)
	}
}

// negotiated reports whether the profile of a type is in use.
func (m *Model) negotiated(f fact) bool { return narad.Type(f.kind).Profile()&m.without == 0 }

// knowsWorkflows reports whether it can be known how a workflow stands. Runs and
// interrupts name workflows, but only the workflow profile tells of them.
func (m *Model) knowsWorkflows() bool { return m.without&narad.Workflow == 0 }

// foreign reports whether a record belongs to another session. The first record that
// is taken decides which session it is.
func (m *Model) foreign(f fact) bool { return m.sessionID != "" && f.sessionID() != m.sessionID }

func (m *Model) latch(code string) Verdict {
	m.latched = true
	return gap(code)
}

// authority judges an authority event.
func (m *Model) authority(f fact) Verdict {
	if m.latched {
		return gap("gap_active")
	}
	if m.foreign(f) {
		return ignored("other_session")
	}
	if old, seen := m.history.named(f); seen {
		if same(old.body, f.body) {
			return duplicate
		}
		return m.latch("event_conflict")
	}
	if f.session() <= m.history.cursor() {
		return ignored("sequence_passed")
	}
	if !m.continuesSession(f) {
		return m.latch("session_gap")
	}
	if !m.continuesWorkflow(f) {
		return gap("workflow_gap")
	}
	if !m.negotiated(f) {
		m.take(f, false)
		return ignored("profile_not_negotiated")
	}
	return m.judge(f)
}

// continuesSession reports whether an event is the session's next. After a snapshot
// an empty session may also begin behind it.
func (m *Model) continuesSession(f fact) bool {
	cursor := m.history.cursor()
	if f.session() == cursor+1 {
		return true
	}
	covers := m.history.transcript().covers
	return cursor == 0 && covers > 0 && f.session() == covers+1
}

// continuesWorkflow reports whether an event is the next of its workflow, if it has
// one. In a session that began behind a snapshot a workflow may begin anywhere.
func (m *Model) continuesWorkflow(f fact) bool {
	if f.workflowID() == "" || f.workflow() == 0 || f.projection() {
		return true
	}
	last := m.history.lastOfWorkflow(f.workflowID())
	if last == 0 && m.beginsLate(f) {
		return true
	}
	return f.workflow() == last+1
}

// beginsLate reports whether the session began behind a snapshot, or does so with f.
func (m *Model) beginsLate(f fact) bool {
	return append(m.history[:len(m.history):len(m.history)], f).beganLate()
}

// judge puts an event to the guards. A lenient reader passes over a refused event of
// a nested run, and over a refused projection: it cannot know better (R20).
func (m *Model) judge(f fact) Verdict {
	code := m.refusal(f)
	switch {
	case code == "":
		m.take(f, true)
		return applied
	case !m.strict && (f.projection() || f.nested()):
		m.take(f, false)
		return Verdict{"applied", code}
	default:
		return rejected(code)
	}
}

func (m *Model) take(f fact, told bool) {
	f.told = told
	if m.sessionID == "" && !f.workspaceWatch() {
		m.sessionID = f.sessionID()
	}
	m.history = append(m.history, f)
}

// watch judges a watch event, which a gap does not hold up.
func (m *Model) watch(f fact) Verdict {
	if !f.workspaceWatch() && m.foreign(f) {
		return ignored("other_session")
	}
	if old, seen := m.history.named(f); seen {
		if same(old.body, f.body) {
			return duplicate
		}
		return m.latch("event_conflict")
	}
	if !m.negotiated(f) {
		return ignored("profile_not_negotiated")
	}
	if f.whole("revision", 1) <= m.history.lastRevision(f.watchKey()) {
		if m.strict {
			return rejected("watch_regressed")
		}
		return ignored("watch_regressed")
	}
	m.take(f, true)
	return applied
}

// hydrate judges a hydrate record.
func (m *Model) hydrate(f fact) Verdict {
	if !m.negotiated(f) {
		return ignored("profile_not_negotiated")
	}
	if !f.is("messages.snapshot") {
		return ignored("profile_not_negotiated") // the model follows no graphs
	}
	if m.foreign(f) {
		return rejected("other_session")
	}
	if m.history.unchangedBy(f) {
		return ignored("snapshot_unchanged")
	}
	m.take(f, true)
	return applied
}
