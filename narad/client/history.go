package client

import (
	"context"
	"iter"
	"net/url"

	"github.com/mahati-host/mahati/narad"
)

// HistoryQuery selects facts of a session: all of them, or those of one run tree, or
// of one workflow. Each cursor is the sequence of the last fact that the caller has
// in that ordering. Cursors of several kinds must name the same place, or the host
// answers CodeCursorConflict.
type HistoryQuery struct {
	AfterSessionSequence  int64
	RootRunID             string
	AfterSequence         int64
	WorkflowID            string
	AfterWorkflowSequence int64
	// Limit is the most events of a page. Zero: the host's default.
	Limit int
}

// A HistoryPage is some consecutive facts, as the bytes that the host keeps for ever.
type HistoryPage struct {
	Events []narad.Raw `json:"events"`
	// The cursors to read on with; nil where there is no more. A filtered page has
	// those of its filter.
	NextSessionSequence  *int64 `json:"nextSessionSequence"`
	NextSequence         *int64 `json:"nextSequence"`
	NextWorkflowSequence *int64 `json:"nextWorkflowSequence"`
}

const maxPageEvents = 10_000

// History returns one page of a session's facts.
func (c *Client) History(ctx context.Context, sessionID string, q HistoryQuery) (HistoryPage, error) {
	const op = "read history"
	path, err := sessionPath(op, sessionID, "/events")
	if err != nil {
		return HistoryPage{}, err
	}
	var page HistoryPage
	if err := c.get(ctx, op, path, q.values(), &page); err != nil {
		return HistoryPage{}, err
	}
	if len(page.Events) > maxPageEvents {
		return HistoryPage{}, invalidAnswer(op, "a page has at most 10000 events")
	}
	return page, nil
}

// Events goes through all facts that a query selects.
func (c *Client) Events(ctx context.Context, sessionID string, q HistoryQuery) iter.Seq2[narad.Raw, error] {
	return func(yield func(narad.Raw, error) bool) {
		for more := true; more; {
			page, err := c.History(ctx, sessionID, q)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, event := range page.Events {
				if !yield(event, nil) {
					return
				}
			}
			before := q
			if q, more = page.next(q); more && q == before {
				yield(nil, invalidAnswer("read history", "a page does not lead on"))
				return
			}
		}
	}
}

func (q HistoryQuery) filtered() bool { return q.RootRunID != "" || q.WorkflowID != "" }

func (q HistoryQuery) values() url.Values {
	v := url.Values{}
	if !q.filtered() || q.AfterSessionSequence > 0 {
		v.Set("afterSessionSequence", decimal(q.AfterSessionSequence))
	}
	if q.RootRunID != "" {
		v.Set("rootRunId", q.RootRunID)
		v.Set("afterSequence", decimal(q.AfterSequence))
	}
	if q.WorkflowID != "" {
		v.Set("workflowId", q.WorkflowID)
		v.Set("afterWorkflowSequence", decimal(q.AfterWorkflowSequence))
	}
	if q.Limit > 0 {
		v.Set("limit", decimal(int64(q.Limit)))
	}
	return v
}

// next returns the query of the following page, and whether there is one.
func (p HistoryPage) next(q HistoryQuery) (HistoryQuery, bool) {
	switch {
	case q.RootRunID != "" && p.NextSequence == nil,
		q.WorkflowID != "" && p.NextWorkflowSequence == nil,
		!q.filtered() && p.NextSessionSequence == nil:
		return q, false
	}
	if q.RootRunID != "" {
		q.AfterSequence = *p.NextSequence
	}
	if q.WorkflowID != "" {
		q.AfterWorkflowSequence = *p.NextWorkflowSequence
	}
	switch {
	case !q.filtered():
		q.AfterSessionSequence = *p.NextSessionSequence
	case p.NextSessionSequence != nil && q.AfterSessionSequence > 0:
		q.AfterSessionSequence = *p.NextSessionSequence
	default:
		q.AfterSessionSequence = 0 // a place of the first page alone
	}
	return q, true
}
