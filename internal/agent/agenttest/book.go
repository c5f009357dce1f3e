package agenttest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// book is what is open in one open run. All but the text that waits is a function of
// the recorded facts.
type book struct {
	rootID, runID, parentID string
	gateOf                  string // the tool call that a gate run is for (R10)
	messageID               string
	reasoningID             string
	activities              []narad.ProgressRecorded // the active ones
	stopping                bool

	text, thought stream
	timer         *time.Timer
}

// rest stops the book's timer. Text that waits is lost.
func (b *book) rest() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

// event returns the envelope of a fact of the run.
func (b *book) event() narad.Event { return narad.Event{RootRunID: b.rootID, RunID: b.runID} }

// call is one open tool call.
type call struct {
	id, runID, name string
	started         time.Time
	question        bool

	output stream
	told   int // bytes of output recorded
}

// askUser is the tool by which questions are asked (R13).
const askUser = "ask_user"

func (s *Session) book(runID string) *book {
	i := slices.IndexFunc(s.open, func(b *book) bool { return b.runID == runID })
	if i < 0 {
		return nil
	}
	return s.open[i]
}

// keep notes what a fact opens and closes.
func (s *Session) keep(rec narad.Authority) {
	s.remembered(rec)
	e := rec.Envelope()
	if r, ok := rec.(*narad.RunStarted); ok {
		s.keepStart(r)
		return
	}
	b := s.book(e.RunID)
	if b == nil {
		return
	}
	switch r := rec.(type) {
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		b.rest()
		s.open = slices.DeleteFunc(s.open, func(known *book) bool { return known == b })
	case *narad.RunStopRequested:
		if target := s.book(r.TargetRunID); target != nil {
			target.stopping = true
		}
	case *narad.ToolCallStarted:
		started, _ := time.Parse(time.RFC3339Nano, r.Timestamp)
		s.calls[r.ToolCallID] = &call{
			id: r.ToolCallID, runID: r.RunID, name: r.ToolName, started: started, question: r.ToolName == askUser,
		}
	case *narad.ToolCallFinished:
		delete(s.calls, r.ToolCallID)
	case *narad.InterruptResolved:
		s.answers[r.InterruptID] = facts.Answers(&r.Event)
	default:
		keepText(b, rec)
	}
}

func (s *Session) keepStart(r *narad.RunStarted) {
	b := &book{rootID: r.RootRunID, runID: r.RunID, parentID: r.ParentRunID}
	if facts.Gate(&r.Event) {
		b.gateOf = r.ParentToolCallID
	}
	s.open = append(s.open, b)
}

func keepText(b *book, rec narad.Authority) {
	switch r := rec.(type) {
	case *narad.MessageTextStarted:
		b.messageID = r.MessageID
	case *narad.MessageTextCompleted:
		b.messageID = ""
	case *narad.ReasoningStarted:
		b.reasoningID = r.ReasoningID
	case *narad.ReasoningCompleted:
		b.reasoningID = ""
	case *narad.ProgressRecorded:
		b.activities = slices.DeleteFunc(b.activities, func(a narad.ProgressRecorded) bool {
			return a.ProgressID == r.ProgressID
		})
		if r.Status == narad.ProgressActive {
			b.activities = append(b.activities, *r)
		}
	}
}

// refusal translates an error of encoding for the agent.
func refusal(err error) error {
	var coded *narad.Error
	if errors.As(err, &coded) && coded.Code == narad.CodeTooLarge {
		return fmt.Errorf("%w: %w", agent.ErrTooLarge, err)
	}
	return fmt.Errorf("%w: %w", agent.ErrInvalid, err)
}
