package agenttest

import (
	"fmt"
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Story tells the recorded facts, one a line, without times and places: what a reader
// wants to compare.
func (s *Session) Story() string {
	var out strings.Builder
	for _, rec := range s.Facts() {
		out.WriteString(line(rec))
		out.WriteByte('\n')
	}
	return out.String()
}

func line(rec narad.Authority) string {
	e := rec.Envelope()
	words := []string{e.RunID, string(rec.Type())}
	if e.RunID == "" {
		words = words[1:]
	}
	return strings.Join(append(words, details(rec, e)...), " ")
}

func details(rec narad.Authority, e *narad.Event) []string {
	switch r := rec.(type) {
	case *narad.RunStarted:
		return some("parent", r.ParentRunID, "call", r.ParentToolCallID, "agent", facts.AgentID(e), "name", facts.AgentName(e), "gate", mark(facts.Gate(e)))
	case *narad.RunStopRequested:
		return some("target", r.TargetRunID)
	case *narad.RunFinished:
		return some("reason", facts.StopReason(e), "usage", usage(r.Usage))
	case *narad.RunError:
		return some("code", r.Code, "message", quoted(r.Message))
	case *narad.RunCancelled:
		return some("code", r.Code)
	case *narad.InterruptRequested:
		return some("id", r.InterruptID, "kind", r.Kind, "actions", strings.Join(r.Actions, ","), "agent", facts.AgentID(e), "title", quoted(r.Title))
	case *narad.InterruptResolved:
		return some("id", r.InterruptID, "decision", r.Decision, "members", members(r), "answers", string(facts.Answers(e)))
	case *narad.ToolCallStarted:
		return some("id", r.ToolCallID, "tool", r.ToolName, "kind", facts.ToolKind(e), "agent", facts.AgentID(e), "args", shown(r.Args))
	case *narad.ToolCallFinished:
		return some("id", r.ToolCallID, "outcome", string(r.Outcome), "code", r.Code, "response", shown(r.Response))
	case *narad.MessageUserRecorded:
		return some("id", r.MessageID, "scope", string(r.MessageScope), "text", quoted(r.Content))
	case *narad.MessageTextStarted:
		return some("id", r.MessageID, "scope", string(r.MessageScope))
	case *narad.MessageTextDelta:
		return some("id", r.MessageID, "text", quoted(r.Delta))
	case *narad.MessageTextCompleted:
		return some("id", r.MessageID)
	case *narad.ReasoningDelta:
		return some("id", r.ReasoningID, "text", quoted(r.Delta))
	case *narad.ProgressRecorded:
		return some("id", r.ProgressID, "status", string(r.Status), "category", r.Category, "label", quoted(r.Label), "detail", quoted(r.Detail))
	case *narad.Custom:
		return some("name", r.Name, "value", shown(r.Value))
	}
	return nil
}

// some joins names and values, without the empty ones.
func some(pairs ...string) []string {
	var words []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			words = append(words, pairs[i]+"="+pairs[i+1])
		}
	}
	return words
}

func mark(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func usage(u *narad.Usage) string {
	if u == nil {
		return ""
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func members(r *narad.InterruptResolved) string {
	words := make([]string, len(r.Members))
	for i, m := range r.Members {
		words[i] = m.RequestID + ":" + m.Decision
	}
	return strings.Join(words, ",")
}

const longest = 120 // of a value that is shown whole

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", shown(narad.Raw(text)))
}

func shown(value narad.Raw) string {
	if len(value) > longest {
		return fmt.Sprintf("%s...(%d bytes)", strings.ToValidUTF8(string(value[:longest/2]), ""), len(value))
	}
	return string(value)
}
