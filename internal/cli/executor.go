package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/internal/workbench"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

type executorCommand struct {
	hostFlags
	ID       string   `name:"id" required:"" placeholder:"NAME" help:"The executor that this is, as sessions name it."`
	Tool     []string `name:"tool" sep:"none" placeholder:"NAME=COMMAND" help:"A tool and the shell command that runs it; give it once for each tool."`
	Root     string   `name:"root" placeholder:"DIR" help:"Offer files and terminals below this directory: fs/read_text_file, fs/write_text_file, terminal/*."`
	MCP      []string `name:"mcp" sep:"none" placeholder:"COMMAND" help:"Offer the tools of an MCP server that speaks on standard input and output; give it once for each."`
	Ledger   string   `placeholder:"FILE" help:"Where it is kept which calls were accepted, so that none runs twice. Otherwise executor-NAME.jsonl in the home."`
	Parallel int      `default:"8" help:"Calls that run at once."`
	JSON     bool     `name:"json" help:"Tell what happens as JSON lines."`

	WithParent bool `hidden:"" help:"End when standard input ends."`
}

func (executorCommand) Help() string {
	return `Runs the tools of a host elsewhere on this machine. It dials out only, and needs a token with the
role execute: mahati token create --role execute --executor NAME.

A command gets the arguments of a call as JSON on its standard input, and MAHATI_TOOL_NAME and
MAHATI_TOOL_CALL_ID. What it prints is the response: as it is if it is JSON, otherwise as a text.
Another exit code than 0 makes the call an error with the code exit_N. Its standard error is shown here.

--root offers files below a directory, and terminals: these run whatever they are told to, as you.
--mcp offers the tools of an MCP server under their own names.

Example: mahati executor --id laptop --tool 'open.file=xargs -0 open' --tool 'clock=date -Iseconds'
Example: mahati executor --id laptop --root ~/project --mcp 'npx @modelcontextprotocol/server-memory'`
}

func (c executorCommand) Run(ctx context.Context, a *app) (err error) {
	box, err := c.toolbox(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.close()) }()
	path := c.Ledger
	if path == "" {
		home, err := c.dir(a)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(home, 0o700); err != nil {
			return fmt.Errorf("make the home: %w", err)
		}
		path = filepath.Join(home, "executor-"+c.ID+".jsonl")
	}
	ledger, err := client.OpenLedger(path)
	if err != nil {
		return err
	}
	defer ledger.Close()
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	ctx, release, err := a.untilParentEnds(ctx, c.WithParent)
	if err != nil {
		return err
	}
	defer release()
	err = host.Execute(ctx, c.ID, ledger, client.ExecutorOptions{
		Tools: box.tools, Parallel: c.Parallel, Notify: func(n client.ExecutorNotice) { c.tell(a, n) },
	})
	if errors.Is(err, context.Canceled) {
		return nil // it was told to end
	}
	return err
}

// noticeLine is what happens, for programs.
type noticeLine struct {
	What       string `json:"what"`
	ToolCallID string `json:"toolCallId,omitzero"`
	ToolName   string `json:"toolName,omitzero"`
	Outcome    string `json:"outcome,omitzero"`
	Error      string `json:"error,omitzero"`
}

func (c executorCommand) tell(a *app, n client.ExecutorNotice) {
	line := noticeLine{What: n.What, ToolCallID: n.ToolCallID, ToolName: n.ToolName, Outcome: string(n.Outcome)}
	if n.Err != nil {
		line.Error = oneLine(n.Err.Error())
	}
	if c.JSON {
		_ = a.printJSON(line) // nobody listens: the calls go on
		return
	}
	fmt.Fprintln(a.Stderr, oneLine(joined(" ", line.What, line.ToolName, line.ToolCallID, line.Outcome, line.Error)))
}

// shellTool runs a tool as a shell command.
type shellTool struct {
	line string
	log  io.Writer
}

const (
	// maxToolOutput bounds what is kept of a command's output: no fact can hold more (R7).
	maxToolOutput = 500_000
	// toolGrace is how long the group of a command may take to end.
	toolGrace = 10 * time.Second
)

func (t shellTool) run(ctx context.Context, call client.ToolCall) (narad.Raw, error) {
	out := &bounded{most: maxToolOutput}
	cmd := exec.Command("/bin/sh", "-c", t.line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(call.Args), out, t.log
	cmd.Env = append(workbench.Environment(), "MAHATI_TOOL_NAME="+call.ToolName, "MAHATI_TOOL_CALL_ID="+call.ToolCallID)
	cmd.WaitDelay = time.Second // for what holds the output open after the command
	group, err := process.Start(cmd, "executor")
	if err != nil {
		return nil, &client.ToolError{Code: "not_started", Message: "The command cannot be started."}
	}
	select {
	case <-group.Exited():
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), toolGrace)
	defer cancel()
	if err := group.End(last); err != nil {
		return nil, err
	}
	switch code := group.State().ExitCode(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.over:
		return nil, &client.ToolError{Code: string(client.CodeResponseTooLarge), Message: "The command printed too much."}
	case code < 0:
		return nil, &client.ToolError{Code: "signal", Message: "The command was ended by a signal."}
	case code > 0:
		return nil, &client.ToolError{Code: fmt.Sprintf("exit_%d", code), Message: "The command failed."}
	}
	return responseOf(out.data.Bytes()), nil
}

// responseOf is what a command printed, as a response.
func responseOf(out []byte) narad.Raw {
	trimmed := bytes.TrimSpace(out)
	if len(trimmed) > 0 && jsontext.Value(trimmed).IsValid() {
		return narad.Raw(trimmed)
	}
	return narad.Quote(strings.ToValidUTF8(string(out), "\uFFFD"))
}

// bounded keeps the beginning of what is written.
type bounded struct {
	data bytes.Buffer
	most int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.data.Len()
	if len(p) > room {
		b.over = true
		b.data.Write(p[:room])
		return len(p), nil
	}
	return b.data.Write(p)
}
