package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narya"
)

// eventWords is what an event says, for people.
func eventWords(e event) string {
	switch p := e.Payload.(type) {
	case *narya.SessionCreated, *narya.SessionStatusChanged, *narya.SessionPostureChanged, *narya.SessionMoved,
		*narya.ModelSwitch, *narya.TaskList, *narya.LaneStarted, *narya.LaneFinished:
		return sessionWords(p)
	case *narya.TurnStarted, *narya.TurnFinished, *narya.MessageStart, *narya.MessageDelta, *narya.MessageEnd,
		*narya.EntryAppended, *narya.QueuedInputWithdrawn:
		return turnWords(p)
	case *narya.ToolCallStarted:
		return joined(" ", p.Tool, string(p.Input))
	case *narya.ToolCallUpdate:
		return p.Delta
	case *narya.ToolCallFinished:
		return joined(" ", p.Tool, string(p.Status), prefixed("after ", milliseconds(p.DurationMs)), p.Failure)
	case *narya.PermissionAsked:
		return joined(" ", p.Action, p.Resource, prefixed("permission ", p.PermissionID))
	case *narya.PermissionDecided:
		return joined(" ", string(p.Decision), "by "+string(p.DecidedBy), prefixed("permission ", p.PermissionID))
	case *narya.QuestionAsked:
		return questionWords(p)
	case *narya.IntercomMessage:
		return string(p.Kind) + " from " + p.From + ": " + p.Content
	case *narya.WorkflowProgress:
		return progressWords(p)
	case *narya.Extension:
		return joined(" ", p.Extension, p.Name, string(p.Payload))
	}
	payload := e.raw.Field("payload") // a type that no feature of this host has, or of a newer contract
	return string(payload)
}

func sessionWords(p narya.Payload) string {
	switch p := p.(type) {
	case *narya.SessionCreated:
		return joined(" ", string(p.Session.ClientKind), p.Session.Title, prefixed("in ", p.Session.Repository))
	case *narya.SessionStatusChanged:
		return joined(" ", string(p.Status), prefixed("after ", string(p.PreviousStatus)))
	case *narya.SessionPostureChanged:
		return joined(" ", string(p.Posture), prefixed("after ", string(p.PreviousPosture)))
	case *narya.SessionMoved:
		return p.Repository + " after " + p.PreviousRepository
	case *narya.ModelSwitch:
		return p.Provider + " " + p.Model
	case *narya.TaskList:
		tasks := make([]string, len(p.Tasks))
		for i, t := range p.Tasks {
			tasks[i] = t.Content + " (" + string(t.Status) + ")"
		}
		return strings.Join(tasks, ", ")
	case *narya.LaneStarted:
		return joined(" ", string(p.Kind), p.Agent)
	case *narya.LaneFinished:
		return string(p.Status)
	}
	return ""
}

func turnWords(p narya.Payload) string {
	switch p := p.(type) {
	case *narya.TurnStarted:
		return p.TurnID
	case *narya.TurnFinished:
		words := joined(" ", string(p.StopReason), prefixed("after ", milliseconds(p.ElapsedMs)))
		if p.Error != nil {
			words += ": " + joined(" ", string(p.Error.Code), p.Error.Title, p.Error.Message)
		}
		return words
	case *narya.MessageStart:
		return p.Provider + " " + p.Model
	case *narya.MessageDelta:
		return joined(" ", prefixed("~ ", string(p.Channel)), p.Delta)
	case *narya.MessageEnd:
		return "entry " + p.EntryID
	case *narya.EntryAppended:
		return string(p.Kind) + " " + p.EntryID
	case *narya.QueuedInputWithdrawn:
		return "entry " + p.EntryID
	}
	return ""
}

func questionWords(p *narya.QuestionAsked) string {
	var list []string
	for _, q := range p.Questions {
		var options []string
		for i, o := range q.Options {
			options = append(options, strconv.Itoa(i)+" "+o.Value)
		}
		list = append(list, joined(" ", q.Question, prefixed("· ", strings.Join(options, " · "))))
	}
	return joined(" ", strings.Join(list, "; "), prefixed("question ", p.QuestionID))
}

func progressWords(p *narya.WorkflowProgress) string {
	words := string(p.Status)
	if p.Step != nil {
		words = joined(" ", words, p.Step.Name, string(p.Step.Status))
	}
	if p.CompletedSteps != nil && p.TotalSteps != nil {
		words += " (" + strconv.FormatInt(*p.CompletedSteps, 10) + " of " + strconv.FormatInt(*p.TotalSteps, 10) + ")"
	}
	return words
}

// milliseconds writes a duration that may not be known, "" then.
func milliseconds(ms *int64) string {
	if ms == nil {
		return ""
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}
