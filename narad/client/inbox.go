package client

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// An Interrupt is one entry of the approval inbox: a question that some session asks
// and that the caller may decide. A field that the host leaves out is zero.
type Interrupt struct {
	// InterruptID is what [ResolveInterrupt] names.
	InterruptID  string `json:"interruptId"`
	SessionID    string `json:"sessionId"`
	WorkspaceID  string `json:"workspaceId"`
	SessionTitle string `json:"sessionTitle"`
	// The run, or the workflow, that waits: Scope says which.
	RootRunID  string      `json:"rootRunId"`
	RunID      string      `json:"runId"`
	WorkflowID string      `json:"workflowId"`
	Scope      narad.Scope `json:"scope"`
	WaitID     string      `json:"waitId"`
	// Kind is "approval" for a permission (R11), "question" for a question (R13), or a
	// word of the host's.
	Kind string `json:"kind"`
	// Actions are the decisions that it takes, in the host's words.
	Actions []string `json:"actions"`
	// Title and Message are for people; they are an agent's words and may hold anything.
	Title   string `json:"title"`
	Message string `json:"message"`
	// Input is what it is about, for programs: R11, R12 and R13 say in which form.
	Input narad.Raw `json:"input"`
	// RequestedAt and ExpiresAt are times as in RFC 3339, in UTC; ExpiresAt is empty if it
	// waits for ever.
	RequestedAt string `json:"requestedAt"`
	ExpiresAt   string `json:"expiresAt"`
	// SessionSequence is where it was requested.
	SessionSequence int64 `json:"sessionSequence"`
	// Raw is the whole entry as it came, with what this package does not know.
	Raw narad.Raw `json:"-"`
}

// UnmarshalJSON reads an entry and keeps its bytes.
func (i *Interrupt) UnmarshalJSON(data []byte) error {
	type fields Interrupt
	if err := json.Unmarshal(data, (*fields)(i)); err != nil {
		return err
	}
	return i.Raw.UnmarshalJSON(data)
}

// InboxQuery selects a page of the inbox.
type InboxQuery struct {
	// Limit is the most entries of a page. Zero: the host's default.
	Limit int
	// Cursor is a page's NextCursor. Empty: from the oldest on.
	Cursor string
}

// InboxPage is one page of the inbox.
type InboxPage struct {
	Items []Interrupt `json:"items"`
	// NextCursor reads on; empty on the last page.
	NextCursor string `json:"nextCursor"`
	// Damaged names the interrupts of the page whose stored data is damaged on the host,
	// whether or not they are among the items.
	Damaged []DamagedEntry `json:"damaged"`
}

// Inbox returns one page of the open interrupts of all sessions in which the caller
// may decide, the oldest first.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (page InboxPage, err error) {
	return page, c.get(ctx, "read inbox", "/interrupts", listQuery(q.Limit, q.Cursor, "open"), &page)
}

// Interrupts goes through all open interrupts, from a query's cursor on, a page at a time.
// An error is the last turn; a [*DamageError] comes behind all the others.
func (c *Client) Interrupts(ctx context.Context, q InboxQuery) iter.Seq2[Interrupt, error] {
	return pages(q.Cursor, func(cursor string) (listPage[Interrupt], error) {
		q.Cursor = cursor
		page, err := c.Inbox(ctx, q)
		return listPage[Interrupt](page), err
	})
}
