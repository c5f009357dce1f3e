package naradhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// messages serves the transcript as a hydrate record (R29).
func (b *Binding) messages(w http.ResponseWriter, r *request) error {
	v, s, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	record, err := transcriptOf(r.Context(), v)
	if errors.Is(err, errTooLarge) {
		return tooLarge("the transcript is larger than one record: read the history")
	}
	if err != nil {
		return err
	}
	setHeaders(w.Header(), s)
	writeJSON(w, http.StatusOK, append(record, '\n'))
	return nil
}

// transcriptOf writes the transcript at the session's head, or errTooLarge.
func transcriptOf(ctx context.Context, v *host.View) (record []byte, err error) {
	err = v.Display(ctx, func(state *session.State) error {
		at, err := timestampAt(ctx, v, uint64(state.Last()))
		if err != nil {
			return err
		}
		record, err = transcript(state, at)
		return err
	})
	return record, err
}

// timestampAt returns the timestamp of the fact at a sequence: a hydrate record is a
// function of the fact at its cursor.
func timestampAt(ctx context.Context, v *host.View, sequence uint64) (string, error) {
	if sequence == 0 {
		return "", host.ErrNotFound
	}
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
	size := 0
	for _, m := range state.Messages() {
		item, err := json.Marshal(itemOf(m))
		if err != nil {
			return nil, fmt.Errorf("encode a message: %w", err)
		}
		if size += len(item); size > maxSnapshot {
			return nil, errTooLarge
		}
		snapshot.Messages = append(snapshot.Messages, item)
	}
	record, err := narad.Encode(snapshot)
	var refusal *narad.Error
	if errors.As(err, &refusal) && refusal.Code == narad.CodeTooLarge || len(record) > maxSnapshot {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("encode the transcript: %w", err)
	}
	return record, nil
}

var errTooLarge = errors.New("the transcript is larger than one record")

func tooLarge(detail string) error {
	return &server.Problem{HTTPStatus: http.StatusRequestEntityTooLarge, Code: "snapshot_too_large", Detail: detail}
}

// snapshotID is a function of the session and what the snapshot covers (R29).
func snapshotID(id string, covers int64) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("mahati:messages:"+id+":"+strconv.FormatInt(covers, 10))).String()
}

// item is one message of a transcript. A redacted one shows its replacement alone.
type item struct {
	MessageID       string      `json:"messageId"`
	Role            narad.Role  `json:"role"`
	Content         string      `json:"content"`
	Completed       bool        `json:"completed"`
	MessageScope    narad.Scope `json:"messageScope,omitzero"`
	SessionSequence int64       `json:"sessionSequence"`
	Timestamp       string      `json:"timestamp"`
	RootRunID       string      `json:"rootRunId,omitzero"`
	RunID           string      `json:"runId,omitzero"`
	AttachmentIDs   []string    `json:"attachmentIds,omitzero"`
	Redacted        bool        `json:"redacted,omitzero"`
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
