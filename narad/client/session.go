package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// NewSession is what a session is created with. All of it is optional; what is left
// out is the host's to choose.
type NewSession struct {
	// SessionID makes a repetition harmless; left empty, the client makes one.
	SessionID   string `json:"sessionId,omitzero"`
	WorkspaceID string `json:"workspaceId,omitzero"`
	// CWD is the directory the agent works in, inside a root that the host allows.
	CWD              string `json:"cwd,omitzero"`
	Title            string `json:"title,omitzero"`
	Agent            string `json:"agent,omitzero"`
	ClientExecutorID string `json:"clientExecutorId,omitzero"`
}

// A Session is a host's summary of a session. A field that the host leaves out is zero.
type Session struct {
	SessionID   string `json:"sessionId"`
	WorkspaceID string `json:"workspaceId"`
	// State is one of the host's words: of Mahati idle, running, waiting (messages are
	// queued and nothing moves them) and archived.
	State            string   `json:"state"`
	Title            string   `json:"title"`
	CWD              string   `json:"cwd"`
	Agent            string   `json:"agent"`
	ClientExecutorID string   `json:"clientExecutorId"`
	RequiredProfiles []string `json:"requiredProfiles"`
	// CreatedAt and UpdatedAt are times as in RFC 3339, in UTC.
	CreatedAt string `json:"createdAt"`
	UpdatedAt string `json:"updatedAt"`
	// CurrentSessionSequence is the sequence of the session's last fact.
	CurrentSessionSequence int64 `json:"currentSessionSequence"`
	// The run, or the workflow, that is active; empty where none is.
	ActiveRootRunID  string `json:"activeRootRunId"`
	ActiveWorkflowID string `json:"activeWorkflowId"`
	// Raw is the whole summary as it came, with what this package does not know.
	Raw narad.Raw `json:"-"`
}

// UnmarshalJSON reads a summary and keeps its bytes.
func (s *Session) UnmarshalJSON(data []byte) error {
	type fields Session
	if err := json.Unmarshal(data, (*fields)(s)); err != nil {
		return err
	}
	return s.Raw.UnmarshalJSON(data)
}

// SessionQuery selects sessions. The zero value selects those that the host lists by
// default, in pages of its default size.
type SessionQuery struct {
	// Limit is the most sessions of a page. Zero: the host's default.
	Limit int
	// Cursor is a page's NextCursor. Empty: from the newest on.
	Cursor string
	// State selects by [Session.State]. Empty: whatever the host lists by default.
	State string
}

// SessionPage is one page of a list of sessions.
type SessionPage struct {
	Items []Session `json:"items"`
	// NextCursor reads on; empty on the last page.
	NextCursor string `json:"nextCursor"`
	// Damaged names the sessions of the page whose stored data is damaged on the host,
	// whether or not they are among the items.
	Damaged []DamagedEntry `json:"damaged"`
}

// CreateSession creates a session, or returns the one that already has this id: created
// tells which. What the host will not have, such as a directory outside of its roots, is
// an [*Error] with its code and the HTTP status 422.
func (c *Client) CreateSession(ctx context.Context, n NewSession) (s Session, created bool, err error) {
	const op = "create session"
	if n.SessionID == "" {
		n.SessionID = c.newID()
	}
	err = c.do(ctx, call{
		op: op, method: http.MethodPost, path: "/sessions", body: &n, once: n.SessionID == "",
		read: func(r response) error {
			created = r.status == http.StatusCreated
			return c.into(op, &s)(r)
		},
	})
	return s, created, err
}

// Session returns the summary of a session.
func (c *Client) Session(ctx context.Context, id string) (s Session, err error) {
	const op = "read session"
	path, err := sessionPath(op, id, "")
	if err != nil {
		return s, err
	}
	return s, c.get(ctx, op, path, nil, &s)
}

// ListSessions returns one page of sessions.
func (c *Client) ListSessions(ctx context.Context, q SessionQuery) (page SessionPage, err error) {
	return page, c.get(ctx, "list sessions", "/sessions", listQuery(q.Limit, q.Cursor, q.State), &page)
}

// Sessions goes through all sessions that a query selects, from its cursor on, a page at a
// time. An error is the last turn; a [*DamageError] comes behind all the others.
func (c *Client) Sessions(ctx context.Context, q SessionQuery) iter.Seq2[Session, error] {
	return pages(q.Cursor, func(cursor string) (listPage[Session], error) {
		q.Cursor = cursor
		page, err := c.ListSessions(ctx, q)
		return listPage[Session](page), err
	})
}

// ArchiveSession archives a session, which must be idle.
func (c *Client) ArchiveSession(ctx context.Context, id string) error {
	return c.change(ctx, "archive session", http.MethodPost, id, "/archive")
}

// RestoreSession takes a session out of the archive.
func (c *Client) RestoreSession(ctx context.Context, id string) error {
	return c.change(ctx, "restore session", http.MethodPost, id, "/restore")
}

// DeleteSession deletes a session for ever; its id is never given again. A session
// that was deleted before is an error with status 410, unless it was by this call.
func (c *Client) DeleteSession(ctx context.Context, id string) error {
	return c.change(ctx, "delete session", http.MethodDelete, id, "")
}

// change sends what alters a session and answers nothing of interest. A repeated
// deletion that finds the session gone has found its own effect.
func (c *Client) change(ctx context.Context, op, method, id, tail string) error {
	path, err := sessionPath(op, id, tail)
	if err != nil {
		return err
	}
	return c.do(ctx, call{op: op, method: method, path: path, read: func(r response) error {
		if method == http.MethodDelete && r.status == http.StatusGone && r.attempt > 1 {
			return nil
		}
		return c.into(op, nil)(r)
	}})
}

// sessionPath is the path of a session's resource.
func sessionPath(op, id, tail string) (string, error) {
	name, ok := segment(id)
	if !ok {
		return "", badID(op, "a session id")
	}
	return "/sessions/" + name + tail, nil
}

// listQuery is the query of a list; what is zero is left out.
func listQuery(limit int, cursor, state string) url.Values {
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", decimal(int64(limit)))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	if state != "" {
		query.Set("state", state)
	}
	return query
}
