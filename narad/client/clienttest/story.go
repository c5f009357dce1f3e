package clienttest

import (
	"fmt"

	"github.com/mahati-host/mahati/narad"
)

// Turn is the facts of one legal run with all that a session usually has: a prompt, a
// streamed answer, a tool call, an approval. Its ids carry n.
func Turn(n int) []narad.Authority {
	run := fmt.Sprintf("run-%d", n)
	id := func(kind string) string { return fmt.Sprintf("%s-%d", kind, n) }
	in := func() narad.Event { return narad.Event{RootRunID: run, RunID: run} }
	return []narad.Authority{
		&narad.RunStarted{Event: in()},
		&narad.MessageUserRecorded{Event: in(), MessageID: id("prompt"), MessageScope: narad.ScopeSession, Content: "do it"},
		&narad.MessageTextStarted{Event: in(), MessageID: id("answer"), MessageScope: narad.ScopeSession, Role: narad.RoleAssistant},
		&narad.MessageTextDelta{Event: in(), MessageID: id("answer"), Delta: "I will "},
		&narad.ToolCallStarted{Event: in(), ToolCallID: id("call"), ToolName: "shell", Executor: narad.ExecutorBackend, Args: narad.Raw(`{"n":1.10}`)},
		&narad.InterruptRequested{Event: in(), InterruptID: id("ask"), WaitID: id("wait"), Kind: "approval", Actions: []string{"approve", "deny"}},
		&narad.RunPaused{Event: in(), WaitID: id("wait"), InterruptID: id("ask"), Reason: "interrupt", ResumeMode: narad.ResumeCommand},
		&narad.InterruptResolved{Event: in(), InterruptID: id("ask"), WaitID: id("wait"), Decision: "approve"},
		&narad.RunResumed{Event: in(), WaitID: id("wait")},
		&narad.ToolCallFinished{Event: in(), ToolCallID: id("call"), Outcome: narad.OutcomeSuccess, Response: narad.Raw(`"done"`)},
		&narad.MessageTextDelta{Event: in(), MessageID: id("answer"), Delta: "now."},
		&narad.MessageTextCompleted{Event: in(), MessageID: id("answer")},
		&narad.RunFinished{Event: in()},
	}
}

// TurnLength is how many facts a turn has.
var TurnLength = len(Turn(0))

// Story is the facts of several turns.
func Story(turns int) []narad.Authority {
	var facts []narad.Authority
	for n := range turns {
		facts = append(facts, Turn(n+1)...)
	}
	return facts
}

// Started is a bare fact at a place: session, sequence and run of its own. It is not
// legal as a whole session; it is for tests of order.
func Started(sessionID string, sequence int64) string {
	return fmt.Sprintf(`{"type":"run.started","protocolVersion":"narad/v1","eventId":"evt-%d","timestamp":"2026-08-05T00:00:00Z",`+
		`"sessionId":%q,"sessionSequence":%d,"rootRunId":"run-%d","runId":"run-%d","sequence":1}`,
		sequence, sessionID, sequence, sequence, sequence)
}
