package naryahttp

import (
	"net/http"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// rule is a decision that a session remembers.
type rule struct {
	Rule         string         `json:"rule"`
	Scope        string         `json:"scope"`
	LaneID       string         `json:"laneId,omitzero"`
	Action       string         `json:"action,omitzero"`
	Tool         string         `json:"tool,omitzero"`
	Resource     string         `json:"resource"`
	Decision     narya.Decision `json:"decision"`
	PermissionID string         `json:"permissionId"`
}

// remembered lists what a session decides by itself, and since which decision, by the
// names of the rules.
func (b *Binding) remembered(w http.ResponseWriter, r *request) error {
	id, err := b.session(r, r.PathValue("sessionId"))
	if err != nil {
		return err
	}
	at, err := b.page(r, "rules", id)
	if err != nil {
		return err
	}
	view, err := b.host.Attach(r.Context(), r.principal(), access.ReadSession, id)
	if err != nil {
		return err
	}
	list, err := view.Remembered(r.Context())
	if err != nil {
		return err
	}
	var items []rule
	for _, one := range list {
		switch {
		case one.Rule <= at.Cursor:
		case len(items) == at.Limit:
			return writeList(w, at, items, items[at.Limit-1].Rule)
		default:
			items = append(items, ruleOf(id, one))
		}
	}
	return writeList(w, at, items, "")
}

func ruleOf(session string, r facts.PermissionRule) rule {
	shown := rule{
		Rule: r.Rule, Scope: r.Scope, Action: r.Action, Tool: r.Tool, Resource: r.Resource,
		Decision: narya.Decision(wordOf(r.Decision)), PermissionID: narya.UUID(narya.KindInterrupt, r.InterruptID),
	}
	if r.RequestID != "" {
		shown.PermissionID = narya.MemberPermissionID(r.InterruptID, r.RequestID)
	}
	if r.Scope == facts.ForLane {
		shown.LaneID = narya.MainLaneID(session)
		if r.RunID != "" {
			shown.LaneID = narya.LaneID(r.RunID)
		}
	}
	return shown
}

// forget takes a remembered decision back.
func (b *Binding) forget(w http.ResponseWriter, r *request) error {
	view, err := b.view(r, access.ResolveInterrupt)
	if err != nil {
		return err
	}
	if server.CheckID("rule", r.PathValue("rule")) != nil {
		return refuse(narya.CodeNotRemembered, "")
	}
	a, err := b.do(r, host.Request{
		Action: access.ResolveInterrupt, Session: view.Session(), Command: decide.ForgetPermission{Rule: r.PathValue("rule")},
	})
	switch {
	case err != nil:
		return err
	case a.Status == decide.NotFound:
		return refuse(narya.CodeNotRemembered, "")
	case answer(a) != nil:
		return answer(a)
	}
	return write(w, http.StatusOK, struct {
		Rule string `json:"rule"`
	}{r.PathValue("rule")})
}
