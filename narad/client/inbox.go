package client

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// An Interrupt is one entry of the approval inbox: a question that some session asks
// and that the caller may decide.
type Interrupt struct {
	InterruptID     string      `json:"interruptId"`
	SessionID       string      `json:"sessionId"`
	WorkspaceID     string      `json:"workspaceId"`
	SessionTitle    string      `json:"sessionTitle"`
	RootRunID       string      `json:"rootRunId"`
	RunID           string      `json:"runId"`
	WorkflowID      string      `json:"workflowId"`
	Scope           narad.Scope `json:"scope"`
	WaitID          string      `json:"waitId"`
	Kind            string      `json:"kind"`
	Actions         []string    `json:"actions"`
	Title           string      `json:"title"`
	Message         string      `json:"message"`
	Input           narad.Raw   `json:"input"`
	RequestedAt     string      `json:"requestedAt"`
	ExpiresAt       string      `json:"expiresAt"`
	SessionSequence int64       `json:"sessionSequence"`
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
	Limit  int
	Cursor string
}

// InboxPage is one page of the inbox.
type InboxPage struct {
	Items []Interrupt `json:"items"`
	// NextCursor reads on; empty on the last page.
	NextCursor string `json:"nextCursor"`
}

// Inbox returns one page of the open interrupts of all sessions in which the caller
// may decide.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) (page InboxPage, err error) {
	return page, c.get(ctx, "read inbox", "/interrupts", listQuery(q.Limit, q.Cursor, "open"), &page)
}

// Interrupts goes through all open interrupts, from a query's cursor on.
func (c *Client) Interrupts(ctx context.Context, q InboxQuery) iter.Seq2[Interrupt, error] {
	return pages(q.Cursor, func(cursor string) ([]Interrupt, string, error) {
		q.Cursor = cursor
		page, err := c.Inbox(ctx, q)
		return page.Items, page.NextCursor, err
	})
}
