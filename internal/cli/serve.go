package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/internal/journal"
)

type serveCommand struct {
	homeFlag
	Listen      string `placeholder:"HOST:PORT" help:"Where to listen. Otherwise as configured, 127.0.0.1:7717."`
	ACP         string `name:"acp" placeholder:"'COMMAND ARGS'" xor:"agent" help:"Agent for sessions that name none: a command that speaks the Agent Client Protocol."`
	Script      string `placeholder:"FILE" xor:"agent" help:"Agent for sessions that name none: a script."`
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate chain, needed beyond loopback."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"Its private key."`
	BehindProxy bool   `help:"A proxy in front of the host ends TLS."`
	JSON        bool   `name:"json" help:"Print the ready line as JSON."`
	WithParent  bool   `hidden:"" help:"End when standard input ends."`
}

func (serveCommand) Help() string {
	return `Once the host serves, it prints one line with its address and home. Ctrl-C or SIGTERM ends it:
streams end, and runs are taken up again by the next start. The exit code is 4 when the store broke.

Example: mahati serve --acp 'npx opencode-ai acp'`
}

// readyLine is what a host prints once it serves.
type readyLine struct {
	URL     string `json:"url"`
	Socket  string `json:"socket"`
	Home    string `json:"home"`
	Epoch   string `json:"epoch"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

func (c serveCommand) Run(ctx context.Context, a *app) error {
	cfg, err := c.configured(a)
	if err != nil {
		return err
	}
	ctx, release, err := a.untilParentEnds(ctx, c.WithParent)
	if err != nil {
		return err
	}
	defer release()
	d, err := daemon.Start(ctx, cfg, daemon.Options{Version: a.version(), Logger: a.logger(cfg.Log)})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // it was ended before it served
	case err != nil:
		return startFault(err, cfg)
	}
	return errors.Join(c.serve(ctx, a, d), d.Close())
}

// serve says that the host is ready, and waits until it is to end or cannot go on.
func (c serveCommand) serve(ctx context.Context, a *app, d *daemon.Daemon) error {
	if err := c.ready(a, d); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		signal.Reset(os.Interrupt, syscall.SIGTERM) // a second one does not wait
		return nil
	case <-d.Done():
	}
	if err := d.Err(); errors.Is(err, daemon.ErrBroken) {
		return &fault{err: err, code: exitBroken, hint: "look at the disk, then start again: what was acknowledged is there"}
	}
	return d.Err()
}

func (c serveCommand) ready(a *app, d *daemon.Daemon) error {
	line := readyLine{URL: d.URL(), Socket: d.Socket(), Home: d.Home(), Epoch: d.Epoch(), PID: os.Getpid(), Version: a.version()}
	if c.JSON {
		return a.printJSON(line)
	}
	_, err := fmt.Fprintf(a.out, "mahati serves %s, home %s\n", line.URL, oneLine(line.Home))
	return err
}

// configured is the configuration of the home with what the flags say.
func (c serveCommand) configured(a *app) (config.Config, error) {
	cfg, err := c.load(a, c.overrides()...)
	if err != nil {
		return cfg, err
	}
	name, agent := "", config.Agent{}
	switch {
	case c.ACP != "":
		name, agent.Kind = "acp", config.KindACP
		if agent.Command, err = config.SplitCommand(c.ACP); err != nil {
			return cfg, usage("--acp 'COMMAND ARGS'", "--acp: %w", err)
		}
	case c.Script != "":
		name, agent.Kind = "script", config.KindScript
		if agent.File, err = filepath.Abs(c.Script); err != nil {
			return cfg, err
		}
	default:
		return cfg, nil
	}
	if err := cfg.AddAgent(name, agent); err != nil {
		return cfg, usage("mahati serve --help", "%w", err)
	}
	cfg.Agents.Default = name
	return cfg, nil
}

func (c serveCommand) overrides() []config.Override {
	var list []config.Override
	add := func(key, flag, value string) {
		if value != "" {
			list = append(list, config.Override{Key: key, Value: value, Source: flag})
		}
	}
	add("listen", "--listen", c.Listen)
	add("tls.cert", "--tls-cert", absolute(c.TLSCert))
	add("tls.key", "--tls-key", absolute(c.TLSKey))
	if c.BehindProxy {
		add("behind_proxy", "--behind-proxy", strconv.FormatBool(c.BehindProxy))
	}
	return list
}

// absolute is the path as the shell meant it: the configuration takes paths from the home.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return whole
}

// startFault says why a host could not start, for people.
func startFault(err error, cfg config.Config) error {
	var full *journal.StorageFullError
	switch {
	case errors.Is(err, journal.ErrLocked):
		hint := "use it, stop it, or take another --home"
		if at, readErr := os.ReadFile(filepath.Join(cfg.Home, daemon.AddressFile)); readErr == nil {
			hint = "it is at " + strings.TrimSpace(string(at)) + "; " + hint
		}
		return &fault{err: fmt.Errorf("another host runs on %s", cfg.Home), code: exitFailed, hint: hint}
	case errors.As(err, &full):
		return &fault{
			err:  fmt.Errorf("too little space for a host on %s: %d bytes are free, %d are needed", full.Path, full.Free, full.Needed),
			code: exitFailed, hint: hintFor(err),
		}
	case errors.Is(err, daemon.ErrBroken):
		return &fault{err: err, code: exitBroken}
	case errors.Is(err, daemon.ErrSocketPath):
		return &fault{err: err, code: exitFailed, hint: "give the home a shorter path, or name it by a short symbolic link: --home LINK"}
	case errors.Is(err, daemon.ErrSocketTaken):
		return &fault{err: err, code: exitFailed, hint: "move it away, or use another --home"}
	case errors.Is(err, syscall.EADDRINUSE):
		return &fault{err: err, code: exitFailed, hint: "use another address: --listen 127.0.0.1:0 takes any that is free"}
	}
	return err
}

// logger writes to standard error.
func (a *app) logger(c config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // the configuration holds one of the four
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, options))
}

// untilParentEnds gives the processes of a demo the life of the demo, also when that is
// killed: the pipe that it holds is then closed.
func (a *app) untilParentEnds(ctx context.Context, withParent bool) (context.Context, func(), error) {
	if !withParent {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	k, err := newKeyboard(a.Stdin)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("watch standard input: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for range k.lines { // nobody writes; the end closes it
		}
	}()
	return ctx, func() { k.close(); <-done }, nil
}
