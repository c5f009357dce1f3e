package harnesstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mahati-host/mahati/harness"
)

// Faults says what is wrong with the log of a run; nothing for a log that is right. whole
// says that the run has ended, so that its log must have too.
func Faults(run string, log []harness.Event, whole bool) []string {
	c := &checker{seen: map[string]bool{}, open: map[string]string{}}
	for i, e := range log {
		c.at = i + 1
		c.envelope(run, e)
		c.order(i, e)
		c.payload(e)
		c.seen[e.EventID] = true
		c.last = e.Type
	}
	if whole && (len(log) < 2 || !c.ended || c.last != harness.Checkpointed) {
		c.fault("the log ends with %s, not with the run's end and a checkpoint", c.last)
	}
	return append(c.faults, strict(log)...)
}

type checker struct {
	at     int
	faults []string
	seen   map[string]bool
	open   map[string]string // what was begun, by its name
	ended  bool
	last   harness.Type
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("record %d: %s", c.at, fmt.Sprintf(format, args...)))
}

func (c *checker) envelope(run string, e harness.Event) {
	if e.Version != "fak.harness.run/v1" || e.RunID != run || e.Sequence != uint64(c.at) {
		c.fault("version %q, run %q, sequence %d", e.Version, e.RunID, e.Sequence)
	}
	if e.EventID == "" || c.seen[e.EventID] {
		c.fault("event id %q is empty or stood before", e.EventID)
	}
	// A cause with a form of ours names a record; any other is what a client sent.
	for _, ours := range []string{"run:", "message:", "reasoning:", "tool:", "approval:", "artifact:"} {
		if strings.HasPrefix(e.CausationID, ours) && !c.seen[e.CausationID] {
			c.fault("%s is caused by %q, which does not stand before it", e.Type, e.CausationID)
		}
	}
	switch e.Sensitivity {
	case harness.Public, harness.Private, harness.Secret:
	default:
		c.fault("class %q", e.Sensitivity)
	}
}

func (c *checker) order(i int, e harness.Event) {
	first := e.Type == harness.RunStarted
	withdrawn := i == 0 && e.Type == harness.RunCanceled
	if (i == 0) != first && !withdrawn {
		c.fault("%s at this place", e.Type)
	}
	if c.ended && (e.Type != harness.Checkpointed || c.last == harness.Checkpointed) {
		c.fault("%s after the end", e.Type)
	}
	if e.Type == harness.RunCompleted || e.Type == harness.RunCanceled {
		c.ended = true
	}
}

// payload holds what is said to its words, and to what was begun before.
func (c *checker) payload(e harness.Event) {
	var p struct {
		Redacted   bool   `json:"redacted"`
		SubrunID   string `json:"subrun_id"`
		Status     string `json:"status"`
		MessageID  string `json:"message_id"`
		Role       string `json:"role"`
		ReasonedID string `json:"reasoning_id"`
		CallID     string `json:"call_id"`
		ApprovalID string `json:"approval_id"`
		Scope      string `json:"scope"`
		Cursor     *struct {
			Version  string `json:"version"`
			RunID    string `json:"run_id"`
			Sequence uint64 `json:"sequence"`
		} `json:"cursor"`
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil || p.Redacted {
		c.fault("payload %s: %v", e.Payload, err)
		return
	}
	if p.SubrunID != "" && e.Type != harness.SubrunStarted && c.open["subrun "+p.SubrunID] != "open" {
		c.fault("%s of the nested run %q, which is %q", e.Type, p.SubrunID, c.open["subrun "+p.SubrunID])
	}
	switch e.Type {
	case harness.SubrunStarted:
		c.begin("subrun "+p.SubrunID, e, e.CorrelationID == p.SubrunID)
	case harness.SubrunCompleted:
		c.end("subrun "+p.SubrunID, e)
	case harness.MessageStarted:
		c.begin("message "+p.MessageID, e, p.Role != "")
	case harness.MessageDelta:
		c.within("message "+p.MessageID, e)
	case harness.MessageCompleted:
		if p.Role == "user" {
			c.begin("message "+p.MessageID, e, true)
		}
		c.end("message "+p.MessageID, e)
	case harness.ReasoningStarted:
		c.begin("reasoning "+p.ReasonedID, e, true)
	case harness.ReasoningDelta:
		c.within("reasoning "+p.ReasonedID, e)
	case harness.ReasoningCompleted:
		c.end("reasoning "+p.ReasonedID, e)
	case harness.ToolStarted:
		c.begin("tool "+p.CallID, e, e.CorrelationID == p.CallID)
	case harness.ToolCompleted:
		c.end("tool "+p.CallID, e)
	case harness.ApprovalRequested:
		c.begin("approval "+p.ApprovalID, e, p.Status == "pending" && p.Scope != "" && e.CorrelationID == p.ApprovalID)
	case harness.ApprovalResolved:
		c.end("approval "+p.ApprovalID, e)
	case harness.Checkpointed:
		if p.Cursor == nil || p.Cursor.RunID != e.RunID || p.Cursor.Sequence != e.Sequence-1 {
			c.fault("cursor %s, want the position before it", e.Payload)
		}
	}
}

func (c *checker) begin(what string, e harness.Event, right bool) {
	if !right {
		c.fault("%s: %s %s", e.Type, e.CorrelationID, e.Payload)
	}
	if c.open[what] != "" {
		c.fault("%s: %s was begun before", e.Type, what)
	}
	c.open[what] = "open"
}

func (c *checker) within(what string, e harness.Event) {
	if c.open[what] != "open" {
		c.fault("%s: %s is %q", e.Type, what, c.open[what])
	}
}

func (c *checker) end(what string, e harness.Event) {
	c.within(what, e)
	c.open[what] = "closed"
}

// strict is what the strict reading of package harness finds, the encoded log taken as a
// file.
func strict(log []harness.Event) (faults []string) {
	var lines []byte
	for _, e := range log {
		line, err := harness.Encode(e)
		if err != nil {
			return append(faults, err.Error())
		}
		lines = append(append(lines, line...), '\n')
	}
	if _, err := harness.Check(bytes.NewReader(lines), func(f harness.Finding) error {
		if !f.Note {
			faults = append(faults, f.Error.Error())
		}
		return nil
	}); err != nil {
		faults = append(faults, err.Error())
	}
	return faults
}
