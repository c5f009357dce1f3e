package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narya"
)

type naryaCommands struct {
	Events naryaEventsCommand `cmd:"" help:"Follow the events of the host."`
}

func (naryaCommands) Help() string { return "Example: mahati narya events --json" }

type naryaEventsCommand struct {
	hostFlags
	Session    string `placeholder:"ID" help:"Only the events of this session, by its id or its UUID."`
	Wait       bool   `help:"With --session: wait for a session that has not begun yet."`
	HostEvents bool   `name:"host-events" help:"With --session: also the events of no session."`
	From       string `placeholder:"ID" help:"Begin behind this event, or at the oldest that is kept if it is the word oldest. Otherwise with what comes."`
	JSON       bool   `name:"json" help:"Print the events as they come, and nothing else, as JSON lines."`
}

func (naryaEventsCommand) Help() string {
	return `Goes on over the ends of blocks and connections and over restarts of the host, with each event once, until
Ctrl-C. Events that the host keeps no longer are told on standard error. The exit code is 0 when it was left,
1 when the host refused, cannot be reached at the beginning, or has another store, and 2 when it was called wrongly.
A session that is not there is an error, unless it is to be waited for.

Example: mahati narya events --from oldest
Example: mahati narya events --json --session SESSION`
}

// fromOldest is the word for the beginning of all that is kept.
const fromOldest = "oldest"

// Run performs the command.
func (c naryaEventsCommand) Run(ctx context.Context, a *app) error {
	var from int64
	if c.From != "" && c.From != fromOldest {
		var ok bool
		if from, ok = narya.ParseID(c.From); !ok {
			return usage("mahati narya events --help", "--from: %q is no id of an event, nor the word %s", c.From, fromOldest)
		}
	}
	if c.Session == "" && (c.HostEvents || c.Wait) {
		return usage("mahati narya events --help", "--host-events and --wait go with --session: without it the events of everything come, the host's own too")
	}
	client, err := c.connectTo(a, naryahttp.Prefix)
	if err != nil {
		return err
	}
	defer client.Close()
	r := &eventReader{client: client, hostEvents: c.HostEvents, wait: c.Wait, lost: a.tellLost, missed: a.tellMissed, take: a.printEvent}
	if c.Session != "" {
		r.session = narya.UUID(narya.KindSession, c.Session)
	}
	if c.JSON {
		r.take = func(e event) error { return a.printLine(e.raw) }
	}
	err = r.begin(ctx, from, c.From == fromOldest)
	if err == nil {
		err = r.read(ctx)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // a stream without an end is left
	}
	return err
}

// tellMissed tells what nobody can show any more.
func (a *app) tellMissed(after, before int64) {
	fmt.Fprintf(a.Stderr, "%s\n", a.err.yellow(fmt.Sprintf("the events behind %d and before %d are kept no longer", after, before)))
}

// printEvent prints an event for people, on one line.
func (a *app) printEvent(e event) error {
	where := "host"
	if e.SessionID != "" {
		where = short(e.SessionID, 9)
	}
	_, err := fmt.Fprintf(a.out, "%s %s %-9s %s %s\n",
		a.out.dim(narya.FormatID(e.ID)), clock(e.Timestamp), where, a.out.cyan(fmt.Sprintf("%-22s", oneLine(e.kind))), short(eventWords(e), 200))
	return err
}
