package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

type demoCommands struct {
	Session   demoCommand          `cmd:"" default:"withargs" help:"A session over a disconnect and a kill of the host. This is shown when nothing is named."`
	Executor  demoExecutorCommand  `cmd:"" help:"A tool on another machine, over kills of both sides."`
	Contracts demoContractsCommand `cmd:"" help:"One run on all three contracts, side by side."`
}

func (demoCommands) Help() string {
	return "Example: mahati demo --yes\nExample: mahati demo executor --yes\nExample: mahati demo contracts --yes"
}

type demoCommand struct {
	Home string `placeholder:"DIR" help:"Keep everything in this directory, which must be new or empty. Otherwise a temporary one."`
	Yes  bool   `help:"Approve what is asked, and ask nobody."`
}

func (demoCommand) Help() string {
	return `Starts a host on a free port of this machine, lets a scripted agent work, leaves and comes back,
kills the host with kill -9 in the middle and starts it again, and then checks that nothing was lost,
doubled or left behind. The exit code is 1 when a check fails.

Example: mahati demo --yes
Example: mahati demo session --yes --home kept`
}

//go:embed demo.yaml
var demoScript string

// demoPace is how fast the demo goes.
type demoPace struct{ text, work time.Duration }

var shownPace = demoPace{text: 110 * time.Millisecond, work: 700 * time.Millisecond}

// script is the demo's script at a pace.
func (p demoPace) script() string { return p.in(demoScript) }

// in sets a script to a pace.
func (p demoPace) in(script string) string {
	return strings.NewReplacer(
		"@PACE@", p.text.String(), "@WORK@", strconv.FormatFloat(p.work.Seconds(), 'f', -1, 64),
	).Replace(script)
}

func (c demoCommand) Run(ctx context.Context, a *app) (err error) {
	if !c.Yes && !a.interactive() {
		return usage("mahati demo --yes", "there is nobody to ask here")
	}
	home, remove, err := c.prepare(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	d := &demo{app: a, yes: c.Yes, stage: stage{home: home}, screen: &screen{console: a.out}}
	d.teller = newTeller(d.screen, nil, a.namer(home))
	defer func() { err = errors.Join(err, d.close()) }()
	if err = d.perform(ctx); err == nil {
		err = d.judge(ctx)
	}
	if ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, "left the demo; its host is ended")
		return &fault{code: exitDetached}
	}
	return err
}

// prepare makes the home, and says how to take it away again.
func (c demoCommand) prepare(a *app) (home string, remove func() error, err error) {
	if c.Home == "" {
		home, err = os.MkdirTemp("", "mahati-demo-")
		return home, func() error { return os.RemoveAll(home) }, err
	}
	home, err = homeFlag{c.Home}.dir(a)
	if err != nil {
		return "", nil, err
	}
	if entries, err := os.ReadDir(home); err == nil && len(entries) > 0 {
		return "", nil, usage("name a new directory", "%s is not empty", home)
	}
	return home, func() error { return nil }, os.MkdirAll(home, 0o700)
}

// stage is a home in which the demo's script is played.
type stage struct {
	home    string
	host    *childHost
	address string
}

func (s *stage) work() string       { return filepath.Join(s.home, "work") }
func (s *stage) scriptFile() string { return filepath.Join(s.home, "demo.yaml") }

// set makes what the host needs.
func (s *stage) set(script string) error {
	if err := os.MkdirAll(s.work(), 0o700); err != nil {
		return fmt.Errorf("make a directory to work in: %w", err)
	}
	if err := os.WriteFile(s.scriptFile(), []byte(script), 0o600); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	s.address = "127.0.0.1:0"
	return nil
}

// start starts the host: the first time on a free port, then on the same.
func (s *stage) start() error {
	host, err := startChild(s.childOptions())
	if err != nil {
		return err
	}
	s.host, s.address = host, host.address()
	return nil
}

func (s *stage) childOptions() childOptions {
	return childOptions{
		home: s.home, listen: s.address, script: s.scriptFile(), env: []string{"MAHATI_WORKSPACES_ROOTS=" + s.home},
	}
}

func (s *stage) kill() error {
	host := s.host
	s.host = nil
	return host.kill()
}

func (s *stage) stop() error {
	host := s.host
	s.host = nil
	return host.stop()
}

// close ends the host if it still runs, and with it what its tools run.
func (s *stage) close() error {
	if s.host == nil {
		return nil
	}
	return s.stop()
}

// connect returns a client with the token of the home. It is patient with a host that
// is not there for a while.
func (s *stage) connect() (*client.Client, error) {
	secret, err := access.ReadFirst(s.home)
	if err != nil {
		return nil, err
	}
	return client.New("http://"+s.address, client.Options{
		Token: client.Token(secret.Reveal()), Attempts: 40,
		Backoff: client.Exponential(25*time.Millisecond, 250*time.Millisecond, func() float64 { return 1 }),
	})
}

// demo is one showing.
type demo struct {
	*app
	stage
	yes     bool
	screen  *screen
	teller  *teller
	client  *client.Client
	session string
	run     string
	seen    []narad.Raw // the facts that the client was shown, in their order
	left    client.Position
	ended   narad.Authority
	// executor is that of the session, "" for none.
	executor string
	asked    string // the interrupt that was open when the host was killed
	kept     bool   // ... and open when it was back
}

// say tells what the demo does, apart from what the session tells.
func (d *demo) say(format string, args ...any) {
	d.screen.finish()
	d.screen.line("", d.out.bold(d.out.green("▍ "))+d.out.bold(fmt.Sprintf(format, args...)))
}

const demoPrompt = "Mend the report: its test fails in some time zones."

// perform plays the three acts.
func (d *demo) perform(ctx context.Context) error {
	if err := d.begin(ctx, shownPace.script(), demoPrompt); err != nil {
		return err
	}
	defer d.client.Close()
	if err := d.untilDisconnect(ctx); err != nil {
		return err
	}
	return d.untilEnd(ctx)
}

// begin starts the host and the session.
func (d *demo) begin(ctx context.Context, script, prompt string) error {
	if err := d.set(script); err != nil {
		return err
	}
	if err := d.start(); err != nil {
		return err
	}
	d.say("A host runs at %s (process %d), with a scripted agent: no key, no network.", d.host.ready.URL, d.host.ready.PID)
	var err error
	if d.client, err = d.connect(); err != nil {
		return err
	}
	created, _, err := d.client.CreateSession(ctx, client.NewSession{CWD: d.work(), Title: "Demo", ClientExecutorID: d.executor})
	if err != nil {
		return err
	}
	d.session = created.SessionID
	sent, err := d.client.Message(ctx, client.Message{SessionID: d.session, Content: prompt})
	d.run = sent.RunID
	return err
}

// follow shows the session from where it was left.
func (d *demo) follow(ctx context.Context, v *viewer) error {
	v.client = d.client
	v.follower = d.client.Follow(d.session, client.FollowOptions{After: d.left.Sequence, Epoch: d.left.Epoch})
	d.teller.state = v.follower
	v.teller = d.teller
	leave := v.leave
	v.leave = func(u client.Update) bool {
		if fact, ok := u.Record.(narad.Authority); ok {
			d.seen = append(d.seen, u.Raw)
			if terminal(fact) && fact.Envelope().RunID == d.run {
				d.ended = fact
			}
		}
		return leave(u)
	}
	err := v.follow(ctx)
	d.left.Sequence, d.left.Epoch = int64(len(d.seen)), v.follower.Position().Epoch
	return err
}

// nestedText reports whether a turn is text of a nested agent.
func nestedText(u client.Update) bool {
	delta, ok := u.Record.(*narad.MessageTextDelta)
	return ok && delta.Nested()
}

// untilDisconnect follows until the second agent speaks, and leaves the session alone
// for a while.
func (d *demo) untilDisconnect(ctx context.Context) error {
	d.say("A client follows the session live.")
	spoken := 0
	err := d.follow(ctx, &viewer{leave: func(u client.Update) bool {
		if nestedText(u) {
			spoken++
		}
		return spoken == 4 || d.ended != nil
	}})
	if err != nil {
		return err
	}
	d.say("The client disconnects after fact %d. The session does not notice.", d.left.Sequence)
	head, err := d.awaitFacts(ctx, d.left.Sequence+5)
	if err != nil {
		return err
	}
	d.say("The host is at fact %d; a client comes back with its cursor, %d.", head, d.left.Sequence)
	return nil
}

// awaitFacts waits until the session has come to a sequence, or has ended.
func (d *demo) awaitFacts(ctx context.Context, sequence int64) (int64, error) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		s, err := d.client.Session(ctx, d.session)
		if err != nil {
			return 0, err
		}
		if s.CurrentSessionSequence >= sequence || s.ActiveRootRunID == "" {
			return s.CurrentSessionSequence, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// untilEnd comes back, kills the host while the approval is open and an agent speaks,
// starts it again, decides, and follows to the end.
func (d *demo) untilEnd(ctx context.Context) (err error) {
	v := &viewer{}
	spoken := 0
	v.leave = func(u client.Update) bool {
		switch {
		case nestedText(u) && d.asked == "" && u.Phase == client.Live:
			if spoken++; spoken == 5 {
				err = d.killAndRestart(v)
			}
		case u.Record == nil && u.Phase == client.Live && d.asked != "" && !d.kept:
			err = d.decide(ctx, v)
		}
		return err != nil || d.ended != nil
	}
	followErr := d.follow(ctx, v)
	if v.keys != nil {
		v.keys.close()
	}
	return errors.Join(err, followErr)
}

// killAndRestart is the accident.
func (d *demo) killAndRestart(v *viewer) error {
	open := openInterrupts(v.follower.Snapshot())
	if len(open) == 0 {
		return errors.New("no approval is open")
	}
	d.asked = open[0].InterruptID
	pid := d.host.ready.PID
	if err := d.kill(); err != nil {
		return err
	}
	d.say("kill -9 %d: the host is gone, in the middle of a sentence, with an approval open.", pid)
	began := time.Now()
	if err := d.start(); err != nil {
		return err
	}
	d.say("A new host (process %d) serves %s after %s, and takes the run up where it was.", d.host.ready.PID, d.host.ready.URL, time.Since(began).Round(time.Millisecond))
	return nil
}

// decide looks for the approval in the inbox of the new host, and answers it or lets it
// be asked.
func (d *demo) decide(ctx context.Context, v *viewer) (err error) {
	for i, err := range d.client.Interrupts(ctx, client.InboxQuery{}) {
		if err != nil {
			return err
		}
		d.kept = d.kept || i.InterruptID == d.asked
	}
	if !d.kept {
		return errors.New("the approval did not survive the restart")
	}
	if d.yes {
		d.say("The approval is still open, and --yes approves it.")
		_, err = d.client.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: d.asked, Decision: "approve", Reason: "demo --yes"})
		return err
	}
	d.say("The approval is still open. Decide:")
	if v.keys, err = newKeyboard(d.Stdin); err != nil {
		return err
	}
	for _, i := range openInterrupts(v.follower.Snapshot()) {
		v.inquire(i)
	}
	v.prompt()
	return nil
}
