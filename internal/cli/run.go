package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

type runCommand struct {
	hostFlags
	Agent     string   `placeholder:"NAME" help:"Agent of the session. Otherwise the host's default."`
	Title     string   `placeholder:"TEXT" help:"Title of the session. Otherwise the beginning of the prompt."`
	Workspace string   `placeholder:"ID" help:"Workspace of the session."`
	Executor  string   `placeholder:"NAME" help:"Executor that runs the session's client tools: see mahati executor."`
	Cwd       string   `placeholder:"DIR" help:"Directory that the agent works in. Otherwise this one."`
	Attach    []string `sep:"none" placeholder:"FILE" help:"A file to go with the prompt; may be given more than once."`
	Detach    bool     `short:"d" help:"Do not follow: print the session's id, with --json the run's too."`
	JSON      bool     `name:"json" help:"Print the facts as JSON lines, and ask nothing."`
	Prompt    []string `arg:"" name:"prompt" help:"What to say to the agent, or - to read it from standard input."`
}

func (runCommand) Help() string {
	return `Approvals and questions are asked here if this is a terminal; elsewhere decide them with
"mahati resolve". Ctrl-C leaves the session, which goes on. The exit code is 0 when the run finished,
1 when it failed or was cancelled, 130 when you left it.

Example: mahati run --agent opencode "Add a test for the parser"`
}

// maxPrompt bounds a prompt that is read (DESIGN §10).
const maxPrompt = 256 << 10

func (c runCommand) Run(ctx context.Context, a *app) error {
	prompt, err := c.prompt(a)
	if err != nil {
		return err
	}
	if err := attachable(c.Attach); err != nil {
		return err
	}
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	created, err := c.create(ctx, host, prompt)
	if err != nil {
		return err
	}
	attached, err := attach(ctx, host, created.SessionID, c.Attach)
	if err != nil {
		return err
	}
	sent, err := host.Message(ctx, client.Message{SessionID: created.SessionID, Content: prompt, AttachmentIDs: attached})
	if err != nil {
		return err
	}
	if c.Detach {
		return c.detached(a, created.SessionID, sent.RunID)
	}
	return c.follow(ctx, a, host, created.SessionID, sent.RunID)
}

// detached says where the run can be found.
func (c runCommand) detached(a *app, session, run string) error {
	if !c.JSON {
		return a.printLine([]byte(session))
	}
	return a.printJSON(struct {
		SessionID string `json:"sessionId"`
		RunID     string `json:"runId"`
	}{session, run})
}

func (c runCommand) prompt(a *app) (string, error) {
	if len(c.Prompt) != 1 || c.Prompt[0] != "-" {
		return strings.Join(c.Prompt, " "), nil
	}
	text, err := io.ReadAll(io.LimitReader(a.Stdin, maxPrompt+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the prompt: %w", err)
	case len(text) > maxPrompt:
		return "", usage("", "the prompt is longer than %d bytes", maxPrompt)
	case strings.TrimSpace(string(text)) == "":
		return "", usage("mahati run --help", "the prompt is empty")
	}
	return string(text), nil
}

func (c runCommand) create(ctx context.Context, host *client.Client, prompt string) (client.Session, error) {
	cwd, err := directory(c.Cwd)
	if err != nil {
		return client.Session{}, err
	}
	title := c.Title
	if title == "" {
		title = short(prompt, 60)
	}
	created, _, err := host.CreateSession(ctx, client.NewSession{
		WorkspaceID: c.Workspace, CWD: cwd, Title: title, Agent: c.Agent, ClientExecutorID: c.Executor,
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnprocessableEntity {
		return created, &fault{err: err, code: exitFailed, hint: "the directory (--cwd) lies below workspaces.roots, your home directory " +
			"by default, and the agent (--agent) is a configured one; see: mahati config example"}
	}
	return created, err
}

// directory is where an agent works: the one that is named, or this one.
func directory(name string) (string, error) {
	dir, err := filepath.Abs(cmp.Or(name, "."))
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // the host compares with where its roots are
	}
	return dir, nil
}

// follow follows the session to the end of the run that the prompt began.
func (c runCommand) follow(ctx context.Context, a *app, host *client.Client, session, run string) error {
	var end narad.Authority
	left, err := a.follow(ctx, following{
		hostFlags: c.hostFlags, host: host, json: c.JSON, session: session,
		leave: func(u client.Update) bool {
			if terminal(u.Record) && u.Record.(narad.Authority).Envelope().RunID == run {
				end = u.Record.(narad.Authority)
			}
			return end != nil
		},
	})
	switch {
	case err != nil:
		return err
	case left:
		return &fault{code: exitDetached}
	case end.Type() != narad.TypeRunFinished:
		return &fault{code: exitFailed}
	}
	return nil
}

// terminal reports whether a record ends a run.
func terminal(record narad.Record) bool {
	switch record.(type) {
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return true
	}
	return false
}

// following is what run and attach have in common.
type following struct {
	hostFlags
	host    *client.Client
	session string
	from    position
	json    bool
	leave   func(client.Update) bool
	began   func(*client.Follower) // nil for nobody who wants to know
}

// follow shows a session until leave says so, or until it is left (true). It remembers
// the place either way.
func (a *app) follow(ctx context.Context, f following) (left bool, err error) {
	home, err := f.dir(a)
	if err != nil {
		return false, err
	}
	v := &viewer{
		client: f.host, leave: f.leave, after: f.from.Sequence,
		// From the first fact: who works in a run is told when it starts.
		follower: f.host.Follow(f.session, client.FollowOptions{Epoch: f.from.Epoch}),
	}
	if f.began != nil {
		f.began(v.follower)
	}
	v.teller = newTeller(&screen{console: a.out}, v.follower, a.namer(home))
	if f.json {
		v.json = func(fact narad.Raw) error { return a.printLine(fact) }
	}
	if a.interactive() && !f.json {
		if v.keys, err = newKeyboard(a.Stdin); err != nil {
			return false, err
		}
		defer v.keys.close()
	}
	err = v.follow(ctx)
	if kept := positionsOf(home).keep(v.follower.Position()); kept != nil {
		fmt.Fprintf(a.Stderr, "%s\n", a.err.dim(oneLine(kept.Error())))
	}
	if errors.Is(err, errLeft) {
		fmt.Fprintf(a.Stderr, "left; the session goes on. Come back with: mahati attach %s\n", oneLine(f.session))
		return true, nil
	}
	return false, err
}

// interactive reports whether somebody sits at the terminal.
func (a *app) interactive() bool {
	return a.out.terminal && newConsole(a.Stdin, a.Getenv).terminal
}
