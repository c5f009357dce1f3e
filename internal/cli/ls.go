package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mahati-host/mahati/narad/client"
)

type lsCommand struct {
	hostFlags
	State     string `enum:"idle,running,waiting,archived,any" default:"any" placeholder:"STATE" help:"Only those that are idle, running (a question to you is a part of that), waiting (for a place among the running agents, or stopped with messages left) or archived. Otherwise all that the host lists."`
	Follow    bool   `help:"Go on: print each session of the workspace again when it changes."`
	Workspace string `default:"default" placeholder:"NAME" help:"The workspace that is followed."`
	JSON      bool   `name:"json" help:"Print one JSON object a line."`
}

func (lsCommand) Help() string {
	return "Example: mahati ls --state running --json\nExample: mahati ls --follow"
}

func (c lsCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	if c.Follow {
		return c.follow(ctx, a, host)
	}
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "SESSION\tSTATE\tAGENT\tUPDATED\tTITLE")
	}
	for s, err := range host.Sessions(ctx, c.query()) {
		if err != nil {
			if err = a.damaged(err); err != nil {
				return err
			}
			break
		}
		if err := c.print(a, table, s); err != nil {
			return err
		}
	}
	return table.Flush()
}

func (c lsCommand) query() client.SessionQuery {
	if c.State == "any" {
		return client.SessionQuery{}
	}
	return client.SessionQuery{State: c.State}
}

// print prints one session, for a program or as a row of a table.
func (c lsCommand) print(a *app, table io.Writer, s client.Session) error {
	if c.JSON {
		return a.printLine(s.Raw)
	}
	_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", oneLine(s.SessionID), oneLine(s.State), orWord(s.Agent, "-"),
		local(s.UpdatedAt), short(s.Title, 60))
	return err
}

// local shows a timestamp as the clock here does.
func local(timestamp string) string {
	at, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return orWord(timestamp, "-")
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

type inboxCommand struct {
	hostFlags
	JSON bool `name:"json" help:"Print one JSON object a line."`
}

func (inboxCommand) Help() string { return "Example: mahati inbox" }

func (c inboxCommand) Run(ctx context.Context, a *app) error {
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	none := true
	for i, err := range host.Interrupts(ctx, client.InboxQuery{}) {
		if err != nil {
			if err = a.damaged(err); err != nil {
				return err
			}
			none = false
			break
		}
		none = false
		if c.JSON {
			err = a.printLine(i.Raw)
		} else {
			err = c.tell(a, i)
		}
		if err != nil {
			return err
		}
	}
	if none && !c.JSON {
		fmt.Fprintln(a.Stderr, "nothing waits for a decision")
	}
	return nil
}

func (c inboxCommand) tell(a *app, i client.Interrupt) error {
	s := &screen{console: a.out}
	s.line("", a.out.bold(oneLine(i.InterruptID))+" "+a.out.yellow(orWord(i.Title, "a decision is needed")))
	s.line("  ", a.out.dim(oneLine(joined(", ", "session "+i.SessionID, i.SessionTitle, "since "+local(i.RequestedAt), expiring(i.ExpiresAt)))))
	s.matter("  ", i.Message, i.Input)
	s.line("  ", a.out.dim("decide with: mahati resolve "+oneLine(i.InterruptID+" "+strings.Join(i.Actions, "|"))))
	return nil
}

func expiring(timestamp string) string {
	if timestamp == "" {
		return ""
	}
	return "until " + local(timestamp)
}
