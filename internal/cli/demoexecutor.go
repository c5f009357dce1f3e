package cli

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

type demoExecutorCommand struct {
	Home string `placeholder:"DIR" help:"Keep everything in this directory, which must be new or empty. Otherwise a temporary one."`
	Yes  bool   `help:"Ask nobody. Nothing is asked here, so it changes nothing."`
}

func (demoExecutorCommand) Help() string {
	return `Starts a host and an executor, each a process of its own, and lets a scripted agent under the host call
tools of the executor. The executor is killed with kill -9 after a tool acted and before it could say so; then the host
is killed too, while a tool ends. Then it checks that each tool ran once, and that the facts say what is known.
The exit code is 1 when a check fails.

Example: mahati demo executor --yes`
}

//go:embed demo_executor.yaml
var demoExecutorScript string

const (
	demoExecutorID     = "desk"
	demoExecutorPrompt = "Send the report to the board."
	demoLedger         = "executor.jsonl"
)

func (c demoExecutorCommand) Run(ctx context.Context, a *app) (err error) {
	home, remove, err := demoCommand{Home: c.Home}.prepare(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	d := &executorDemo{demo: demo{app: a, stage: stage{home: home}, screen: &screen{console: a.out}, executor: demoExecutorID}}
	d.teller = newTeller(d.screen, nil, a.namer(home))
	defer func() { err = errors.Join(err, d.endDesk(), d.close()) }()
	if err = d.perform(ctx); err == nil {
		err = d.judge(ctx)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, "left the demo; its processes are ended")
		return &fault{code: exitDetached}
	}
	return err
}

// executorDemo is one showing.
type executorDemo struct {
	demo
	desk *childDesk
	cut  bool // the first call was cut off
}

// perform plays the acts.
func (d *executorDemo) perform(ctx context.Context) (err error) {
	if err := d.begin(ctx, demoExecutorScript, demoExecutorPrompt); err != nil {
		return err
	}
	defer d.client.Close()
	if err := d.makeToken(); err != nil {
		return err
	}
	d.say("The agent's tools run elsewhere, and nobody is there: the run waits.")
	v := &viewer{}
	v.leave = func(u client.Update) bool {
		if err == nil {
			err = d.act(ctx, u)
		}
		return err != nil || d.ended != nil
	}
	return errors.Join(d.follow(ctx, v), err)
}

// act does what the demo does when something of the session is seen.
func (d *executorDemo) act(ctx context.Context, u client.Update) error {
	switch f := u.Record.(type) {
	case *narad.RunPaused:
		if !d.cut {
			d.cut = true
			return d.killDesk(ctx)
		}
	case *narad.ToolCallStarted:
		if f.ToolName == "seal" {
			return d.killBoth(ctx)
		}
	}
	return nil
}

// killDesk starts the executor for which the run waits, kills it after its tool acted and
// before it answered, and starts it again.
func (d *executorDemo) killDesk(ctx context.Context) error {
	if err := d.startDesk(); err != nil {
		return err
	}
	d.say("An executor dials in (process %d) with a token that is good for nothing else. The run goes on.", d.desk.cmd.Process.Pid)
	if err := d.awaitRun(ctx, "send_report"); err != nil {
		return err
	}
	pid := d.desk.cmd.Process.Pid
	if err := d.endDesk(); err != nil {
		return err
	}
	d.say("kill -9 %d: the executor is gone. Its tool has acted, and nobody was told.", pid)
	if err := d.startDesk(); err != nil {
		return err
	}
	d.say("A new executor (process %d) reads the ledger: that call was accepted, and how it ended nobody knows. It does not run it again.", d.desk.cmd.Process.Pid)
	return nil
}

// killBoth lets a tool end while the host is gone, kills the executor as well, and starts
// both again.
func (d *executorDemo) killBoth(ctx context.Context) error {
	if err := d.awaitRun(ctx, "seal"); err != nil {
		return err
	}
	pid := d.host.ready.PID
	if err := d.kill(); err != nil {
		return err
	}
	d.say("kill -9 %d: the host is gone while the tool runs.", pid)
	if err := os.WriteFile(filepath.Join(d.work(), "go"), nil, 0o600); err != nil {
		return err
	}
	if err := d.desk.await(ctx, "finished", "seal"); err != nil {
		return err
	}
	pid = d.desk.cmd.Process.Pid
	if err := d.endDesk(); err != nil {
		return err
	}
	d.say("The tool ends, and there is no host to tell it to. kill -9 %d: the executor is gone, too.", pid)
	if err := d.start(); err != nil {
		return err
	}
	if err := d.startDesk(); err != nil {
		return err
	}
	d.say("Both are back (processes %d and %d), and the executor tells what its ledger says.", d.host.ready.PID, d.desk.cmd.Process.Pid)
	return nil
}

// awaitRun waits until a tool has acted.
func (d *executorDemo) awaitRun(ctx context.Context, tool string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	for {
		names, _, err := toolRuns(d.work())
		if err != nil || slices.Contains(names, tool) {
			return err
		}
		select {
		case <-ticker.C:
		case <-late.C:
			return fmt.Errorf("%s does not run", tool)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (d *executorDemo) tokenFile() string { return filepath.Join(d.home, "executor.token") }

// makeToken makes the executor's token.
func (d *executorDemo) makeToken() error {
	store, err := access.Open(d.home, access.StoreOptions{})
	if err != nil {
		return fmt.Errorf("open the tokens: %w", err)
	}
	_, secret, err := store.Create(access.TokenRequest{
		Name: "demo executor", Grant: access.Grant{Roles: []access.Role{access.Execute}, Executors: []string{demoExecutorID}},
	}, time.Now())
	if err != nil {
		return fmt.Errorf("make a token: %w", err)
	}
	return os.WriteFile(d.tokenFile(), []byte(secret.Reveal()+"\n"), 0o600)
}

// childDesk is an executor in a process of its own.
type childDesk struct {
	cmd     *exec.Cmd
	life    *os.File // it ends when this is closed
	notices chan noticeLine
}

// demoTools are the executor's tools: they write down that they ran.
func demoTools() []string {
	return []string{
		"send_report=" + `echo "send_report $$" >> ` + toolLog + `; echo report >> outbox; sleep 2; echo sent`,
		"count_sent=" + `echo "count_sent $$" >> ` + toolLog + `; grep -c report outbox`,
		"seal=" + `echo "seal $$" >> ` + toolLog + `; while [ ! -e go ]; do sleep 0.05; done; echo '{"sealed":true}'`,
	}
}

// startDesk starts the executor.
func (d *executorDemo) startDesk() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(d.home, "executor.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p, err := newPipes()
	if err != nil {
		return err
	}
	args := []string{"executor", "--id", demoExecutorID, "--url", "http://" + d.address, "--token-file", d.tokenFile(),
		"--ledger", filepath.Join(d.home, demoLedger), "--json", "--with-parent"}
	for _, tool := range demoTools() {
		args = append(args, "--tool", tool)
	}
	cmd := exec.Command(program, args...)
	cmd.Args[0] = "mahati"
	cmd.Dir, cmd.Env = d.work(), foreignEnv()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.childIn, p.childOut, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	p.childIn.Close()
	p.childOut.Close()
	if err != nil {
		return errors.Join(fmt.Errorf("start the executor: %w", err), p.life.Close(), p.out.Close())
	}
	d.desk = &childDesk{cmd: cmd, life: p.life, notices: make(chan noticeLine, 256)}
	go d.desk.listen(p.out)
	return nil
}

// listen reads what the executor tells, to its end.
func (c *childDesk) listen(out io.ReadCloser) {
	defer close(c.notices)
	defer out.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var n noticeLine
		if json.Unmarshal(lines.Bytes(), &n) == nil {
			c.notices <- n
		}
	}
}

// await waits until the executor tells something of a tool.
func (c *childDesk) await(ctx context.Context, what, tool string) error {
	late := time.NewTimer(startTimeout)
	defer late.Stop()
	for {
		select {
		case n, ok := <-c.notices:
			switch {
			case !ok:
				return errors.New("the executor has ended")
			case n.What == what && n.ToolName == tool:
				return nil
			}
		case <-late.C:
			return fmt.Errorf("the executor does not tell that %s is %s", tool, what)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endDesk kills the executor, if there is one, and waits until it is gone. What its tools
// started goes on.
func (d *executorDemo) endDesk() error {
	c := d.desk
	if c == nil {
		return nil
	}
	d.desk = nil
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the executor: %w", err)
	}
	_ = c.cmd.Wait() // it was killed
	for range c.notices {
	}
	return c.life.Close()
}

// judge checks what the demo has shown, and says so in one last line.
func (d *executorDemo) judge(ctx context.Context) error {
	export, err := exported(ctx, d.client, d.session)
	if err != nil {
		return err
	}
	if err := errors.Join(d.endDesk(), d.stop()); err != nil {
		return err
	}
	if err := sameFacts(d.seen, export); err != nil {
		return fmt.Errorf("what the client saw: %w", err)
	}
	if err := checkTrace(export); err != nil {
		return fmt.Errorf("the exported session: %w", err)
	}
	names, _, err := toolRuns(d.work())
	if err != nil {
		return err
	}
	if got := strings.Join(names, " "); got != "send_report count_sent seal" {
		return fmt.Errorf("the tools that ran: %s", got)
	}
	if err := endings(export, map[string]string{
		"send_report": "error " + string(client.CodeOutcomeUnknown), "count_sent": "success 1", "seal": `success {"sealed":true}`,
	}); err != nil {
		return err
	}
	for _, fact := range export {
		if strings.Contains(string(fact), "mxt_") || strings.Contains(string(fact), "mxl_") {
			return errors.New("a fact holds a token or a lease")
		}
	}
	if err := nothingRuns(d.work()); err != nil {
		return err
	}
	if err := d.verify(ctx); err != nil {
		return err
	}
	if d.ended.Type() != narad.TypeRunFinished {
		return fmt.Errorf("the run ended as %s", d.ended.Type())
	}
	d.say("checked: 3 tools ran exactly once over three kill -9; the fact of the one that was cut off says that nobody knows, "+
		"the one that ended in silence is told as it ended; the run finished; %d facts, narad check ok; store verified; "+
		"no token in a fact; no process left.", len(export))
	return nil
}

// endings compares how tools ended, each its outcome with its code or its response.
func endings(facts []narad.Raw, want map[string]string) error {
	called, got := map[string]string{}, map[string]string{}
	for _, fact := range facts {
		record, err := narad.Decode(fact)
		if err != nil {
			return err
		}
		switch f := record.(type) {
		case *narad.ToolCallStarted:
			called[f.ToolCallID] = f.ToolName
		case *narad.ToolCallFinished:
			said, isText := f.Response.Field("code").IsString()
			if !isText {
				said = string(f.Response)
			}
			got[called[f.ToolCallID]] += string(f.Outcome) + " " + said
		}
	}
	for tool, how := range want {
		if got[tool] != how {
			return fmt.Errorf("%s ended as %q, not as %q", tool, got[tool], how)
		}
	}
	return nil
}
