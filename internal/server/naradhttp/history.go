package naradhttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// ordering is one of the three in which history may be asked for (§10.2).
type ordering struct {
	filter, after, next string
	place               func(host.Record) uint64
}

var orderings = []ordering{
	{"", "afterSessionSequence", "nextSessionSequence", func(r host.Record) uint64 { return r.Sequence }},
	{"rootRunId", "afterSequence", "nextSequence", func(r host.Record) uint64 { return r.RunSequence }},
	{"workflowId", "afterWorkflowSequence", "nextWorkflowSequence", func(r host.Record) uint64 { return r.WorkflowSequence }},
}

// events serves one page of history (R26).
func (b *Binding) events(w http.ResponseWriter, r *http.Request) error {
	v, s, err := b.view(r, access.ReadSession, r.PathValue("id"))
	if err != nil {
		return err
	}
	asked, err := b.positions(r, s.Last)
	if err != nil {
		return err
	}
	n, err := limit(r, b.opt.Page)
	if err != nil {
		return err
	}
	chunk, err := b.read(r.Context(), v, asked, n)
	if err != nil {
		return err
	}
	return writePage(w, s, chunk, asked)
}

// position is a cursor of one ordering.
type position struct {
	ordering
	id    string
	after uint64
	given bool // the cursor was in the query
}

// positions reads the cursors of a query. The first is the session's.
func (b *Binding) positions(r *http.Request, head uint64) ([]position, error) {
	var list []position
	for _, o := range orderings {
		p := position{ordering: o, id: r.URL.Query().Get(o.filter), given: r.URL.Query().Has(o.after)}
		if o.filter != "" && p.id == "" {
			if p.given {
				return nil, bad("bad_cursor", o.after+" needs "+o.filter)
			}
			continue
		}
		after, err := number(r, o.after)
		if err != nil {
			return nil, err
		}
		p.after = after
		list = append(list, p)
	}
	if list[0].after > head {
		return nil, &server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_ahead", Detail: "the cursor is above the head of the session"}
	}
	return list, nil
}

// read reads a page in the narrowest order asked for. Several cursors must cut their
// orders at the same facts.
func (b *Binding) read(ctx context.Context, v *host.View, asked []position, n int) (host.Chunk, error) {
	last := asked[len(asked)-1]
	chunk, err := v.Read(ctx, cursorOf(last), host.Page{Limit: n})
	if errors.Is(err, host.ErrNotFound) {
		return chunk, &server.Problem{HTTPStatus: http.StatusNotFound, Code: "not_found", Detail: "no such run or workflow in the session"}
	}
	if err != nil {
		return chunk, err
	}
	for _, p := range asked[:len(asked)-1] {
		if !p.given {
			continue
		}
		if err := agree(ctx, v, p, last, chunk); err != nil {
			return chunk, err
		}
	}
	return chunk, nil
}

func cursorOf(p position) host.Cursor {
	c := host.Cursor{After: p.after}
	switch p.filter {
	case "rootRunId":
		c.RootRunID = p.id
	case "workflowId":
		c.WorkflowID = p.id
	}
	return c
}

// agree demands that a wider cursor cuts the narrower order where its own cursor does:
// the first fact after one is the first after the other.
func agree(ctx context.Context, v *host.View, wide, narrow position, chunk host.Chunk) error {
	conflict := &server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_conflict", Detail: "the cursors do not stand at the same facts"}
	if len(chunk.Records) > 0 && wide.place(chunk.Records[0]) <= wide.after {
		return conflict
	}
	if narrow.after == 0 {
		return nil
	}
	before := narrow
	before.after--
	prior, err := v.Read(ctx, cursorOf(before), host.Page{Limit: 1})
	if err != nil {
		return err
	}
	if len(prior.Records) == 0 || wide.place(prior.Records[0]) > wide.after {
		return conflict
	}
	return nil
}

// writePage answers with the stored bytes, which are never encoded again.
func writePage(w http.ResponseWriter, s host.Summary, chunk host.Chunk, asked []position) error {
	out := []byte(`{"events":[`)
	for i, r := range chunk.Records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r.Bytes...)
	}
	out = append(out, ']')
	for _, p := range asked {
		out = append(out, `,"`+p.next+`":`...)
		if !chunk.More || len(chunk.Records) == 0 {
			out = append(out, "null"...)
			continue
		}
		last, err := json.Marshal(p.place(chunk.Records[len(chunk.Records)-1]))
		if err != nil {
			return err
		}
		out = append(out, last...)
	}
	setHeaders(w.Header(), s)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(out, '}', '\n')) // the client may have left
	return nil
}

// messages serves the transcript as a hydrate record (R29).
func (b *Binding) messages(w http.ResponseWriter, r *http.Request) error {
	v, s, err := b.view(r, access.ReadSession, r.PathValue("id"))
	if err != nil {
		return err
	}
	var record []byte
	err = v.Display(r.Context(), func(state *session.State) error {
		at, err := b.timestampAt(r.Context(), v, uint64(state.Last()))
		if err != nil {
			return err
		}
		record, err = transcript(state, at)
		return err
	})
	if err != nil {
		return err
	}
	setHeaders(w.Header(), s)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(record, '\n'))
	return nil
}

// timestampAt returns the timestamp of the fact at a sequence: a hydrate record is a
// function of the fact at its cursor.
func (b *Binding) timestampAt(ctx context.Context, v *host.View, sequence uint64) (string, error) {
	chunk, err := v.Read(ctx, host.Cursor{After: sequence - 1}, host.Page{Limit: 1})
	if err != nil {
		return "", err
	}
	if len(chunk.Records) == 0 {
		return "", host.ErrNotFound
	}
	at, _ := narad.Raw(chunk.Records[0].Bytes).Field("timestamp").IsString()
	return at, nil
}

// maxSnapshot is the largest transcript that is one record.
const maxSnapshot = 500_000

func transcript(state *session.State, at string) ([]byte, error) {
	snapshot := &narad.MessagesSnapshot{
		Timestamp: at, SnapshotID: snapshotID(state.SessionID(), state.Last()), SessionID: state.SessionID(),
		CoversThroughSessionSequence: state.Last(),
	}
	for _, m := range state.Messages() {
		item, err := json.Marshal(itemOf(m))
		if err != nil {
			return nil, err
		}
		snapshot.Messages = append(snapshot.Messages, item)
	}
	record, err := narad.Encode(snapshot)
	if err != nil || len(record) > maxSnapshot {
		return nil, &server.Problem{
			HTTPStatus: http.StatusRequestEntityTooLarge, Code: "snapshot_too_large",
			Detail: "the transcript is larger than one record: read the history",
		}
	}
	return record, nil
}

// item is one message of a transcript. A redacted one shows its replacement alone.
type item struct {
	MessageID       string      `json:"messageId"`
	Role            narad.Role  `json:"role"`
	Content         string      `json:"content"`
	Completed       bool        `json:"completed"`
	MessageScope    narad.Scope `json:"messageScope,omitempty"`
	SessionSequence int64       `json:"sessionSequence"`
	Timestamp       string      `json:"timestamp"`
	RootRunID       string      `json:"rootRunId,omitempty"`
	RunID           string      `json:"runId,omitempty"`
	AttachmentIDs   []string    `json:"attachmentIds,omitempty"`
	Redacted        bool        `json:"redacted,omitempty"`
}

func itemOf(m session.Message) item {
	i := item{
		MessageID: m.MessageID, Role: m.Role, Content: m.Content, Completed: !m.Streaming, MessageScope: m.MessageScope,
		SessionSequence: m.SessionSequence, Timestamp: m.Timestamp, RootRunID: m.RootRunID, RunID: m.RunID,
		AttachmentIDs: m.AttachmentIDs, Redacted: m.Redacted,
	}
	if m.Redacted {
		i.Content = ""
		if m.DisplayReplacement != nil {
			i.Content = *m.DisplayReplacement
		}
	}
	return i
}
