package workbench

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

const (
	// maxTerminals bounds the terminals that are not released.
	maxTerminals = 64
	// usualOutput and maxOutput bound what is kept of a terminal's output, in bytes.
	usualOutput = 128 << 10
	maxOutput   = 256 << 10
	// endTime bounds the end of a terminal.
	endTime = 10 * time.Second
)

// terminal is a command that runs or has run.
type terminal struct {
	group *process.Group
	out   *tail
	quit  chan struct{}
	once  sync.Once
	ended chan struct{} // closed when nothing of it runs any more
}

// stop lets the terminal end, and waits for nothing.
func (t *terminal) stop() { t.once.Do(func() { close(t.quit) }) }

// watch ends the group when its process has ended, or it is to stop.
func (t *terminal) watch() {
	defer close(t.ended)
	select {
	case <-t.group.Exited():
	case <-t.quit:
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	_ = t.group.End(ctx) // what cannot be ended is the kernel's
}

// exit is how a command ended, as the protocol says it.
type exit struct {
	Code   *int    `json:"exitCode"`
	Signal *string `json:"signal"`
}

// status returns how the command ended, nil while it runs.
func (t *terminal) status() *exit {
	select {
	case <-t.ended:
	default:
		return nil
	}
	state := t.group.State()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		name := status.Signal().String()
		return &exit{Signal: &name}
	}
	code := state.ExitCode()
	return &exit{Code: &code}
}

// create is terminal/create.
func (b *Bench) create(_ context.Context, call client.ToolCall) (narad.Raw, error) {
	var a struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
		Cwd     string   `json:"cwd"`
		Limit   *int     `json:"outputByteLimit"`
		Env     []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	if a.Command == "" {
		return nil, refuse(codeInvalid, "A command is required.")
	}
	dir, err := b.directory(a.Cwd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(a.Command, a.Args...)
	if len(a.Args) == 0 && strings.ContainsAny(a.Command, " \t\n|&;<>()$`\"'*?~") {
		cmd = exec.Command("/bin/sh", "-c", a.Command) // agents send command lines, too
	}
	cmd.Dir, cmd.Env = dir, Environment()
	for _, v := range a.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	limit := usualOutput
	if a.Limit != nil {
		limit = min(max(0, *a.Limit), maxOutput)
	}
	id, err := b.start(cmd, limit)
	if err != nil {
		return nil, err
	}
	return response(struct {
		ID string `json:"terminalId"`
	}{id})
}

// start starts a command as a terminal.
func (b *Bench) start(cmd *exec.Cmd, limit int) (id string, err error) {
	t := &terminal{out: &tail{most: limit}, quit: make(chan struct{}), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = t.out, t.out
	cmd.WaitDelay = time.Second // for what holds the output open after the command
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return "", refuse(codeFailed, "The executor ends.")
	case len(b.terminals) >= maxTerminals:
		return "", refuse(codeTooMany, "Too many terminals are open. Release some.")
	}
	if t.group, err = process.Start(cmd, "executor"); err != nil {
		return "", refuse(codeNoCommand, "The command cannot be started.")
	}
	id = "term-" + rand.Text()
	b.terminals[id] = t
	b.work.Go(t.watch)
	return id, nil
}

// directory returns where a command runs, which is below the root.
func (b *Bench) directory(path string) (string, error) {
	if path == "" {
		return b.dir, nil
	}
	rel, err := b.below(path)
	if err != nil {
		return "", err
	}
	info, err := b.root.Stat(rel) // it refuses links that lead out
	switch {
	case err != nil:
		return "", failed(err)
	case !info.IsDir():
		return "", refuse(codeNotFound, "There is no such directory.")
	}
	return filepath.Join(b.dir, rel), nil
}

// terminal returns the terminal that a call is about.
func (b *Bench) terminal(call client.ToolCall) (string, *terminal, error) {
	var a struct {
		ID string `json:"terminalId"`
	}
	if err := arguments(call, &a); err != nil {
		return "", nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.terminals[a.ID]
	if t == nil {
		return "", nil, refuse(codeNoSuch, "There is no such terminal. It ended with its executor, or was released.")
	}
	return a.ID, t, nil
}

// output is terminal/output.
func (b *Bench) output(_ context.Context, call client.ToolCall) (narad.Raw, error) {
	_, t, err := b.terminal(call)
	if err != nil {
		return nil, err
	}
	ended := t.status() // before the output, which is whole then
	text, truncated := t.out.text()
	return response(struct {
		Output    string `json:"output"`
		Truncated bool   `json:"truncated"`
		Exit      *exit  `json:"exitStatus,omitempty"`
	}{text, truncated, ended})
}

// wait is terminal/wait_for_exit. A call lives as long as its token: after half of that the
// answer is {"running": true}, and the host asks again.
func (b *Bench) wait(ctx context.Context, call client.ToolCall) (narad.Raw, error) {
	_, t, err := b.terminal(call)
	if err != nil {
		return nil, err
	}
	half := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		half = time.Until(deadline) / 2
	}
	timer := time.NewTimer(half)
	defer timer.Stop()
	select {
	case <-t.ended:
		return response(t.status())
	case <-timer.C:
		return narad.Raw(`{"running":true}`), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill is terminal/kill: the command ends, its output and its status can be had.
func (b *Bench) kill(ctx context.Context, call client.ToolCall) (narad.Raw, error) {
	_, t, err := b.terminal(call)
	if err != nil {
		return nil, err
	}
	t.stop()
	select {
	case <-t.ended:
		return narad.Raw("{}"), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release is terminal/release: the command ends, and nothing of it is kept.
func (b *Bench) release(ctx context.Context, call client.ToolCall) (narad.Raw, error) {
	id, _, err := b.terminal(call)
	if err != nil {
		return nil, err
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.terminals, id)
	}()
	return b.kill(ctx, call)
}

// Environment is what tools get of the executor's environment: all but its own token.
func Environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAHATI_TOKEN=") {
			kept = append(kept, v)
		}
	}
	return kept
}

// tail keeps the end of what is written.
type tail struct {
	most int

	mu   sync.Mutex
	data []byte // guarded by mu
	cut  bool   // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - t.most; over > 0 {
		t.cut = true
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// text is what is kept, from the first whole character.
func (t *tail) text() (text string, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	data := t.data
	for t.cut && len(data) > 0 && !utf8.RuneStart(data[0]) {
		data = data[1:]
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), t.cut
}
