package mcptool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/internal/workbench"
	"github.com/mahati-host/mahati/narad/client"
)

// Options are the optional parts of a Server.
type Options struct {
	// Log gets what the server writes to its standard error; nil: nobody.
	Log io.Writer
	// Version is the executor's, as it is told to the server; empty: "0".
	Version string
	// StartTimeout is how long the server may take to greet and to list its tools; 30 s
	// when 0.
	StartTimeout time.Duration
}

// Server is the tools of one MCP server. Start makes one.
type Server struct {
	command []string
	opt     Options
	names   []string

	mu     sync.Mutex
	run    *running // guarded by mu: nil when it has to be started
	closed bool     // guarded by mu
}

// maxTools bounds the tools of a server.
const maxTools = 1_000

// Start starts a server and asks for its tools. Its Close must be called.
func Start(ctx context.Context, command []string, opt Options) (*Server, error) {
	if opt.Log == nil {
		opt.Log = io.Discard
	}
	if opt.Version == "" {
		opt.Version = "0"
	}
	if opt.StartTimeout == 0 {
		opt.StartTimeout = 30 * time.Second
	}
	if len(command) == 0 || command[0] == "" {
		return nil, errors.New("start an MCP server: it has no command")
	}
	s := &Server{command: command, opt: opt}
	if err := s.list(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the MCP server %s: %w", command[0], err), s.Close())
	}
	return s, nil
}

// list asks for the names of the tools.
func (s *Server) list(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opt.StartTimeout)
	defer cancel()
	r, err := s.serving(ctx)
	if err != nil {
		return err
	}
	for tool, err := range r.session.Tools(ctx, nil) {
		switch {
		case err != nil:
			return fmt.Errorf("list its tools: %w", err)
		case len(s.names) == maxTools:
			return fmt.Errorf("it has more than %d tools", maxTools)
		}
		s.names = append(s.names, tool.Name)
	}
	return nil
}

// Tools are the tools by their names.
func (s *Server) Tools() map[string]client.ToolFunc {
	tools := map[string]client.ToolFunc{}
	for _, name := range s.names {
		tools[name] = s.call
	}
	return tools
}

// Close ends the server. It may be called twice.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.endLocked()
}

func (s *Server) endLocked() error {
	r := s.run
	s.run = nil
	if r == nil {
		return nil
	}
	return r.end()
}

var errClosed = errors.New("the executor ends")

// serving returns the server that runs, started if none does.
func (s *Server) serving(ctx context.Context) (*running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.run != nil && s.run.alive() {
		return s.run, nil
	}
	if err := s.endLocked(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.StartTimeout)
	defer cancel()
	r, err := start(ctx, s.command, s.opt)
	s.run = r
	return r, err
}

// running is a server that was started.
type running struct {
	group   *process.Group
	in, out *os.File
	tap     *tap
	session *mcp.ClientSession
	watched chan struct{} // closed when nothing of the group runs any more
	once    sync.Once
	quit    chan struct{}
}

const (
	// lastWords is how long a server may take to end at the end of its input.
	lastWords = 2 * time.Second
	endTime   = 10 * time.Second
)

func start(ctx context.Context, command []string, opt Options) (*running, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stderr = workbench.Environment(), opt.Log
	cmd.WaitDelay = time.Second
	var pipes process.Pipes
	in, theirIn := pipes.To()
	out, theirOut := pipes.From()
	if err := pipes.Err(); err != nil {
		pipes.Close()
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	group, err := process.Start(cmd, "executor")
	if err != nil {
		pipes.Close()
		return nil, err
	}
	pipes.Started()
	r := &running{group: group, in: in, out: out, watched: make(chan struct{}), quit: make(chan struct{})}
	go r.watch()
	r.tap = &tap{inner: &mcp.IOTransport{Reader: out, Writer: in}, calls: map[any]string{}, results: map[string][]byte{}}
	greeter := mcp.NewClient(&mcp.Implementation{Name: "mahati", Version: opt.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
	})
	if r.session, err = greeter.Connect(ctx, r.tap, nil); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// watch ends what is left of the group when its process ends, or is to end.
func (r *running) watch() {
	defer close(r.watched)
	select {
	case <-r.group.Exited():
	case <-r.quit:
		late := time.NewTimer(lastWords)
		defer late.Stop()
		select {
		case <-r.group.Exited():
		case <-late.C:
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = r.group.End(ctx)
	// What it has written can be read; nobody else writes any more.
	_ = r.out.SetReadDeadline(time.Now().Add(time.Second))
}

func (r *running) alive() bool {
	select {
	case <-r.group.Exited():
		return false
	default:
		return !r.tap.broken()
	}
}

// end ends the server and returns when it is gone.
func (r *running) end() error {
	r.once.Do(func() { close(r.quit) })
	_ = r.in.Close() // the end of its input asks it to end
	<-r.watched
	if r.session != nil {
		_ = r.session.Close()
	}
	_ = r.out.Close() // closed by the session, if there is one
	return nil
}
