package naradhttp

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// audited is one decision of a session, with who stands behind it.
type audited struct {
	SessionSequence int64                 `json:"sessionSequence"`
	EventID         string                `json:"eventId"`
	Timestamp       string                `json:"timestamp"`
	Type            narad.Type            `json:"type"`
	RunID           string                `json:"runId,omitzero"`
	InterruptID     string                `json:"interruptId"`
	Decision        string                `json:"decision,omitzero"`
	Members         []facts.MemberDecided `json:"members,omitempty"`
	Reason          string                `json:"reason,omitzero"`
	Actor           actor                 `json:"actor"`
}

// actor is a decider: what the fact says, and the name that only an administrator of
// the host learns (R6).
type actor struct {
	ID   string `json:"id"`
	Rule string `json:"rule,omitzero"`
	Name string `json:"name,omitzero"`
}

// maxScan is how many pages of facts one page of the audit goes through.
const maxScan = 10

// audit lists who decided what in a session. A page may have fewer items than its limit
// and still have a next one.
func (b *Binding) audit(w http.ResponseWriter, r *request) error {
	v, s, err := b.view(r, access.AuditSession)
	if err != nil {
		return err
	}
	after, err := number(r, "afterSessionSequence")
	if err != nil {
		return err
	}
	if after > s.Last {
		return cursorAhead()
	}
	most, err := limit(r, b.opt.Page)
	if err != nil {
		return err
	}
	items, next, err := b.decisions(r.Context(), v, after, most)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{"items": items, "nextSessionSequence": next})
}

// decisions goes through facts until it has found so many decisions, or has gone far
// enough. next is where to go on; nil at the end.
func (b *Binding) decisions(ctx context.Context, v *host.View, after uint64, most int) (items []audited, next *uint64, err error) {
	items = []audited{}
	for range maxScan {
		chunk, err := v.Read(ctx, host.Cursor{After: after}, host.Page{})
		if err != nil {
			return nil, nil, err
		}
		for i, record := range chunk.Records {
			item, found, err := b.audited(record)
			if err != nil {
				return nil, nil, err
			}
			after = record.Sequence
			if found {
				items = append(items, item)
			}
			if len(items) == most && (chunk.More || i+1 < len(chunk.Records)) {
				return items, &after, nil
			}
		}
		if !chunk.More {
			return items, nil, nil
		}
	}
	return items, &after, nil
}

// audited returns the decision that a fact records; false if it records none.
func (b *Binding) audited(record host.Record) (item audited, found bool, err error) {
	decoded, err := narad.Decode(record.Bytes)
	if err != nil {
		return audited{}, false, fmt.Errorf("decode a stored fact: %w", err)
	}
	switch f := decoded.(type) {
	case *narad.InterruptResolved:
		item, found = resolvedItem(f), true
	case *narad.Custom:
		item, found = voteItem(f)
	}
	if !found {
		return audited{}, false, nil
	}
	e := decoded.(narad.Authority).Envelope()
	item.SessionSequence, item.EventID, item.Timestamp = e.SessionSequence, e.EventID, e.Timestamp
	item.Type, item.RunID = decoded.Type(), e.RunID
	item.Actor.Name, _ = b.opt.ActorName(item.Actor.ID)
	return item, true, nil
}

func resolvedItem(f *narad.InterruptResolved) audited {
	item := audited{InterruptID: f.InterruptID, Decision: f.Decision, Reason: f.Reason}
	item.Actor.ID, _ = f.Actor.Field("id").IsString()
	item.Actor.Rule, _ = f.Actor.Field("rule").IsString()
	for _, m := range f.Members {
		item.Members = append(item.Members, facts.MemberDecided{RequestID: m.RequestID, Decision: m.Decision})
	}
	return item
}

// voteItem is a decision of some members of a pack (R12).
func voteItem(f *narad.Custom) (audited, bool) {
	d, ok := facts.Read[facts.Decided](f, facts.Decision)
	return audited{
		InterruptID: d.InterruptID, Members: d.Members, Reason: d.Reason, Actor: actor{ID: d.Actor.ID, Rule: d.Actor.Rule},
	}, ok
}
