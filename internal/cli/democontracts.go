package cli

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narya"
)

type demoContractsCommand struct {
	Home string `placeholder:"DIR" help:"Keep everything in this directory, which must be new or empty. Otherwise a temporary one."`
	Yes  bool   `help:"Approve what is asked, and ask nobody."`
}

func (demoContractsCommand) Help() string {
	return `Starts a host, begins one run by the headless run contract, follows it live on all three contracts at once, side by
side, decides its approval by Narya, and tells the others the opposite, which they refuse. Then it checks that
the contracts told the same: the same order, the same decision, the same ending, and the same again when asked again.
The exit code is 1 when a check fails.

Example: mahati demo contracts --yes`
}

//go:embed demo_contracts.yaml
var demoContractsScript string

func (c demoContractsCommand) Run(ctx context.Context, a *app) (err error) {
	if !c.Yes && !a.interactive() {
		return usage("mahati demo contracts --yes", "there is nobody to ask here")
	}
	home, remove, err := demoCommand{Home: c.Home}.prepare(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	d := &contractsDemo{app: a, yes: c.Yes, stage: stage{home: home}}
	defer func() { err = errors.Join(err, d.close()) }()
	err = d.perform(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(a.Stderr, "left the demo; its host is ended")
		return &fault{code: exitDetached}
	}
	return err
}

// contractsDemo is one showing.
type contractsDemo struct {
	*app
	stage
	yes bool

	narad *client.Client
	log   *logClient
	narya *apiClient

	run     startedRun
	decided string // what the approval became

	// What each contract has told, in order; each belongs to its reader until that has ended.
	facts   []narad.Raw
	records []narad.Raw
	events  []event
}

func (d *contractsDemo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "%s%s\n", d.out.bold(d.out.green("▍ ")), d.out.bold(fmt.Sprintf(format, args...)))
}

func (d *contractsDemo) perform(ctx context.Context) error {
	if err := d.set(shownPace.in(demoContractsScript)); err != nil {
		return err
	}
	if err := d.start(); err != nil {
		return err
	}
	if err := d.connect(); err != nil {
		return err
	}
	defer d.narad.Close()
	defer d.log.Close()
	defer d.narya.Close()
	var err error
	d.run, err = d.log.start(ctx, newRun{Version: harness.Version, InputID: "demo", Text: demoPrompt, CWD: d.work(), Title: "Demo"})
	if err != nil {
		return err
	}
	d.say("A host serves three contracts on %s. One run, begun by %s:", d.host.ready.Socket, harness.Version)
	if err := d.follow(ctx); err != nil {
		return err
	}
	return d.judge(ctx)
}

// connect makes a client of each contract, on the socket of the home.
func (d *contractsDemo) connect() (err error) {
	unset := *d.app
	unset.Getenv = func(string) string { return "" } // whatever host the user speaks to otherwise
	flags := hostFlags{homeFlag: homeFlag{d.home}, URL: (&url.URL{Scheme: "unix", Path: d.host.ready.Socket}).String()}
	if d.narad, err = flags.connect(&unset); err != nil {
		return err
	}
	if d.log, err = flags.connectLog(&unset); err != nil {
		return err
	}
	d.narya, err = flags.connectTo(&unset, naryahttp.Prefix)
	return err
}

// rowTime bounds how far one contract may be behind another.
const rowTime = time.Minute

// errRowsEnd ends a reader that has the end of the run.
var errRowsEnd = errors.New("the run has ended")

// follow shows the run as all three tell it, point by point, and decides what is asked once
// all three have told of it.
func (d *contractsDemo) follow(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop(nil)
	var columns [3]chan point
	for i, read := range []func(context.Context, func(point) error) error{d.readFacts, d.readLog, d.readEvents} {
		columns[i] = make(chan point)
		readers.Go(func() {
			defer close(columns[i])
			err := read(ctx, func(m point) error { return give(ctx, columns[i], m) })
			if err != nil && !errors.Is(err, errRowsEnd) {
				stop(fmt.Errorf("%s: %w", contracts[i], err))
			}
		})
	}
	d.printRow("", contracts)
	for {
		row, err := takeRow(ctx, columns)
		if err != nil {
			return err
		}
		d.printRow(joined(" ", string(row[0].what), row[0].words), [3]string{row[0].as, row[1].as, row[2].as})
		switch row[0].what {
		case permissionAsked:
			err = d.decide(ctx, row[0].about)
		case runEnds:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var contracts = [3]string{narad.Version, harness.Version, "Narya host API v1"}

func give(ctx context.Context, column chan<- point, m point) error {
	select {
	case column <- m:
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.what == runEnds {
		return errRowsEnd
	}
	return nil
}

// takeRow takes the next point of each contract, which must be the same.
func takeRow(ctx context.Context, columns [3]chan point) (row [3]point, err error) {
	late := time.NewTimer(rowTime)
	defer late.Stop()
	for i, column := range columns {
		var ok bool
		select {
		case row[i], ok = <-column:
		case <-late.C:
			return row, fmt.Errorf("%s tells nothing, where %s told %s", contracts[i], contracts[0], row[0].as)
		case <-ctx.Done():
			return row, context.Cause(ctx)
		}
		switch {
		case !ok && ctx.Err() != nil:
			return row, context.Cause(ctx)
		case !ok:
			return row, fmt.Errorf("%s ended before the run did", contracts[i])
		case row[i].what != row[0].what || row[i].about != row[0].about:
			return row, fmt.Errorf("%s tells %q of %q (%s), and %s %q of %q (%s)", contracts[i], row[i].what, row[i].about, row[i].as,
				contracts[0], row[0].what, row[0].about, row[0].as)
		}
	}
	return row, nil
}

func (d *contractsDemo) printRow(what string, as [3]string) {
	fmt.Fprintf(d.out, "%s %-27s %-25s %s\n", d.out.cyan(fmt.Sprintf("%-36s", short(what, 36))), as[0], as[1], as[2])
}

func (d *contractsDemo) readFacts(ctx context.Context, give func(point) error) error {
	column := &naradColumn{run: d.run.RunID, said: texts{}, tools: map[string]string{}}
	for u, err := range d.narad.Follow(d.run.SessionID, client.FollowOptions{}).Updates(ctx) {
		if err != nil {
			return err
		}
		if _, ok := u.Record.(narad.Authority); ok {
			d.facts = append(d.facts, u.Raw)
		}
		if m, ok := column.point(u.Record); ok {
			if err := give(m); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (d *contractsDemo) readLog(ctx context.Context, give func(point) error) error {
	column := &logColumn{said: texts{}, users: map[string]bool{}}
	r := &logReader{client: d.log, run: d.run.RunID, take: func(e harness.Event, raw narad.Raw) error {
		d.records = append(d.records, raw)
		m, ok := column.point(e)
		if !ok {
			return nil
		}
		if err := give(m); !errors.Is(err, errRowsEnd) {
			return err
		}
		return nil // the log ends with a record behind
	}}
	return r.read(ctx)
}

func (d *contractsDemo) readEvents(ctx context.Context, give func(point) error) error {
	column := &eventColumn{said: texts{}}
	return d.eachEvent(ctx, func(e event) error {
		d.events = append(d.events, e)
		if m, ok := column.point(e); ok {
			return give(m)
		}
		return nil
	})
}

// eachEvent reads the events of the session from the first on.
func (d *contractsDemo) eachEvent(ctx context.Context, take func(event) error) error {
	r := &eventReader{
		client: d.narya, session: narya.UUID(narya.KindSession, d.run.SessionID), take: take,
		lost: func(error) {}, missed: func(int64, int64) {},
	}
	if err := r.begin(ctx, 0, true); err != nil {
		return err
	}
	return r.read(ctx)
}

// decide decides by Narya, and tells the others the opposite, which each must refuse.
func (d *contractsDemo) decide(ctx context.Context, id string) (err error) {
	if d.decided, err = d.choose(ctx); err != nil {
		return err
	}
	opposite := map[string]string{wordApprove: wordDeny, wordDeny: wordApprove}[d.decided]
	word := map[string]string{wordApprove: "allow", wordDeny: "deny"}[d.decided]
	if _, err := d.narya.post(ctx, "decide", "/permissions/"+url.PathEscape(id)+"/decision", map[string]string{"decision": word}); err != nil {
		return err
	}
	d.say("%s decides: %s. Then the others are told: %s.", contracts[2], d.decided, opposite)
	for i, tell := range []func(context.Context, string, string) (bool, error){d.decideByNarad, d.decideByLog} {
		refused, err := tell(ctx, id, opposite)
		if err != nil {
			return fmt.Errorf("%s, told to %s: %w", contracts[i], opposite, err)
		}
		if !refused {
			return fmt.Errorf("%s takes %s after %s", contracts[i], opposite, d.decided)
		}
	}
	d.say("They refuse: it is decided.")
	return nil
}

// decideByNarad tells Narad a decision, and reports whether it is refused since another was
// made before.
func (d *contractsDemo) decideByNarad(ctx context.Context, id, word string) (refused bool, err error) {
	answer, err := d.narad.ResolveInterrupt(ctx, client.ResolveInterrupt{InterruptID: id, Decision: word})
	if answer.Status == client.Conflict && answer.Decision == d.decided {
		return true, nil
	}
	return false, err
}

// decideByLog does it by the headless run contract.
func (d *contractsDemo) decideByLog(ctx context.Context, id, word string) (refused bool, err error) {
	_, err = d.log.input(ctx, harness.Input{
		RunID: d.run.RunID, Type: harness.ApprovalResolve, Approval: &harness.Resolution{ApprovalID: id, Decision: word},
	})
	var no *refusal
	if errors.As(err, &no) && no.status == http.StatusConflict {
		return true, nil
	}
	return false, err
}

// choose asks whoever watches, unless that was answered before.
func (d *contractsDemo) choose(ctx context.Context) (string, error) {
	if d.yes {
		return wordApprove, nil
	}
	keys, err := newKeyboard(d.Stdin)
	if err != nil {
		return "", err
	}
	defer keys.close()
	for {
		fmt.Fprintf(d.out, "%s ", d.out.yellow("approve or deny?"))
		select {
		case line, ok := <-keys.lines:
			if typed := strings.TrimSpace(line); !ok || typed == wordApprove || typed == wordDeny {
				return orWord(typed, wordDeny), nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// judge asks everything again and checks it, and says so in one last line.
func (d *contractsDemo) judge(ctx context.Context) error {
	export, err := exported(ctx, d.narad, d.run.SessionID)
	if err != nil {
		return err
	}
	if err := d.sameAgain(ctx); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	if err := sameFacts(d.facts, export); err != nil {
		return fmt.Errorf("what %s told: %w", narad.Version, err)
	}
	if err := checkTrace(export); err != nil {
		return fmt.Errorf("the exported session: %w", err)
	}
	ran, err := toolsRan(d.work(), export)
	if err != nil {
		return fmt.Errorf("the tools: %w", err)
	}
	if want := map[string]int{wordApprove: 2, wordDeny: 0}[d.decided]; ran != want {
		return fmt.Errorf("%s ran, %d should have", count(ran, "tool"), want)
	}
	if err := d.verify(ctx); err != nil {
		return err
	}
	tools := count(ran, "tool") + " ran exactly once"
	if ran == 0 {
		tools = "no tool ran"
	}
	d.say("checked: %s, %s and %s tell the same run: the same order, the same decision (%s), the same ending; each the same "+
		"byte for byte when asked again; narad check and harness check ok; store verified; %s.",
		count(len(d.facts), "fact"), count(len(d.records), "record"), count(len(d.events), "event"), d.decided, tools)
	return nil
}

// sameAgain reads log and events once more from the beginning.
func (d *contractsDemo) sameAgain(ctx context.Context) error {
	var log []narad.Raw
	r := &logReader{client: d.log, run: d.run.RunID, take: func(_ harness.Event, raw narad.Raw) error {
		log = append(log, raw)
		return nil
	}}
	if err := r.rest(ctx); err != nil {
		return err
	}
	if err := sameFacts(d.records, log); err != nil {
		return fmt.Errorf("what %s told: %w", harness.Version, err)
	}
	if _, err := harness.Project(bytes.NewReader(append(bytes.Join(rawBytes(log), []byte("\n")), '\n')), harness.SeePrivate); err != nil {
		return fmt.Errorf("the log: %w", err)
	}
	next := 0
	err := d.eachEvent(ctx, func(e event) error {
		if !bytes.Equal(e.raw, d.events[next].raw) {
			return fmt.Errorf("event %d is not what %s told", e.ID, contracts[2])
		}
		if next++; next == len(d.events) {
			return errRowsEnd
		}
		return nil
	})
	if errors.Is(err, errRowsEnd) {
		return nil
	}
	return err
}

func rawBytes(list []narad.Raw) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}
