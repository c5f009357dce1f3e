package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// follow lists the sessions of a workspace and then each that changes, until the user has
// seen enough. It listens before it lists, so that nothing is missed between.
func (c lsCommand) follow(ctx context.Context, a *app, host *client.Client) error {
	shown := map[string]string{}
	for u, err := range host.FollowWorkspace(c.Workspace, client.WorkspaceOptions{}).Updates(ctx) {
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case u.Err != nil:
			fmt.Fprintln(a.Stderr, oneLine("the host is away: "+u.Err.Error()))
		case u.Event != nil:
			err = c.refresh(ctx, a, host, changed(u.Event), shown)
		case u.Phase == client.Live && len(shown) == 0:
			err = c.listAll(ctx, a, host, shown)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changed is the session that an event is about.
func changed(event *narad.Revision) string {
	if event.SessionID != "" || event.Cursor == nil {
		return event.SessionID
	}
	for _, m := range event.Cursor.Extra {
		if m.Name == "sessionId" {
			id, _ := m.Value.IsString()
			return id
		}
	}
	return ""
}

func (c lsCommand) listAll(ctx context.Context, a *app, host *client.Client, shown map[string]string) error {
	for s, err := range host.Sessions(ctx, c.query()) {
		if err != nil {
			if err = a.damaged(err); err != nil {
				return err
			}
			break
		}
		if s.WorkspaceID == c.Workspace {
			if err := c.show(a, s, shown); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh shows a session as it is now. One that was deleted meanwhile is shown no more.
func (c lsCommand) refresh(ctx context.Context, a *app, host *client.Client, id string, shown map[string]string) error {
	if id == "" {
		return nil
	}
	s, err := host.Session(ctx, id)
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && (refused.Status == 404 || refused.Status == 410), ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	return c.show(a, s, shown)
}

// show prints a session unless it looks as it did when it was printed last.
func (c lsCommand) show(a *app, s client.Session, shown map[string]string) error {
	looks := s.State + "\x00" + s.Title
	switch {
	case c.State != "any" && s.State != c.State:
		delete(shown, s.SessionID) // and if it comes to be so again, it is news
		return nil
	case shown[s.SessionID] == looks:
		return nil
	}
	shown[s.SessionID] = looks
	return c.print(a, a.out, s)
}
