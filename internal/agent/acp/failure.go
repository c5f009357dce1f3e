package acp

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/mahati-host/mahati/internal/agent"
)

// Codes of runs that fail.
const (
	codeUnavailable = "agent_unavailable"      // it cannot be started
	codeAuth        = "agent_auth_required"    // it wants somebody to sign in
	codeExited      = "agent_exited"           // it ended during the turn
	codeProtocol    = "agent_protocol_error"   // what it writes is not the protocol
	codeHung        = "agent_unresponsive"     // it does not read
	codeAgentError  = "agent_error"            // it reported an error
	codeAttachment  = "attachment_unavailable" // one of its message cannot be handed on
	codeMaxRequests = "max_turn_requests"      // it reached its own bound (R42)
)

// failure is why a run fails, in words fit for users.
type failure struct {
	code, message string
	cause         error
	// said is what the agent says of it, for who reads the run's end and for no log.
	said string
}

// maxReason bounds what an agent says of its error, in bytes.
const maxReason = 1 << 10

// Error tells nothing of what the agent said.
func (f *failure) Error() string {
	if f.cause == nil {
		return f.message
	}
	return f.message + ": " + f.cause.Error()
}

func (f *failure) Unwrap() error { return f.cause }

func unavailable(message string, cause error) *failure {
	return &failure{code: codeUnavailable, message: message, cause: cause}
}

// notStarted says why a program cannot be started.
func notStarted(err error) *failure {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, syscall.ENOENT):
		return unavailable("The agent cannot be started: its program was not found.", err)
	case errors.Is(err, syscall.EACCES):
		return unavailable("The agent cannot be started: its program may not be run.", err)
	}
	return unavailable("The agent cannot be started.", err)
}

var errSignIn = &failure{
	code: codeAuth, message: "The agent wants you to sign in first: start it in a terminal and sign in there.",
}

// failureOf says what an error on the connection means. exit tells how the process
// ended, where it did.
func (p *peer) failureOf(err error, exit string) *failure {
	var refused *callError
	var known *failure
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused) && refused.Code == codeSignIn:
		return errSignIn
	case errors.As(err, &refused):
		// Who waits has nothing else to go by than what the agent says: one line of it.
		said := label(p.opt.hider()(strings.ToValidUTF8(refused.Message, "\uFFFD")), maxReason)
		return &failure{code: codeAgentError, message: fmt.Sprintf("The agent reported an error (code %d).", refused.Code), said: said}
	case errors.Is(err, errGarbage):
		return &failure{code: codeProtocol, message: "What the agent writes is not the Agent Client Protocol.", cause: err}
	case errors.Is(err, errDeaf):
		return &failure{code: codeHung, message: "The agent does not read what it is told.", cause: err}
	}
	return &failure{code: codeExited, message: "The agent ended (" + exit + ").", cause: err}
}

// ending returns the end of a run that fails.
func (f *failure) ending() agent.Ending {
	e := agent.Ending{Outcome: agent.Failed, Code: f.code, Message: f.message}
	if f.said != "" {
		e.Message = strings.TrimSuffix(f.message, ".") + ": " + f.said
	}
	return e
}
