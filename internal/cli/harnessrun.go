package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

type harnessRunCommand struct {
	hostFlags
	Session    string   `placeholder:"ID" help:"Session that is there. Otherwise a new one is made."`
	Agent      string   `placeholder:"NAME" help:"Agent of the new session. Otherwise the host's default."`
	Workspace  string   `placeholder:"ID" help:"Workspace of the new session."`
	Executor   string   `placeholder:"NAME" help:"Executor of the new session's client tools: see mahati executor."`
	Cwd        string   `placeholder:"DIR" help:"Directory that the agent works in. Otherwise this one."`
	InputID    string   `name:"input-id" placeholder:"ID" help:"Makes a repetition find the run instead of starting another."`
	OnApproval string   `name:"on-approval" enum:"wait,approve,deny" default:"wait" help:"What becomes of approvals: wait for somebody, approve or deny."`
	JSON       bool     `name:"json" help:"Print the records of the log, and nothing else, as JSON lines."`
	Prompt     []string `arg:"" name:"prompt" help:"What to say to the agent, or - to read it from standard input."`
}

func (harnessRunCommand) Help() string {
	return `Without --json the words of the agent are printed as they come. An approval that waits is told on
standard error, with the command that decides it. Ctrl-C cancels the run and waits for its end; a second one
leaves it. Who only loses its output (a closed pipe) leaves the run to go on. The exit code is 0 when the run
completed, 1 when it failed or was canceled, which the log tells apart, and 130 when it was left.

Example: mahati harness run --json --on-approval deny "Review the last commit" > run.jsonl`
}

// Run performs the command.
func (c harnessRunCommand) Run(ctx context.Context, a *app) error {
	prompt, err := runCommand{Prompt: c.Prompt}.prompt(a)
	if err != nil {
		return err
	}
	if c.Session != "" && cmp.Or(c.Agent, c.Workspace, c.Executor, c.Cwd) != "" {
		return usage("mahati harness run --help", "--session names a session that has its agent, workspace, executor and directory")
	}
	start, err := c.newRun(prompt)
	if err != nil {
		return err
	}
	host, err := c.connectLog(a)
	if err != nil {
		return err
	}
	defer host.Close()
	run, err := begin(ctx, host, start)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error like any other
	h := &headless{app: a, client: host, run: run.RunID, onApproval: c.OnApproval, json: c.JSON}
	fmt.Fprintf(a.Stderr, "%s\n", a.err.dim("run "+oneLine(run.RunID)+" in session "+oneLine(run.SessionID)))
	return h.follow(ctx)
}

func (c harnessRunCommand) newRun(prompt string) (newRun, error) {
	n := newRun{
		Version: harness.Version, InputID: cmp.Or(c.InputID, rand.Text()), Text: prompt, SessionID: c.Session,
		WorkspaceID: c.Workspace, Agent: c.Agent, ClientExecutorID: c.Executor,
	}
	if c.Session != "" {
		return n, nil
	}
	var err error
	n.CWD, err = directory(c.Cwd)
	n.Title = short(prompt, 60)
	return n, err
}

// begin starts the run. An interrupt does not give up a start that is on its way, since nobody
// would know the run and cancel it; a second one does.
func begin(ctx context.Context, host *logClient, n newRun) (startedRun, error) {
	patient, leave := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(watched)
		again, done := signal.NotifyContext(patient, os.Interrupt, syscall.SIGTERM)
		defer done()
		<-again.Done()
		leave()
	})
	run, err := host.start(patient, n)
	left := patient.Err() != nil
	leave()
	if !stop() {
		<-watched
	}
	if left {
		return run, &fault{
			err: errors.New("left before the host had answered"), code: exitDetached,
			hint: "the run may have started; " + n.again(),
		}
	}
	var no *refusal
	if errors.As(err, &no) && no.code == codeUnreachable {
		return run, &fault{err: err, code: exitFailed, hint: hintUnreachable + "; if the run has started, " + n.again()}
	}
	return run, err
}

// again says how to find the run of a start whose answer did not come (field case 45).
func (n newRun) again() string { return "the same command finds it with --input-id " + n.InputID }

// headless follows a run for a program, or for somebody who asks nothing.
type headless struct {
	*app
	client     *logClient
	run        string
	onApproval string
	json       bool

	outcome  harness.Lifecycle // of the run, once it has ended
	canceled bool              // the outcome is that
	speaker  string            // the message that was written last
	midLine  bool              // its last line has not ended
	speaking map[string]bool   // messages of the agent itself that are open
	hidden   bool              // it was told that words are not for this token
	failure  harness.Failure   // the last that was told
}

// errOutput says that what came could not be written.
var errOutput = errors.New("write a record")

// follow follows the run to its end. The first interrupt cancels it.
func (h *headless) follow(ctx context.Context) error {
	h.speaking = map[string]bool{}
	r := &logReader{client: h.client, run: h.run, take: func(e harness.Event, raw narad.Raw) error { return h.take(ctx, e, raw) }}
	r.lost = h.tellLost
	err := r.read(ctx)
	if ctx.Err() != nil && !r.over && !errors.Is(err, errOutput) {
		err = h.cancel(context.WithoutCancel(ctx), r)
	}
	h.endLine()
	switch {
	case err != nil:
		return err
	case h.canceled:
		fmt.Fprintf(h.Stderr, "%s %s\n", h.err.red("mahati:"), oneLine(joined(": ", "the run was canceled", h.outcome.Reason)))
	case h.outcome.Status != statusCompleted:
		fmt.Fprintf(h.Stderr, "%s %s\n", h.err.red("mahati:"), oneLine(joined(": ", "the run "+cmp.Or(h.outcome.Status, "has ended"), h.failure.Code, h.failure.Message)))
	default:
		return nil
	}
	return &fault{code: exitFailed}
}

const statusCompleted = "completed"

// tellLost says why a log is not followed at the moment.
func (a *app) tellLost(err error) {
	fmt.Fprintf(a.Stderr, "%s\n", a.err.dim("no connection, trying again: "+oneLine(err.Error())))
}

// cancel cancels the run, and follows it to its end unless there is another interrupt.
func (h *headless) cancel(ctx context.Context, r *logReader) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(h.Stderr, "%s\n", h.err.dim("cancels the run; Ctrl-C again leaves it"))
	_, err := h.client.tell(ctx, harness.Input{RunID: h.run, Type: harness.RunCancel, Reason: "interrupted at the terminal"})
	var no *refusal
	if err != nil && !(errors.As(err, &no) && no.code == "run_ended") {
		return h.left(ctx, err)
	}
	r.take = func(e harness.Event, raw narad.Raw) error { return h.take(ctx, e, raw) }
	return h.left(ctx, r.read(ctx))
}

// left says how to come back to a run that was left.
func (h *headless) left(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(h.Stderr, "left; see the run with: mahati harness tail %s\n", oneLine(h.run))
	return &fault{code: exitDetached}
}

// take shows a record, and does what it asks for.
func (h *headless) take(ctx context.Context, e harness.Event, raw narad.Raw) error {
	var err error
	if h.json {
		err = h.printLine(raw)
	} else {
		err = h.tell(e)
	}
	if err != nil {
		return &fault{err: fmt.Errorf("%w: %w", errOutput, err), code: exitFailed, hint: "the run goes on; see it with: mahati harness tail " + h.run}
	}
	switch e.Type {
	case harness.ApprovalRequested:
		h.decide(ctx, e)
	case harness.ErrorReported:
		_ = json.Unmarshal(e.Payload, &h.failure)
	case harness.RunCompleted, harness.RunCanceled:
		h.canceled = e.Type == harness.RunCanceled
		_ = json.Unmarshal(e.Payload, &h.outcome)
	}
	return nil
}

// tell prints the words of the agent itself, as they come.
func (h *headless) tell(e harness.Event) error {
	var m struct {
		harness.In
		harness.Message
	}
	switch e.Type {
	case harness.MessageStarted, harness.MessageDelta, harness.MessageCompleted:
	default:
		return nil
	}
	if e.Redacted() {
		h.tellHidden(e)
		return nil
	}
	if json.Unmarshal(e.Payload, &m) != nil || m.SubrunID != "" {
		return nil
	}
	if e.Type == harness.MessageStarted && m.Role != "user" {
		h.speaking[m.MessageID] = true
	}
	if !h.speaking[m.MessageID] {
		return nil
	}
	if e.Type == harness.MessageCompleted {
		delete(h.speaking, m.MessageID)
	}
	return h.speak(m.MessageID, m.Text)
}

// tellHidden says once why there are no words.
func (h *headless) tellHidden(e harness.Event) {
	if h.hidden || e.Sensitivity != harness.Private {
		return
	}
	h.hidden = true
	fmt.Fprintf(h.Stderr, "%s\n", h.err.yellow("what is said is hidden: it is for tokens with the role observe"))
}

func (h *headless) speak(message, text string) error {
	if text == "" {
		return nil
	}
	if h.speaker != message && h.midLine {
		text = "\n" + text
	}
	h.speaker, h.midLine = message, !strings.HasSuffix(text, "\n")
	if h.out.terminal {
		text = escape(text)
	}
	_, err := io.WriteString(h.out, text)
	return err
}

// endLine ends the last line of the agent's words.
func (h *headless) endLine() {
	if h.midLine {
		_, _ = io.WriteString(h.out, "\n") // the run is over, whoever reads it
	}
	h.midLine = false
}

// decide answers an approval as it was wished, or says who can.
func (h *headless) decide(ctx context.Context, e harness.Event) {
	id := e.CorrelationID // also where the payload is hidden
	var asked struct {
		harness.Approval
		Actions []string `json:"actions"`
	}
	_ = json.Unmarshal(e.Payload, &asked)
	if h.onApproval != "wait" {
		_, err := h.client.tell(ctx, harness.Input{
			RunID: h.run, Type: harness.ApprovalResolve,
			Approval: &harness.Resolution{ApprovalID: id, Decision: h.onApproval},
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		fmt.Fprintf(h.Stderr, "%s\n", h.err.yellow("could not "+h.onApproval+": "+oneLine(err.Error())))
		var no *refusal
		if errors.As(err, &no) && (no.code == "approval_boundary" || no.code == "expired") {
			return // it waits for nobody any more
		}
	}
	what := strings.TrimSpace(oneLine(cmp.Or(asked.Prompt, asked.Kind, "an approval")))
	with := "mahati resolve " + id + " " + strings.Join(asked.Actions, "|")
	if len(asked.Actions) == 0 {
		with = "mahati inbox, mahati resolve " + id + " DECISION"
	}
	fmt.Fprintf(h.Stderr, "%s\n", h.err.yellow("waits for a decision: "+what+"; decide it with: "+oneLine(with)))
}

type harnessTailCommand struct {
	hostFlags
	Cursor string `placeholder:"TOKEN" help:"Begin behind this cursor. Otherwise at the start."`
	Follow bool   `negatable:"" default:"true" help:"Wait for what comes, to the end of the log (the default)."`
	ID     string `arg:"" name:"run" help:"Run."`
}

func (harnessTailCommand) Help() string {
	return `Prints the records of a run's log as JSON lines. When it ends before the log does, it tells on standard
error the cursor to go on from. The exit code is 0 when it came to the end of the log, or with --no-follow
to what there is now, whatever became of the run; 1 when the host refused or the output could not be
written, and 130 when it was left with Ctrl-C.

Example: mahati harness tail --no-follow RUN | mahati harness protocol project --input - --view tui --show-private`
}

// Run performs the command.
func (c harnessTailCommand) Run(ctx context.Context, a *app) error {
	cursor, err := harness.ParseToken(c.Cursor)
	if err != nil {
		return usage("mahati harness tail --help", "--cursor: %w", err)
	}
	host, err := c.connectLog(a)
	if err != nil {
		return err
	}
	defer host.Close()
	signal.Ignore(syscall.SIGPIPE)
	r := &logReader{client: host, run: c.ID, cursor: cursor, lost: a.tellLost, take: func(_ harness.Event, raw narad.Raw) error { return a.printLine(raw) }}
	if c.Follow {
		err = r.read(ctx)
	} else {
		err = r.rest(ctx)
	}
	if !r.over && r.cursor.Sequence > 0 {
		fmt.Fprintf(a.Stderr, "the log goes on: mahati harness tail --cursor %s %s\n", r.cursor.Token(), oneLine(c.ID))
	}
	if ctx.Err() != nil && !r.over {
		return &fault{code: exitDetached}
	}
	return err
}
