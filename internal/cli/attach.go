package cli

import (
	"context"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/narad/client"
)

type attachCommand struct {
	hostFlags
	From      *int64 `placeholder:"SEQUENCE" help:"Show what came after this sequence: 0 shows all. Otherwise what came since you left."`
	UntilIdle bool   `help:"Leave as soon as nothing is active."`
	JSON      bool   `name:"json" help:"Print the facts as JSON lines, and ask nothing."`
	Session   string `arg:"" optional:"" help:"Session. Otherwise the one that you left last."`
}

func (attachCommand) Help() string {
	return `Approvals and questions are asked here if this is a terminal. Ctrl-C leaves the session, which
goes on.

Example: mahati attach --from 0 SESSION`
}

func (c attachCommand) Run(ctx context.Context, a *app) error {
	home, err := c.dir(a)
	if err != nil {
		return err
	}
	if c.Session == "" {
		if c.Session = positionsOf(home).last(); c.Session == "" {
			return usage("mahati ls", "no session was left before: name one")
		}
	}
	from := positionsOf(home).find(c.Session)
	if c.From != nil {
		from = position{Sequence: max(*c.From, 0)}
	}
	host, err := c.connect(a)
	if err != nil {
		return err
	}
	defer host.Close()
	var follower *client.Follower
	_, err = a.follow(ctx, following{
		hostFlags: c.hostFlags, host: host, json: c.JSON, session: c.Session, from: from,
		began: func(f *client.Follower) { follower = f },
		leave: func(u client.Update) bool {
			return c.UntilIdle && u.Phase == client.Live && follower.ActiveRootRunID() == "" && follower.ActiveWorkflowID() == ""
		},
	})
	return err
}

// namer says who stands behind an actor. The home, where this is its machine, knows the
// tokens by name; elsewhere the id has to do (R6).
func (a *app) namer(home string) func(facts.Actor) string {
	store, err := access.Open(home, access.StoreOptions{})
	return func(actor facts.Actor) string {
		if actor.Rule != "" {
			return "rule " + oneLine(actor.Rule)
		}
		if err == nil {
			if token, err := store.Lookup(actor.ID); err == nil {
				return fmt.Sprintf("%s (%s)", oneLine(token.Name), oneLine(actor.ID))
			}
		}
		return orWord(actor.ID, "somebody")
	}
}
