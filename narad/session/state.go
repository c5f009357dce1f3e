package session

import (
	"errors"

	"github.com/mahati-host/mahati/narad"
)

// RememberAll keeps every event id that a state has seen.
const RememberAll = -1

// Options are what may be chosen of a [State]. The zero value follows one session
// of any id with every profile, shows everything and remembers no ids.
type Options struct {
	// SessionID is the session to follow; empty means that of the first event.
	SessionID string
	// Without holds the profiles that were not negotiated. What their events would
	// tell is not known, and no rule about it is kept.
	Without narad.Profile
	// NoDisplay keeps open work alone: what is closed, and all text, is forgotten.
	// Rules about closed things (that an id is fresh, that a patch applies) are then
	// the caller's to keep.
	NoDisplay bool
	// Graphs takes the graph records of the session. With nil they are ignored like
	// those of a profile that was not negotiated. It is of the strictness with which
	// the state is used, and the state owns it.
	Graphs Graphs
	// Remember is how many event ids are kept to tell duplicates and conflicts: 0
	// for none, RememberAll for all. What is forgotten is still passed over by its
	// sequence.
	Remember int
}

// State is the state of one session. It must be made by [New].
type State struct {
	opt       Options
	reader    *narad.Reader // of ApplyJSON
	sessionID string
	last      int64
	gap       bool
	resync    bool
	seen      memory
	covers    int64 // what the last messages.snapshot covered
	joined    bool  // the first event came after a snapshot, not at the beginning

	activeRoot     string
	activeWorkflow string
	trees          map[string]*tree
	runs           map[string]*Run
	tools          map[string]*Tool
	interrupts     map[string]*Interrupt
	workflows      map[string]*Workflow
	workflowAsks   map[string]string // the open interrupt of workflow scope, by workflow
	workflowLast   map[string]int64

	messages    transcript
	reasoning   thoughts
	attachments map[string]*Material
	artifacts   map[string]*Material
	scoped      map[scopeKey]*scopedState
	views       map[string]*view
	progress    map[string]*activities
	revisions   revisions
}

// New returns a state that has seen nothing.
func New(opt Options) *State {
	return &State{
		opt: opt, sessionID: opt.SessionID, seen: newMemory(opt.Remember),
		trees: map[string]*tree{}, runs: map[string]*Run{}, tools: map[string]*Tool{},
		interrupts: map[string]*Interrupt{}, workflows: map[string]*Workflow{},
		workflowAsks: map[string]string{}, workflowLast: map[string]int64{},
		messages: newTranscript(), reasoning: newThoughts(),
		attachments: map[string]*Material{}, artifacts: map[string]*Material{},
		scoped: map[scopeKey]*scopedState{}, views: map[string]*view{},
		progress: map[string]*activities{}, revisions: newRevisions(),
	}
}

// SessionID returns the session's id, "" while nothing has told it.
func (s *State) SessionID() string { return s.sessionID }

// Last returns the sessionSequence of the last event applied or passed over.
func (s *State) Last() int64 { return s.last }

// HasGap reports whether records are missing: authority is refused until ClearGap.
func (s *State) HasGap() bool { return s.gap }

// ClearGap releases the latch of a gap, so that what was missing can be applied.
func (s *State) ClearGap() { s.gap = false }

// ResyncRequired reports whether a scoped state can no longer be followed by deltas
// and needs a snapshot.
func (s *State) ResyncRequired() bool { return s.resync }

// ActiveRootRunID returns the active top-level run, or "".
func (s *State) ActiveRootRunID() string { return s.activeRoot }

// ActiveWorkflowID returns the active workflow, or "".
func (s *State) ActiveWorkflowID() string { return s.activeWorkflow }

// Apply takes a record as a client does (R20).
func (s *State) Apply(rec narad.Record) Result { return s.take(rec, false) }

// Admit takes a record if a host may append it after those before it.
func (s *State) Admit(rec narad.Record) Result { return s.take(rec, true) }

// Check says what Admit would say, and changes nothing.
func (s *State) Check(rec narad.Record) Result {
	switch r := rec.(type) {
	case narad.Authority:
		return s.judge(r, true)
	case *narad.Revision:
		return s.judgeRevision(r, true)
	case *narad.MessagesSnapshot:
		return s.judgeSnapshot(r)
	case *narad.GraphSnapshot, *narad.GraphDelta:
		return s.judgeGraph(rec)
	}
	return s.take(rec, true) // the rest changes nothing
}

// ApplyJSON decodes a record and takes it: as Admit does if strict, else as Apply.
func (s *State) ApplyJSON(data []byte, strict bool) Result {
	if s.reader == nil {
		s.reader = new(narad.Reader)
	}
	s.reader.Decoder = narad.Decoder{Strict: strict, Without: s.opt.Without}
	rec, err := s.reader.Decode(data)
	if err != nil {
		return malformed(err)
	}
	return s.take(rec, strict)
}

func malformed(err error) Result {
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		return Result{Rejected, Code(refusal.Code), refusal.Error()}
	}
	return Result{Rejected, Code(narad.CodeInvalidRecord), "the record cannot be read"}
}

func (s *State) take(rec narad.Record, strict bool) Result {
	switch r := rec.(type) {
	case narad.Authority:
		return s.takeAuthority(r, strict)
	case *narad.Revision:
		return s.takeRevision(r, strict)
	case *narad.MessagesSnapshot:
		return s.takeSnapshot(r)
	case *narad.GraphSnapshot, *narad.GraphDelta:
		return s.takeGraph(rec)
	}
	return Result{Kind: Control}
}

func (s *State) skips(rec narad.Record) bool {
	return s.opt.Without != 0 && rec.Type().Profile()&s.opt.Without != 0
}

// takeAuthority judges an event and performs what the judgement says.
func (s *State) takeAuthority(rec narad.Authority, strict bool) Result {
	r := s.judge(rec, strict)
	switch {
	case r.Kind == Gap && (r.Code == SessionGap || r.Code == EventConflict):
		s.gap = true
	case r.Kind == Applied && r.Code == "":
		s.change(rec)
		s.commit(rec)
	case r.Kind == Applied, r.Kind == Ignored && r.Code == ProfileNotClaimed:
		s.commit(rec)
	}
	return r
}

// judge says what a record is, and changes nothing.
func (s *State) judge(rec narad.Authority, strict bool) Result {
	if r := s.place(rec); r.Kind != Applied {
		return r
	}
	if s.skips(rec) {
		return result(Ignored, ProfileNotClaimed)
	}
	code := s.guard(rec, strict)
	switch e := rec.Envelope(); {
	case code == "":
		return Result{}
	case !strict && (e.Nested() || e.Projection()):
		return result(Applied, code)
	}
	return refusal(code)
}

func refusal(code Code) Result {
	if details[code] == "" {
		return Result{Rejected, code, "the patch does not apply to the present state"}
	}
	return result(Rejected, code)
}
