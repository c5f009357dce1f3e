package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/mahati-host/mahati/narad/client"
)

// answerLine is a host's answer to a command, for programs.
type answerLine struct {
	Status          client.Status `json:"status"`
	Decision        string        `json:"decision,omitzero"`
	RequestID       string        `json:"requestId,omitzero"`
	RunID           string        `json:"runId,omitzero"`
	WorkflowID      string        `json:"workflowId,omitzero"`
	SessionSequence int64         `json:"sessionSequence,omitzero"`
	Detail          string        `json:"detail,omitzero"`
	CommandID       string        `json:"commandId,omitzero"`
}

// printAnswer prints what a host answered, a refusal too, which then is the error.
func (a *app) printAnswer(asJSON bool, answer client.Answer, err error) error {
	if answer.Status == "" {
		return err
	}
	if asJSON {
		if printed := a.printJSON(answerLine{
			answer.Status, answer.Decision, answer.RequestID, answer.RunID, answer.WorkflowID, answer.SessionSequence, answer.Detail, answer.CommandID,
		}); printed != nil {
			return printed
		}
		if err != nil {
			return &fault{code: exitFailed}
		}
		return nil
	}
	if err != nil {
		return &fault{err: fmt.Errorf("%w%s", err, decidedWords(answer)), code: exitFailed, hint: hintFor(err)}
	}
	_, err = fmt.Fprintln(a.out, oneLine(joined(" ", string(answer.Status), answer.Decision, prefixed("run ", answer.RunID), prefixed("workflow ", answer.WorkflowID), answer.Detail)))
	return err
}

// decidedWords tells the loser of a race what was decided instead.
func decidedWords(answer client.Answer) string {
	if answer.Decision == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, at %d)", answer.Decision, answer.SessionSequence)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

type sendCommand struct {
	hostFlags
	Attach    []string `sep:"none" placeholder:"FILE" help:"A file to go with it; may be given more than once."`
	WhenBusy  string   `enum:"queue,reject,steer" default:"queue" help:"What becomes of it while a run is active: queue, reject or steer."`
	CommandID string   `name:"command-id" placeholder:"ID" help:"Makes a repetition harmless."`
	JSON      bool     `name:"json" help:"Print the answer as JSON."`
	Session   string   `arg:"" help:"Session."`
	Text      []string `arg:"" name:"text" help:"What to say."`
}

func (sendCommand) Help() string { return `Example: mahati send SESSION "Now run the tests"` }

func (c sendCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	attached, err := attach(ctx, host, c.Session, c.Attach)
	if err != nil {
		return err
	}
	answer, err := host.Message(ctx, client.Message{
		AttachmentIDs: attached,
		SessionID:     c.Session, Content: strings.Join(c.Text, " "), WhenBusy: client.WhenBusy(c.WhenBusy), CommandID: c.CommandID,
	})
	return a.printAnswer(c.JSON, answer, err)
}

type stopCommand struct {
	hostFlags
	Workflow  string `name:"workflow" placeholder:"WORKFLOW" help:"The workflow that is meant, in the same way."`
	Root      string `name:"run" placeholder:"RUN" help:"The run that is meant, so that a late stop never hits the next one."`
	Reason    string `placeholder:"TEXT" help:"Why."`
	CommandID string `name:"command-id" placeholder:"ID" help:"Makes a repetition harmless."`
	JSON      bool   `name:"json" help:"Print the answer as JSON."`
	Session   string `arg:"" help:"Session."`
}

func (stopCommand) Help() string { return "Example: mahati stop SESSION" }

// Run performs the command.
func (c stopCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	answer, err := host.StopActiveRoot(ctx, client.StopActiveRoot{
		SessionID: c.Session, RootRunID: c.Root, WorkflowID: c.Workflow, Reason: c.Reason, CommandID: c.CommandID,
	})
	return a.printAnswer(c.JSON, answer, err)
}

type resolveCommand struct {
	hostFlags
	Reason    string   `placeholder:"TEXT" help:"Why, for the record."`
	Member    []string `sep:"none" placeholder:"ID" help:"Decide only these members of a pack."`
	Answer    []string `sep:"none" placeholder:"TEXT" help:"Answer to a question, in their order: numbers of options with commas, or a text."`
	Revision  *int64   `placeholder:"SEQUENCE" help:"Refuse if the session has not come so far, or has not asked by then."`
	CommandID string   `name:"command-id" placeholder:"ID" help:"Makes a repetition harmless."`
	JSON      bool     `name:"json" help:"Print the answer as JSON."`
	Interrupt string   `arg:"" help:"Interrupt, as the inbox shows it."`
	Decision  string   `arg:"" help:"One of the actions that it offers."`
}

func (resolveCommand) Help() string {
	return `Example: mahati resolve INTERRUPT approve --reason "read it"
Example: mahati resolve INTERRUPT answer --answer 0,2 --answer "only the parser"`
}

func (c resolveCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	command := client.ResolveInterrupt{
		InterruptID: c.Interrupt, Decision: c.Decision, Reason: c.Reason, ExpectedRevision: c.Revision, CommandID: c.CommandID,
	}
	for _, id := range c.Member {
		command.Members = append(command.Members, client.MemberDecision{RequestID: id, Decision: c.Decision})
	}
	for _, text := range c.Answer {
		command.Answers = append(command.Answers, answerOf(text))
	}
	answer, err := host.ResolveInterrupt(ctx, command)
	return a.printAnswer(c.JSON, answer, err)
}

// answerOf reads an answer without its question: numbers with commas are options.
func answerOf(text string) client.QuestionAnswer {
	answer := client.QuestionAnswer{Options: []string{}}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return client.QuestionAnswer{Options: []string{}, Text: text}
		}
		answer.Options = append(answer.Options, part)
	}
	return answer
}

type exportCommand struct {
	hostFlags
	Session string `arg:"" help:"Session."`
}

func (exportCommand) Help() string {
	return `Each line is one fact, byte for byte as the host keeps it.

Example: mahati export SESSION > session.jsonl && mahati narad check session.jsonl`
}

func (c exportCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	for fact, err := range host.Events(ctx, c.Session, client.HistoryQuery{}) {
		if err != nil {
			return err
		}
		if err := a.printLine(fact); err != nil {
			return err
		}
	}
	return nil
}
