package naryahttp

import (
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// entry is one entry of a transcript. Which fields it has follows from its kind.
type entry struct {
	EntryID   string `json:"entryId"`
	Kind      string `json:"kind"`
	LaneID    string `json:"laneId"`
	TurnID    string `json:"turnId,omitzero"`
	CreatedAt string `json:"createdAt"`

	// Of a message of a person, of the assistant, or of another session.
	Content       *string  `json:"content,omitzero"`
	Truncated     bool     `json:"truncated,omitzero"`
	Redacted      bool     `json:"redacted,omitzero"`
	SetAside      string   `json:"setAside,omitzero"` // why it was never given to the agent
	AttachmentIDs []string `json:"attachmentIds,omitempty"`
	From          string   `json:"from,omitzero"`
	AskID         string   `json:"askId,omitzero"`

	// Of a call, and of its result.
	ToolCallID  string            `json:"toolCallId,omitzero"`
	Tool        string            `json:"tool,omitzero"`
	Title       string            `json:"title,omitzero"`
	Input       narad.Raw         `json:"input,omitzero"`
	Status      string            `json:"status,omitzero"`
	Output      narad.Raw         `json:"output,omitzero"`
	DurationMs  *int64            `json:"durationMs,omitzero"`
	Failure     string            `json:"failure,omitzero"`
	FileTouches []facts.FileTouch `json:"fileTouches,omitempty"`

	sequence  uint64 // at which it was appended
	messageID string // of one that is a message
	waits     string // the run for which a message began to wait
	begins    bool   // what was said stands in facts before it
}

// The most bytes of a message as one entry shows it: in a list, and by itself.
const (
	listedContent = 64 << 10
	wholeContent  = 4 << 20
)

// entriesOf are the entries that a fact appends, without what stands in other facts.
func entriesOf(sequence uint64, fact narad.Authority) []entry {
	var list []entry
	for _, e := range narya.Mapping1.Project(fact) {
		appended, ok := e.Payload.(*narya.EntryAppended)
		if !ok {
			continue
		}
		one := entry{
			EntryID: appended.EntryID, Kind: string(appended.Kind), LaneID: e.LaneID, TurnID: appended.TurnID,
			CreatedAt: e.Timestamp, sequence: sequence,
		}
		one.tell(fact)
		list = append(list, one)
	}
	return list
}

// tell adds what the fact itself says.
func (e *entry) tell(fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.MessageUserRecorded:
		e.say(f.MessageID, f.Content)
		e.AttachmentIDs = f.AttachmentIDs
	case *narad.MessageTextCompleted:
		e.messageID, e.begins = f.MessageID, true
	case *narad.ToolCallStarted:
		e.ToolCallID, e.Tool, e.Title, e.Input = f.ToolCallID, f.ToolName, facts.Title(&f.Event), f.Args
	case *narad.ToolCallFinished:
		e.result(f)
	case *narad.Custom:
		if q, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
			e.say(q.MessageID, q.Content)
			e.AttachmentIDs, e.waits = q.AttachmentIDs, q.RunID
		}
		if told, ok := facts.Read[facts.Told](f, facts.Intercom); ok {
			e.say(told.MessageID, told.Content)
			e.From, e.waits = told.From, told.RunID
			if told.AskID != "" {
				e.AskID = narya.UUID(narya.KindAsk, told.AskID)
			}
		}
	}
}

func (e *entry) say(messageID, content string) { e.messageID, e.Content = messageID, &content }

func (e *entry) result(f *narad.ToolCallFinished) {
	e.ToolCallID, e.Tool, e.Output = f.ToolCallID, facts.ToolName(&f.Event), f.Response
	e.FileTouches = facts.FileTouches(&f.Event)
	for _, told := range narya.Mapping1.Project(f) {
		if end, ok := told.Payload.(*narya.ToolCallFinished); ok {
			e.Status, e.Failure, e.DurationMs = string(end.Status), end.Failure, end.DurationMs
		}
	}
}

// complete adds what stands in other facts: what was said before an answer was complete, and
// what became of a message since. A text has at most so many bytes.
func (e *entry) complete(ctx context.Context, v *host.View, most int) error {
	if e.messageID == "" {
		return nil
	}
	if err := e.became(ctx, v); err != nil {
		return err
	}
	redacted, err := v.Redaction(ctx, e.messageID)
	if err != nil {
		return err
	}
	if redacted != nil {
		content := redacted.Shown()
		e.Redacted, e.Content, e.begins = true, &content, false
	}
	if e.begins {
		if err := e.said(ctx, v, most); err != nil {
			return err
		}
	}
	e.clip(most)
	return nil
}

// became tells of a message that waited whether it was taken back.
func (e *entry) became(ctx context.Context, v *host.View) error {
	if e.waits == "" {
		return nil
	}
	run, err := v.Run(ctx, e.waits)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil // it waits
	case err != nil:
		return err
	case run.State == string(decide.Withdrawn):
		e.SetAside = run.State
	}
	return nil
}

// said reads what an answer is made of.
func (e *entry) said(ctx context.Context, v *host.View, most int) error {
	first, _, err := v.Entry(ctx, e.EntryID)
	if err != nil {
		return err
	}
	var text []byte
	err = scan(ctx, v, first-1, e.sequence, wantsDeltas, func(_ uint64, fact narad.Authority) bool {
		if d, ok := fact.(*narad.MessageTextDelta); ok && d.MessageID == e.messageID {
			text = append(text, d.Delta...)
		}
		return len(text) <= most
	})
	content := string(text)
	e.Content = &content
	return err
}

// clip shortens a text, and never inside a character.
func (e *entry) clip(most int) {
	if e.Content == nil || len(*e.Content) <= most {
		return
	}
	for !utf8.RuneStart((*e.Content)[most]) {
		most--
	}
	text := (*e.Content)[:most]
	e.Content, e.Truncated = &text, true
}

// size is about how many bytes of an answer an entry takes.
func (e *entry) size() int {
	n := 512 + len(e.Input) + len(e.Output)
	if e.Content != nil {
		n += len(*e.Content)
	}
	return n
}

// place is that of a fact in a list of what facts tell.
func place(sequence uint64) string { return strconv.FormatUint(sequence, 10) }

// sequence reads a place, 0 for the beginning of the list.
func (p page) sequence() (uint64, error) {
	if p.Cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(p.Cursor, 10, 64)
	if err != nil || n == 0 {
		return 0, malformed("cursor was not given by this list with these filters")
	}
	return n, nil
}
