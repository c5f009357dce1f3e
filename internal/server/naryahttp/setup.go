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

// refused is what the answer to a command that makes a session, or sets one up, means.
func refused(a host.Answer) error {
	switch a.Err {
	case decide.RefusedArchived:
		return refuse(narya.CodeArchived, "")
	case decide.RefusedBusy:
		return refuse(narya.CodeBusy, a.Detail)
	case decide.RefusedNoModel:
		return refuse(narya.CodeNoModel, a.Detail)
	case decide.RefusedReused:
		return refuse(narya.CodeConflict, a.Detail)
	}
	if field := setupFields[a.Err]; field != "" && a.Status == decide.Rejected {
		return invalid(field, a.Detail)
	}
	return answer(a)
}

// setupFields are the fields that name what a session cannot be set up with.
var setupFields = map[decide.Refusal]string{
	decide.RefusedID: "sessionId", decide.RefusedDirectory: "repository", decide.RefusedAgent: "agent",
	decide.RefusedModel: "model", decide.RefusedVariant: "variant", decide.RefusedStyle: "style",
}

// change performs a command on the session that the path names and answers with the
// session as it is then.
func (b *Binding) change(w http.ResponseWriter, r *request, action access.Action, c decide.Command, finish func(*narya.Session)) error {
	id, err := b.command(r, action, c)
	if err != nil {
		return err
	}
	return b.show(w, r, id, http.StatusOK, action, finish)
}

// command performs a command on the session that the path names.
func (b *Binding) command(r *request, action access.Action, c decide.Command) (id string, err error) {
	key, err := r.commandID()
	if err != nil {
		return "", err
	}
	if id, err = b.session(r, r.PathValue("sessionId")); err != nil {
		return "", err
	}
	server.Annotate(r.Context(), "session", id)
	a, err := b.host.Do(r.Context(), r.principal(), host.Request{Action: action, Session: id, Command: c, CommandID: key})
	if err != nil {
		return "", err
	}
	return id, refused(a)
}

func (b *Binding) archiveSession(w http.ResponseWriter, r *request) error {
	return b.change(w, r, access.ArchiveSession, decide.Archive{}, nil)
}

func (b *Binding) restoreSession(w http.ResponseWriter, r *request) error {
	return b.change(w, r, access.RestoreSession, decide.Restore{}, nil)
}

func (b *Binding) viewSession(w http.ResponseWriter, r *request) error {
	return b.change(w, r, access.UpdateSession, decide.MarkViewed{}, nil)
}

// given is a text that a body must have, though it may be empty.
func (c *checked) given(field string, text *string, most int) string {
	if text == nil {
		c.add(field, "is required")
		return ""
	}
	c.note(server.CheckText(field, *text, most, oneLine))
	return *text
}

func (b *Binding) titleSession(w http.ResponseWriter, r *request) error {
	var body struct {
		Title *string `json:"title"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	title := is.given("title", body.Title, 4*maxTitle)
	is.title(title)
	if err := is.err(); err != nil {
		return err
	}
	return b.change(w, r, access.UpdateSession, decide.Retitle{Title: title}, nil)
}

// moved answers a move. A host without restore points drops none.
type moved struct {
	Session              *narya.Session `json:"session"`
	RestorePointsDropped int            `json:"restorePointsDropped"`
}

func (b *Binding) moveSession(w http.ResponseWriter, r *request) error {
	var body struct {
		Repository *string `json:"repository"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	to := is.given("repository", body.Repository, maxPath)
	if err := is.err(); err != nil {
		return err
	}
	id, err := b.command(r, access.UpdateSession, decide.Move{Cwd: to})
	if err != nil {
		return err
	}
	s, err := b.shown(r, id, access.UpdateSession)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, moved{Session: s})
}

func (b *Binding) chooseModel(w http.ResponseWriter, r *request) error {
	var body struct {
		Provider string  `json:"provider"`
		Model    *string `json:"model"`
		Variant  string  `json:"variant"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	model := is.given("model", body.Model, maxName)
	if body.Model != nil && model == "" {
		is.add("model", "must not be empty")
	}
	is.model(body.Provider, model, body.Variant)
	if err := is.err(); err != nil {
		return err
	}
	c := decide.ChooseModel{Provider: body.Provider, Model: model, Variant: body.Variant}
	return b.change(w, r, access.UpdateSession, c, func(s *narya.Session) { s.ModelNotice = b.notRun(body.Variant, s) })
}

func (b *Binding) chooseVariant(w http.ResponseWriter, r *request) error {
	var body struct {
		Variant *string `json:"variant"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	variant := is.given("variant", body.Variant, maxName)
	if err := is.err(); err != nil {
		return err
	}
	return b.change(w, r, access.UpdateSession, decide.ChooseVariant{Variant: variant}, nil)
}

func (b *Binding) chooseStyle(w http.ResponseWriter, r *request) error {
	var body struct {
		Style *string `json:"style"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	style := is.given("style", body.Style, maxStyle)
	if err := is.err(); err != nil {
		return err
	}
	return b.change(w, r, access.UpdateSession, decide.ChooseStyle{Style: style}, nil)
}

func (b *Binding) setPosture(w http.ResponseWriter, r *request) error {
	var body struct {
		Posture *string `json:"posture"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	if body.Posture == nil {
		is.add("posture", "is required")
	}
	posture := is.word("posture", body.Posture, facts.Attended, facts.Detached)
	if err := is.err(); err != nil {
		return err
	}
	return b.change(w, r, access.UpdateSession, decide.SetPosture{Posture: posture}, nil)
}

// maxCeiling bounds what a session may be allowed to spend, in US dollars.
const maxCeiling = 1_000_000

func (b *Binding) setWarming(w http.ResponseWriter, r *request) error {
	var body struct {
		Enabled    *bool    `json:"enabled"`
		CeilingUSD *float64 `json:"ceilingUsd"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	var is checked
	if body.Enabled == nil {
		is.add("enabled", "is required")
	}
	switch {
	case body.CeilingUSD == nil:
		is.add("ceilingUsd", "is required")
	case *body.CeilingUSD < 0 || *body.CeilingUSD > maxCeiling:
		is.add("ceilingUsd", "must be 0 to 1000000")
	}
	if err := is.err(); err != nil {
		return err
	}
	c := decide.SetWarming{Enabled: *body.Enabled, CeilingUSD: *body.CeilingUSD}
	return b.change(w, r, access.UpdateSession, c, nil)
}
