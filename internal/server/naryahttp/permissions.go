package naryahttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) permissionRoutes() routes {
	return routes{
		"GET /v1/permissions":                          b.permissions,
		"POST /v1/permissions/{permissionId}/decision": b.decide,
		"GET /v1/permissions/decisions":                b.decisions,
		"GET /v1/sessions/{sessionId}/rules":           b.remembered,
		"DELETE /v1/sessions/{sessionId}/rules/{rule}": b.forget,
		"GET /v1/questions":                            b.questions,
		"POST /v1/questions/{questionId}/answer":       b.answerQuestion,
	}
}

// pending is a permission that waits.
type pending struct {
	PermissionID string `json:"permissionId"`
	SessionID    string `json:"sessionId"`
	LaneID       string `json:"laneId,omitzero"`
	ToolCallID   string `json:"toolCallId,omitzero"`
	Action       string `json:"action"`
	Resource     string `json:"resource"`
	Detail       string `json:"detail,omitzero"`
	AskedAt      string `json:"askedAt"`
	ExpiresAt    string `json:"expiresAt,omitzero"`
}

// permissions lists what waits for a decision, in the order in which it was asked.
func (b *Binding) permissions(w http.ResponseWriter, r *request) error {
	return writeAsked(b, w, r, "permissions", func(e narya.Event, f *narad.InterruptRequested) (pending, bool) {
		asked, ok := e.Payload.(*narya.PermissionAsked)
		if !ok {
			return pending{}, false
		}
		return pending{
			asked.PermissionID, e.SessionID, e.LaneID, asked.ToolCallID, asked.Action, asked.Resource, asked.Detail, f.Timestamp, f.ExpiresAt,
		}, true
	})
}

// writeAsked lists what is open, as the events tell of it that asked for it.
func writeAsked[T any](
	b *Binding, w http.ResponseWriter, r *request, name string, item func(narya.Event, *narad.InterruptRequested) (T, bool),
) error {
	at, session, err := b.pageOf(r, access.ResolveInterrupt, name)
	if err != nil {
		return err
	}
	place := askedPlaceOf(at.Cursor)
	var items []T
	bytes := 0
	full := func() bool { return len(items) == at.Limit || bytes >= pageBytes }
	for range at.Limit { // one interrupt at a time: a pack may stand on two pages
		inbox, _, next, err := b.host.Inbox(r.Context(), r.principal(), session, place.before, 1)
		if err != nil {
			return listError(err)
		}
		for _, asked := range inbox {
			events, err := b.waiting(r.Context(), asked)
			if err != nil {
				return err
			}
			if place.interrupt == asked.InterruptID {
				events = events[min(place.told, len(events)):]
			} else {
				place.told = 0
			}
			for _, e := range events {
				one, ok := item(e.Event, e.of)
				if ok && e.waits && full() {
					place.interrupt = asked.InterruptID
					return writeList(w, at, items, place.String())
				}
				if place.told++; ok && e.waits {
					items, bytes = append(items, one), bytes+weigh(one)
				}
			}
		}
		if place = (askedPlace{before: next}); next == "" || full() {
			break
		}
	}
	return writeList(w, at, items, place.String())
}

// askedPlace is a place in a list of what is asked for: what the inbox calls it, and in the
// pack that stands there how many members are behind it.
type askedPlace struct {
	before    string
	interrupt string
	told      int
}

// String is the place as a cursor has it; "" is the end.
func (p askedPlace) String() string {
	if p == (askedPlace{}) {
		return ""
	}
	return strconv.Itoa(p.told) + " " + p.interrupt + " " + p.before
}

// askedPlaceOf reads what String wrote, which this list alone seals.
func askedPlaceOf(cursor string) askedPlace {
	told, rest, _ := strings.Cut(cursor, " ")
	interrupt, before, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(told)
	return askedPlace{before, interrupt, max(n, 0)}
}

// waitingEvent is an event that asked for something, and whether that waits still.
type waitingEvent struct {
	narya.Event
	of    *narad.InterruptRequested
	waits bool
}

// waiting are the events of an open interrupt, in an order that never changes.
func (b *Binding) waiting(ctx context.Context, asked host.Asked) (events []waitingEvent, err error) {
	f, decided, err := b.host.Request(ctx, asked)
	if err != nil || f == nil {
		return nil, err
	}
	over := map[string]bool{}
	for id := range decided {
		over[narya.MemberPermissionID(f.InterruptID, id)] = true
	}
	for _, e := range narya.MappingOf(f, asked.Narya).Project(f) {
		p, ok := e.Payload.(*narya.PermissionAsked)
		events = append(events, waitingEvent{e, f, !ok || !over[p.PermissionID]})
	}
	return events, nil
}

// pageOf reads the place in a list that may be narrowed to a session, and that session, in
// which the caller may do action.
func (b *Binding) pageOf(r *request, action access.Action, scope ...string) (at page, session string, err error) {
	uuid, err := r.uuid("sessionId")
	if err != nil {
		return page{}, "", err
	}
	if at, err = b.page(r, append(scope, uuid)...); err != nil || uuid == "" {
		return at, "", err
	}
	if session, err = b.session(r, uuid); err != nil {
		return page{}, "", err
	}
	_, err = b.host.Attach(r.Context(), r.principal(), action, session)
	return at, session, err
}

// listError is what a list refuses: a cursor that it gave is good for one place alone.
func listError(err error) error {
	if errors.Is(err, host.ErrInvalid) {
		return malformed("cursor was not given by this list with these filters")
	}
	return err
}

// maxReason bounds what a decider says, in bytes.
const maxReason = 1024

func (b *Binding) decide(w http.ResponseWriter, r *request) error {
	var body struct {
		Decision string  `json:"decision"`
		Remember *string `json:"remember"`
		Reason   string  `json:"reason"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var wrong checked
	if body.Decision != decide.Allow && body.Decision != decide.Deny {
		wrong.add("decision", "must be allow or deny")
	}
	remember := wrong.word("remember", body.Remember, facts.ForSession, facts.ForLane)
	wrong.note(server.CheckText("reason", body.Reason, maxReason, true))
	if err := wrong.err(); err != nil {
		return err
	}
	uuid, _ := narya.ParseUUID(r.PathValue("permissionId"))
	command, session, err := b.permission(r, uuid)
	if err != nil {
		return err
	}
	command.Decision, command.Remember, command.Reason = body.Decision, remember, body.Reason
	a, err := b.do(r, host.Request{Action: access.ResolveInterrupt, Session: session, Command: command})
	if err == nil {
		err = decisionRefused(a)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, struct {
		PermissionID string `json:"permissionId"`
		Decision     string `json:"decision,omitzero"`
		Detail       string `json:"detail,omitzero"`
	}{uuid, wordOf(a.Decision), a.Detail})
}

// permission finds what a permission is in the session.
func (b *Binding) permission(r *request, uuid string) (c decide.DecidePermission, session string, err error) {
	session, c.InterruptID, err = b.host.Alias(r.Context(), r.principal(), narya.KindInterrupt, uuid)
	if errors.Is(err, host.ErrNotFound) {
		if session, c.InterruptID, err = b.host.Alias(r.Context(), r.principal(), narya.KindMember, uuid); err == nil {
			c.InterruptID, c.RequestID = host.Member(c.InterruptID)
		}
	}
	if errors.Is(err, host.ErrNotFound) {
		err = refuse(narya.CodePermissionNotFound, "")
	}
	return c, session, err
}

// wordOf is a decision in the words of the contract; "" is none.
func wordOf(decision string) string {
	switch decision {
	case "":
		return ""
	case "approve", "approve_always":
		return string(narya.Allow)
	case narad.DecisionExpired:
		return string(narya.Expired)
	}
	return string(narya.Deny)
}

// decisionRefused is what the answer to a decision means.
func decisionRefused(a host.Answer) error {
	switch {
	case a.Status == decide.NotFound:
		return refuse(narya.CodePermissionNotFound, "")
	case a.Status == decide.Rejected && a.Err == decide.RefusedRemember:
		return invalid("remember", a.Detail)
	case a.Status == decide.Conflict && a.Err == "" && wordOf(a.Decision) != "":
		return refuse(narya.CodeAlreadyDecided, "the permission was decided before: "+wordOf(a.Decision))
	case a.Status == decide.Conflict && a.Err == "":
		return refuse(narya.CodeAlreadyDecided, a.Detail)
	}
	return answer(a)
}

// do performs a command. It is idempotent by the key of its request, if that has one (R21).
func (b *Binding) do(r *request, command host.Request) (host.Answer, error) {
	id, err := r.commandID()
	if err != nil {
		return host.Answer{}, err
	}
	command.CommandID = id
	server.Annotate(r.Context(), "session", command.Session)
	return b.host.Do(r.Context(), r.principal(), command)
}

// audited is a decision as the audit shows it.
type audited struct {
	PermissionID string         `json:"permissionId"`
	SessionID    string         `json:"sessionId"`
	LaneID       string         `json:"laneId,omitzero"`
	ToolCallID   string         `json:"toolCallId,omitzero"`
	Action       string         `json:"action"`
	Resource     string         `json:"resource"`
	Decision     narya.Decision `json:"decision"`
	DecidedBy    narya.Decider  `json:"decidedBy"`
	Decider      *decider       `json:"decider,omitzero"`
	Rule         string         `json:"rule,omitzero"`
	Reason       string         `json:"reason,omitzero"`
	AskedAt      string         `json:"askedAt"`
	DecidedAt    string         `json:"decidedAt"`
}

// decider is who decided: an id, and the name that stands behind it (R6).
type decider struct {
	ID   string `json:"id"`
	Name string `json:"name,omitzero"`
}

// decisions lists who decided what, and why, the newest first.
func (b *Binding) decisions(w http.ResponseWriter, r *request) error {
	word, err := r.word("decision", string(narya.Allow), string(narya.Deny), string(narya.Expired))
	if err != nil {
		return err
	}
	at, session, err := b.pageOf(r, access.AuditSession, "decisions", word)
	if err != nil {
		return err
	}
	const together = 4 // the facts of each decision may be large
	var items []audited
	next := at.Cursor
	for bytes, looked := 0, 0; looked < at.Limit && bytes < pageBytes; looked += together {
		var list []host.Settled
		list, next, err = b.host.Decisions(r.Context(), r.principal(), host.DecisionFilter{
			Session: session, Decision: word, Cursor: next, Limit: min(together, at.Limit-looked),
		})
		if err != nil {
			return listError(err)
		}
		for _, s := range list {
			if item, ok := b.audited(s); ok {
				items, bytes = append(items, item), bytes+weigh(item)
			}
		}
		if next == "" {
			break
		}
	}
	return writeList(w, at, items, next)
}

// audited tells of a decision what its two facts do.
func (b *Binding) audited(s host.Settled) (item audited, ok bool) {
	for _, e := range narya.MappingOf(s.Request, s.Mapping).Project(s.Request) {
		if p, is := e.Payload.(*narya.PermissionAsked); is && p.PermissionID == s.PermissionID {
			item = audited{
				PermissionID: p.PermissionID, SessionID: e.SessionID, LaneID: e.LaneID, ToolCallID: p.ToolCallID,
				Action: p.Action, Resource: p.Resource, AskedAt: e.Timestamp,
			}
		}
	}
	for _, e := range narya.MappingOf(s.Decided, s.Mapping).Project(s.Decided) {
		if p, is := e.Payload.(*narya.PermissionDecided); is && p.PermissionID == s.PermissionID {
			item.Decision, item.DecidedBy, item.DecidedAt = p.Decision, p.DecidedBy, e.Timestamp
		}
	}
	who, reason := deciderOf(s.Decided)
	item.Rule, item.Reason = who.Rule, reason
	if item.DecidedBy == narya.ByUser {
		item.Decider = &decider{ID: who.ID}
		item.Decider.Name, _ = b.opt.ActorName(who.ID)
	}
	return item, item.PermissionID != "" && item.DecidedAt != ""
}

// deciderOf is who decided by a fact, and why.
func deciderOf(fact narad.Authority) (who facts.Actor, reason string) {
	switch f := fact.(type) {
	case *narad.InterruptResolved:
		_ = json.Unmarshal(f.Actor, &who) // ours, or nobody
		return who, f.Reason
	case *narad.Custom:
		d, _ := facts.Read[facts.Decided](f, facts.Decision)
		return d.Actor, d.Reason
	}
	return who, ""
}
