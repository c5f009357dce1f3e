package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/narad"
)

// command is a shell command that a tool call really runs.
type command struct {
	line    template
	timeout time.Duration
}

// gate is what the shell does first: it waits for a line on its standard input, and
// does nothing without one. So the process can be recorded before it does anything,
// and a host that dies in between leaves nothing behind.
const gate = `read -r go || exit 125; exec "$0" -c "$1" </dev/null`

const shell = "/bin/sh"

const (
	// lastOutput is how long a process that left the group may hold the output open.
	lastOutput = time.Second
	// killTime bounds the end of what a shell left behind.
	killTime = 10 * time.Second
)

// ordinaryEnv is what commands get of the host's environment: no secrets.
func ordinaryEnv() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "USER"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// run runs the command and returns how it ended. It returns an error only when the
// run is to end; the command's process group is gone then, too.
func (c *command) run(ctx context.Context, sc *scene, at spot, put func(string) error) (agent.ToolResult, error) {
	line, err := c.line.fill(sc, at)
	if err != nil {
		return agent.ToolResult{}, err
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if c.timeout > 0 {
		within, cancel = context.WithTimeout(ctx, c.timeout)
	}
	defer cancel()
	p, err := start(line, sc)
	if err != nil {
		return agent.ToolResult{Outcome: narad.OutcomeError, Code: "not_started", Message: "The command cannot be started."}, nil
	}
	err = p.perform(within, sc, put)
	switch {
	case ctx.Err() != nil:
		return agent.ToolResult{}, ctx.Err()
	case within.Err() != nil:
		return agent.ToolResult{Outcome: narad.OutcomeError, Code: "timeout", Message: "The command took too long and was ended."}, nil
	case err != nil:
		return agent.ToolResult{}, err
	}
	return exited(p.group.State()), nil
}

// exited returns the end of a call whose command ran to its end.
func exited(state *os.ProcessState) agent.ToolResult {
	code := state.ExitCode()
	r := agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(fmt.Sprintf(`{"exitCode":%d}`, code))}
	if code != 0 {
		r.Outcome, r.Code = narad.OutcomeError, fmt.Sprintf("exit_%d", code)
	}
	if code < 0 {
		r.Code = "signal"
	}
	return r
}

// running is a command that runs, with everything it starts.
type running struct {
	group  *process.Group
	input  *os.File // a line written here lets it begin
	output *os.File
	owned  bool          // it is recorded as the session's
	gone   chan struct{} // closed when the group is gone
}

// start starts the shell, which waits.
func start(line string, sc *scene) (*running, error) {
	info := sc.h.Info()
	cmd := exec.Command(shell, "-c", gate, shell, line)
	cmd.Dir = info.Cwd
	cmd.Env = append(slices.Clone(sc.play.opt.Env), "MAHATI_RUN_ID="+info.RunID)
	p := &running{gone: make(chan struct{})}
	var pipes process.Pipes
	var theirIn, theirOut *os.File
	p.input, theirIn = pipes.To()
	p.output, theirOut = pipes.From()
	err := pipes.Err()
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirOut
		p.group, err = process.Start(cmd, info.SessionID)
	}
	if err != nil {
		pipes.Close()
		return nil, err
	}
	pipes.Started()
	go p.wait()
	return p, nil
}

// wait waits for the shell, and ends what it left behind in its group.
func (p *running) wait() {
	defer close(p.gone)
	<-p.group.Exited()
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	_ = p.group.End(ctx) // what cannot be killed is not waited for
	// What left the group may hold the output open: nobody waits for it for long.
	_ = p.output.SetReadDeadline(time.Now().Add(lastOutput))
}

// perform lets the command begin, hands on its output, and returns when its whole
// group is gone.
func (p *running) perform(ctx context.Context, sc *scene, put func(string) error) error {
	stop := context.AfterFunc(ctx, p.group.Kill)
	defer stop()
	err := p.begin(ctx, sc)
	if err == nil {
		err = p.copy(put)
	}
	if err != nil {
		p.group.Kill()
	}
	p.close()
	return errors.Join(err, p.forget(sc))
}

// close returns when the group is gone. A shell that never began ends by it.
func (p *running) close() {
	p.input.Close()
	<-p.gone
	p.output.Close()
}

// begin records the process as the session's and lets it begin.
func (p *running) begin(ctx context.Context, sc *scene) error {
	if own := sc.play.session.Own; own != nil {
		if err := own(ctx, p.group.ID); err != nil {
			return err
		}
		p.owned = true
	}
	_, err := p.input.WriteString("go\n")
	return err
}

// forget takes the record of the process back.
func (p *running) forget(sc *scene) error {
	if !p.owned || sc.play.session.Disown == nil {
		return nil
	}
	return sc.play.session.Disown(context.Background(), p.group.ID)
}

// copy hands the output on until nobody can write any more. A slow receiver holds the
// command up.
func (p *running) copy(put func(string) error) error {
	buffer := make([]byte, 8<<10)
	var text decoder
	for {
		n, err := p.output.Read(buffer)
		if part := text.add(buffer[:n], err != nil); part != "" {
			if err := put(part); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the end, or the deadline
		}
	}
}
