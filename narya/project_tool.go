package narya

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

func (p *projection) toolStarted(f *narad.ToolCallStarted) {
	p.tellIn(&ToolCallStarted{TurnID: p.turn(), ToolCallID: f.ToolCallID, Tool: f.ToolName, Input: Preview(f.Args)})
	p.entry(CallEntryID(f.ToolCallID), EntryToolCall, f.RunID)
}

// maxFailure bounds the text of a failure, in characters.
const maxFailure = 1024

func (p *projection) toolFinished(f *narad.ToolCallFinished) {
	end := &ToolCallFinished{
		TurnID: p.turn(), ToolCallID: f.ToolCallID, Tool: facts.ToolName(p.event), Status: toolStatus(f),
	}
	if ms, err := strconv.ParseInt(string(p.event.Optional("durationMs")), 10, 64); err == nil {
		end.DurationMs = from(0, &ms)
	}
	if end.Status != ToolOK {
		words, told := facts.Failure(p.event)
		if !told {
			words = orElse(f.Message, f.Code)
		}
		end.Failure = clip(words, maxFailure)
	}
	for _, touch := range facts.FileTouches(p.event) {
		if op := FileOp(touch.Op); slices.Contains(fileOps, op) {
			end.FileTouches = append(end.FileTouches, FileTouch{Path: clip(touch.Path, 4096), Op: op})
		}
	}
	p.tellIn(end)
	p.entry(ResultEntryID(f.ToolCallID), EntryToolResult, f.RunID)
}

// toolStatus is how a call ended; one that was not permitted is denied (R10).
func toolStatus(f *narad.ToolCallFinished) ToolStatus {
	switch {
	case f.Outcome == narad.OutcomeSuccess:
		return ToolOK
	case f.Outcome == narad.OutcomeError:
		return ToolError
	case f.Code == codeDenied:
		return ToolDenied
	}
	return ToolCancelled
}

// codeDenied is the code of a call that was not permitted.
const codeDenied = "denied"

// outputCut is what stands where a call had more output than is kept (R43).
const outputCut = "\n[more output than is kept]\n"

func (p *projection) toolOutput(o facts.Output) {
	if o.Truncated {
		o.Text += outputCut
	}
	p.tellIn(&ToolCallUpdate{TurnID: p.turn(), ToolCallID: o.ToolCallID, Delta: o.Text})
}

// maxPreview bounds a text in the preview of a call's arguments, in characters.
const maxPreview = 512

// Preview returns the arguments of a call as an event shows them: each text at the top
// level that has more than 512 characters is cut there and ends in an ellipsis; all else
// keeps its bytes. Arguments that are no object have no preview.
func Preview(args narad.Raw) narad.Raw {
	if len(args) <= maxPreview && isObject(args) {
		return args // no text can be too long
	}
	members, ok := args.Members()
	if !ok {
		return nil
	}
	out := narad.Raw{'{'}
	cut := false
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, narad.Quote(m.Name)...), ':')
		if text, ok := m.Value.IsString(); ok && utf8.RuneCountInString(text) > maxPreview {
			m.Value, cut = narad.Quote(lead(text, maxPreview)+ellipsis), true
		}
		out = append(out, m.Value...)
	}
	if !cut {
		return args
	}
	return append(out, '}')
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
