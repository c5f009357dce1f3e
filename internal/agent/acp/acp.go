package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
)

// Options say how an agent is run.
type Options struct {
	// Name is what the agent is called. It is required.
	Name string
	// Command is the program and its arguments. It is required. A relative path is one
	// of the host's directory, not of the session's.
	Command []string
	// Dir is the directory in which the agent works; empty: that of the session.
	Dir string
	// Env holds further variables, as NAME=VALUE.
	Env []string
	// PassEnv names variables of the host that are passed on besides the usual few:
	// PATH, HOME, USER, SHELL, TERM, LANG, TMPDIR and XDG_*.
	PassEnv []string
	// MCPServers are servers of the Model Context Protocol that the agent is told of when
	// a session is made or loaded; nil: none. Each has exactly one transport: every agent
	// takes Stdio, and a run fails whose agent does not say that it takes another. Their
	// arguments, variables and headers are kept out of the log.
	MCPServers []wire.McpServer
	// AuthMethod is the agent's id of the way to sign in that is used when it asks for
	// one, as it lists them in its answer to initialize; empty: a run whose agent asks
	// fails with the code agent_auth_required. The agent must be able to do it without a
	// person, by a key in its environment.
	AuthMethod string
	// ReadFiles, WriteFiles and Terminals offer the agent the files and terminals of the
	// run's executor (fs/*, terminal/*). It is offered none that is not set.
	ReadFiles, WriteFiles, Terminals bool
	// Models are those on which the agent can run, the first for a session that names none;
	// nil: those of which it tells.
	Models []agent.Model
	// Version is the host's, as it is told to the agent; empty: "0".
	Version string
	// Scratch is a directory for copies of attachments that the agent does not take in
	// its prompts; they go with its process. Empty: a run with such an attachment fails.
	Scratch string
	// StartTimeout is how long the agent may take until it is ready for the first
	// prompt; 0: two minutes, since it may have to be downloaded.
	StartTimeout time.Duration
	// WriteTimeout is how long the agent may leave a message unread; 0: 30 seconds.
	WriteTimeout time.Duration
	// Logger gets what is worth knowing, and the agent's own log on the level debug;
	// nil: nobody.
	Logger *slog.Logger

	catalogue *catalogue
}

// kind is an agent as it is configured.
type kind struct{ opt Options }

// New returns the kind of agent that a command starts. It starts nothing.
func New(opt Options) (agent.Kind, error) {
	opt.Command, opt.Env = slices.Clone(opt.Command), slices.Clone(opt.Env)
	opt.PassEnv, opt.MCPServers = slices.Clone(opt.PassEnv), slices.Clone(opt.MCPServers)
	if err := opt.validate(); err != nil {
		return nil, fmt.Errorf("configure agent %q: %w", opt.Name, err)
	}
	if program := opt.Command[0]; strings.ContainsRune(program, filepath.Separator) {
		abs, err := filepath.Abs(program)
		if err != nil {
			return nil, fmt.Errorf("configure agent %q: %w", opt.Name, err)
		}
		opt.Command[0] = abs
	}
	opt.defaults()
	return &kind{opt}, nil
}

func (o *Options) validate() error {
	switch {
	case o.Name == "":
		return errors.New("it has no name")
	case len(o.Command) == 0 || o.Command[0] == "":
		return errors.New("it has no command")
	case o.Dir != "" && !filepath.IsAbs(o.Dir):
		return errors.New("its directory is not absolute")
	}
	for _, m := range o.MCPServers {
		if !oneTransport(m) {
			return errors.New("an MCP server has not exactly one transport of stdio, http and sse")
		}
	}
	for _, v := range o.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return errors.New("a variable is not NAME=VALUE")
		}
	}
	return nil
}

func (o *Options) defaults() {
	if o.MCPServers == nil {
		o.MCPServers = []wire.McpServer{}
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	o.Logger = o.Logger.With("agent", o.Name)
	o.catalogue = &catalogue{}
}

// Open returns an agent for a session. Its process starts with the first run.
func (k *kind) Open(_ context.Context, s agent.Session) (agent.Agent, error) {
	return newSession(&k.opt, s), nil
}

// Resumes reports false: a turn cannot go on after a restart (R17).
func (k *kind) Resumes() bool { return false }

// Steers reports false: the protocol has no message to a turn under way.
func (k *kind) Steers() bool { return false }
