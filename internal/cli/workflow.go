package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/internal/agent/flow"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

type workflowCommands struct {
	Run   workflowRunCommand   `cmd:"" help:"Create a session, start a workflow in it and follow it."`
	Check workflowCheckCommand `cmd:"" help:"Read a workflow file and say what is wrong with it."`
}

func (workflowCommands) Help() string { return "Example: mahati workflow run review.yaml" }

type workflowRunCommand struct {
	hostFlags
	Session   string `placeholder:"ID" help:"Session to start it in. Otherwise a new one."`
	Title     string `placeholder:"TEXT" help:"Title of the new session. Otherwise the workflow's name."`
	Workspace string `placeholder:"ID" help:"Workspace of the new session."`
	Executor  string `placeholder:"NAME" help:"Executor that runs the session's client tools: see mahati executor."`
	Cwd       string `placeholder:"DIR" help:"Directory that the agents work in. Otherwise this one."`
	Input     string `placeholder:"JSON" help:"What the workflow is started with, a JSON value: it stands at /input of the data."`
	Detach    bool   `short:"d" help:"Do not follow: print the session's id, with --json the workflow's too."`
	JSON      bool   `name:"json" help:"Print the facts as JSON lines, and ask nothing."`
	File      string `arg:"" name:"file" help:"A workflow file, or - for standard input."`
}

func (workflowRunCommand) Help() string {
	return `Approvals and questions are asked here if this is a terminal; elsewhere decide them with
"mahati resolve". Ctrl-C leaves the session, and the workflow goes on. The exit code is 0 when the
workflow finished, 1 when it failed or was cancelled, 130 when you left it. docs/workflow.md says
what a file holds.

Example: mahati workflow run --input '{"task": "Add a test for the parser"}' review.yaml`
}

// Run performs the command.
func (c workflowRunCommand) Run(ctx context.Context, a *app) error {
	file, def, err := readWorkflow(a, c.File)
	if err != nil {
		return err
	}
	if c.Input != "" && !jsontext.Value(c.Input).IsValid() {
		return usage("mahati workflow run --help", "the input is no JSON value")
	}
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	session := c.Session
	if session == "" {
		of := runCommand{Title: c.Title, Workspace: c.Workspace, Executor: c.Executor, Cwd: c.Cwd}
		created, err := of.create(ctx, host, orWord(def.Name, filepath.Base(c.File)))
		if err != nil {
			return err
		}
		session = created.SessionID
	}
	start := client.StartWorkflow{SessionID: session, Definition: narad.Quote(string(file))}
	if c.Input != "" {
		start.Input = narad.Raw(c.Input)
	}
	started, err := host.StartWorkflow(ctx, start)
	if err != nil {
		return err
	}
	if c.Detach {
		return c.detached(a, session, started.WorkflowID)
	}
	return c.follow(ctx, a, host, session, started)
}

// detached says where the workflow can be found.
func (c workflowRunCommand) detached(a *app, session, workflow string) error {
	if !c.JSON {
		return a.printLine([]byte(session))
	}
	return a.printJSON(struct {
		SessionID  string `json:"sessionId"`
		WorkflowID string `json:"workflowId"`
	}{session, workflow})
}

// follow follows the session to the end of the workflow, from its start on.
func (c workflowRunCommand) follow(ctx context.Context, a *app, host *client.Client, session string, started client.Answer) error {
	var end *narad.WorkflowEnded
	f := following{
		hostFlags: c.hostFlags, host: host, json: c.JSON, session: session,
		leave: func(u client.Update) bool {
			if f, ok := u.Record.(*narad.WorkflowEnded); ok && f.WorkflowID == started.WorkflowID {
				end = f
			}
			return end != nil
		},
	}
	if c.Session != "" {
		f.from.Sequence = started.SessionSequence - 1
	}
	left, err := a.follow(ctx, f)
	switch {
	case err != nil:
		return err
	case left:
		return &fault{code: exitDetached}
	case end.Kind != narad.TypeWorkflowFinished:
		return &fault{code: exitFailed}
	}
	return nil
}

type workflowCheckCommand struct {
	JSON bool   `name:"json" help:"Print what was found as one JSON object."`
	File string `arg:"" name:"file" help:"A workflow file, or - for standard input."`
}

func (workflowCheckCommand) Help() string {
	return `Needs no host. The agents that are named must be configured on the host that runs it. The exit
code is 0 when the file can be run, 1 when it cannot, 2 when it could not be read.

Example: mahati workflow check review.yaml`
}

// Run performs the command.
func (c workflowCheckCommand) Run(a *app) error {
	_, def, err := readWorkflow(a, c.File)
	if c.JSON {
		return c.printJSON(a, def, err)
	}
	if err != nil {
		return err
	}
	words := joined(", ", def.Name, fmt.Sprintf("%d nodes from %s on", def.Nodes(), def.Start))
	if agents := def.Agents(); len(agents) > 0 {
		words += "; agents: " + strings.Join(agents, ", ")
	}
	return a.printLine([]byte(oneLine(c.File + ": ok: " + words)))
}

func (c workflowCheckCommand) printJSON(a *app, def *flow.Definition, err error) error {
	var wrong *flow.Error
	if errors.As(err, &wrong) {
		printed := a.printJSON(struct {
			OK      bool   `json:"ok"`
			Line    int    `json:"line"`
			Problem string `json:"problem"`
		}{false, wrong.Line, wrong.Problem})
		return errors.Join(printed, &fault{code: exitFailed})
	}
	if err != nil {
		return err
	}
	return a.printJSON(struct {
		OK     bool     `json:"ok"`
		Name   string   `json:"name,omitzero"`
		Start  string   `json:"start"`
		Nodes  int      `json:"nodes"`
		Agents []string `json:"agents"`
	}{true, def.Name, def.Start, def.Nodes(), append([]string{}, def.Agents()...)})
}

// readWorkflow reads a workflow file as its host will.
func readWorkflow(a *app, path string) ([]byte, *flow.Definition, error) {
	var in io.Reader = a.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, &fault{err: err, code: exitUsage}
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, flow.MaxFile+1))
	if err != nil {
		return nil, nil, &fault{err: fmt.Errorf("read the workflow: %w", err), code: exitUsage}
	}
	def, err := flow.Read(text, path)
	if err != nil {
		return nil, nil, &fault{err: err, code: exitFailed}
	}
	return text, def, nil
}
