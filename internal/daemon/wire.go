package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"

	wire "github.com/coder/acp-go-sdk"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narya"
)

// agents is the configured agents, and the scripts that are always there.
type agents struct {
	byName map[string]agent.Kind
	first  string
}

// Kind implements host.Agents.
func (a agents) Kind(name string) (agent.Kind, bool) {
	k, ok := a.byName[name]
	return k, ok
}

// Default implements host.Agents.
func (a agents) Default() string { return a.first }

// names are those of all agents, the default one first.
func (a agents) names() []string {
	first := func(name string) bool { return name == a.first }
	return append([]string{a.first}, slices.DeleteFunc(slices.Sorted(maps.Keys(a.byName)), first)...)
}

// builtins are the scripts that need no configuration. The last is the default of a
// host that configures none.
var builtins = []string{"demo", "echo"}

func newAgents(cfg config.Config, o Options) (agents, error) {
	a := agents{byName: map[string]agent.Kind{}, first: cfg.Agents.Default}
	for _, name := range builtins {
		kind, err := script.Builtin(name)
		if err != nil {
			return a, fmt.Errorf("agent %s: %w", name, err)
		}
		a.byName[name] = kind
		if cfg.Agents.Default == "" {
			a.first = name
		}
	}
	for name, c := range cfg.Agents.Named {
		kind, err := newAgent(name, c, scratchDir(cfg), o)
		if err != nil {
			return a, fmt.Errorf("agent %s: %w", name, err)
		}
		a.byName[name] = kind
	}
	return a, nil
}

func newAgent(name string, c config.Agent, scratch string, o Options) (agent.Kind, error) {
	switch c.Kind {
	case config.KindACP:
		servers, err := mcpServers(c.MCP)
		if err != nil {
			return nil, err
		}
		models, err := modelsOf(c)
		if err != nil {
			return nil, err
		}
		return acp.New(acp.Options{
			Models: models, Name: name, Command: c.Command, PassEnv: c.Env, Dir: c.CWD, AuthMethod: c.AuthMethod, MCPServers: servers,
			ReadFiles: c.Offers("fs/read_text_file"), WriteFiles: c.Offers("fs/write_text_file"), Terminals: offersTerminals(c),
			Version: o.Version, Logger: o.Logger, Scratch: scratch,
		})
	case config.KindScript:
		file, err := os.ReadFile(c.File)
		if err != nil {
			return nil, fmt.Errorf("read script: %w", err)
		}
		return script.New(file, script.Options{Name: c.File, Agent: name, Crash: o.Crash})
	}
	return nil, fmt.Errorf("kind %q is not known", c.Kind)
}

// modelsOf are the configured models of an agent.
func modelsOf(c config.Agent) (list []agent.Model, err error) {
	for _, name := range c.Models {
		m, err := agent.ParseModel(name)
		if err != nil {
			return nil, fmt.Errorf("model %q %w", name, err)
		}
		m.Variants = c.Variants
		list = append(list, m)
	}
	return list, nil
}

// offersTerminals reports whether all that an agent needs of terminals is assigned.
func offersTerminals(c config.Agent) bool {
	for _, method := range []string{"create", "output", "wait_for_exit", "kill", "release"} {
		if !c.Offers("terminal/" + method) {
			return false
		}
	}
	return true
}

// mcpServers are the servers that an agent is told of, in the order of their names.
func mcpServers(named map[string]config.MCPServer) ([]wire.McpServer, error) {
	var list []wire.McpServer
	for _, name := range slices.Sorted(maps.Keys(named)) {
		s := named[name]
		if s.URL == "" {
			list = append(list, wire.McpServer{Stdio: stdioServer(name, s)})
			continue
		}
		server := &wire.McpServerHttpInline{Name: name, Type: "http", Url: s.URL, Headers: []wire.HttpHeader{}}
		for _, header := range slices.Sorted(maps.Keys(s.HeaderEnv)) {
			value, ok := os.LookupEnv(s.HeaderEnv[header])
			if !ok {
				return nil, fmt.Errorf("server %s: the variable %s is not set", name, s.HeaderEnv[header])
			}
			server.Headers = append(server.Headers, wire.HttpHeader{Name: header, Value: value})
		}
		list = append(list, wire.McpServer{Http: server})
	}
	return list, nil
}

func stdioServer(name string, s config.MCPServer) *wire.McpServerStdio {
	server := &wire.McpServerStdio{Name: name, Command: s.Command[0], Args: append([]string{}, s.Command[1:]...), Env: []wire.EnvVariable{}}
	for _, variable := range s.Env {
		if value, ok := os.LookupEnv(variable); ok {
			server.Env = append(server.Env, wire.EnvVariable{Name: variable, Value: value})
		}
	}
	return server
}

func hostOptions(cfg config.Config, log *slog.Logger, blobs *blob.Store) host.Options {
	o := host.Options{
		Logger: log, MaxRunning: cfg.Agents.MaxRunning, QueueLimit: cfg.Queue.Max,
		Mailbox: cfg.Sessions.Mailbox, CancelGrace: cfg.Agents.CancelGrace, IdleAfter: cfg.Agents.IdleTimeout,
		Blobs: blobs, MaxAttachment: cfg.Storage.MaxAttachment, MaxArtifact: cfg.Storage.MaxArtifact,
		EndLeft: process.KillGroup, Roots: cfg.Workspaces.Roots, Styles: cfg.Narya.Styles,
		Numbers: numbers.Of, LogMapping: harness.Mapping, LogPolicy: logPolicy(cfg).Encode(),
		Mappings:  facts.Mappings{Narya: int(narya.Mapping1)},
		Retention: cfg.Narya.Retention,
		Executors: executor.Options{
			Lease: cfg.Executors.Lease, Heartbeat: cfg.Executors.Heartbeat, TokenLife: cfg.Executors.TokenLife,
		},
		FailAbsent: cfg.Executors.Absent == config.Fail,
		Assign: func(agent, tool string) string {
			a := cfg.Agents.Named[agent]
			if tool == "" {
				return a.RunExecutor()
			}
			return a.Executor(tool)
		},
	}
	for _, r := range cfg.Policy {
		o.Rules = append(o.Rules, host.Rule{
			Name: r.Name, Effect: host.Effect(r.Action), Kinds: r.Kinds, Tool: r.Tool, Path: r.Path, Quorum: r.Quorum,
		})
	}
	return o
}

// logPolicy is how the records of the runs are classified that start from now on.
func logPolicy(cfg config.Config) harness.Policy {
	var p harness.Policy
	for _, c := range cfg.Harness.Classify {
		p.Rules = append(p.Rules, harness.Rule{Tool: c.Tool, Type: c.Type, Agent: c.Agent, Class: harness.Sensitivity(c.Class)})
	}
	return p
}

// errExposed says that a listener would be reachable in clear by others.
var errExposed = errors.New("beyond loopback the listener needs TLS, or a proxy that ends it")

// listener opens the configured address; beyond loopback it takes TLS or a proxy.
func (d *Daemon) listener(o Options) (net.Listener, string, error) {
	listener := o.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", d.cfg.Listen); err != nil {
			return nil, "", fmt.Errorf("listen: %w", err)
		}
	}
	if d.cfg.TLS.Cert == "" {
		// The configuration was checked, but what a name stands for is known only now.
		if exposed(listener.Addr()) && !d.cfg.BehindProxy {
			return nil, "", errors.Join(fmt.Errorf("listen on %s: %w", listener.Addr(), errExposed), listener.Close())
		}
		return listener, "http", nil
	}
	pair, err := tls.LoadX509KeyPair(d.cfg.TLS.Cert, d.cfg.TLS.Key)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("read certificate: %w", err), listener.Close())
	}
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), "https", nil
}

// exposed reports whether others than this machine can reach an address.
func exposed(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
