package naryahttp

import (
	"cmp"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// Bounds of texts, in bytes but for a title's characters.
const (
	maxPath  = 4096
	maxTitle = 512
	maxName  = 256
	maxStyle = 64
)

// oneLine refuses line breaks in a text.
const oneLine = false

var clientKinds = []string{"inline", "tui", "oneshot", "api", "unknown"}

// creation is the body of a request for a new session.
type creation struct {
	SessionID  *string `json:"sessionId"`
	Repository string  `json:"repository"`
	Title      string  `json:"title"`
	ClientKind *string `json:"clientKind"`
	Agent      string  `json:"agent"`
	Provider   string  `json:"provider"`
	Model      string  `json:"model"`
	Variant    string  `json:"variant"`
	Style      string  `json:"style"`
	Posture    *string `json:"posture"`
}

// command checks what a session is to be, and makes a command of it. The id is "" where the
// host is to give one.
func (c *creation) command() (id string, command decide.Create, err error) {
	var is checked
	id = is.id("sessionId", c.SessionID)
	if !filepath.IsAbs(c.Repository) {
		is.add("repository", "must be an absolute path")
	}
	is.note(server.CheckText("repository", c.Repository, maxPath, oneLine))
	is.title(c.Title)
	kind := is.word("clientKind", c.ClientKind, clientKinds...)
	posture := is.word("posture", c.Posture, facts.Attended, facts.Detached)
	is.note(server.CheckText("agent", c.Agent, maxName, oneLine))
	is.model(c.Provider, c.Model, c.Variant)
	is.note(server.CheckText("style", c.Style, maxStyle, oneLine))
	return id, decide.Create{Payload: facts.Created{
		WorkspaceID: workspace, Cwd: c.Repository, ClientKind: recordedKind(kind), Title: c.Title, Agent: c.Agent,
		RequiredProfiles: host.RequiredProfiles.IDs(), Provider: c.Provider, Model: c.Model, Variant: c.Variant,
		Style: c.Style, Posture: posture,
	}}, is.err()
}

func (c *checked) title(title string) {
	c.note(server.CheckText("title", title, 4*maxTitle, oneLine))
	if len([]rune(title)) > maxTitle {
		c.add("title", "at most 512 characters are allowed")
	}
}

func (c *checked) model(provider, model, variant string) {
	c.note(server.CheckText("provider", provider, maxName, oneLine))
	c.note(server.CheckText("model", model, maxName, oneLine))
	c.note(server.CheckText("variant", variant, maxName, oneLine))
}

// word reads a field that is one of some words; absent is "". What is given and empty is
// none of them.
func (c *checked) word(field string, given *string, words ...string) string {
	if given == nil {
		return ""
	}
	if !slices.Contains(words, *given) {
		c.add(field, "must be one of "+strings.Join(words, ", "))
	}
	return *given
}

// id reads an id of the client's choice; absent is "".
func (c *checked) id(field string, given *string) string {
	if given == nil {
		return ""
	}
	c.note(server.CheckID(field, *given))
	return *given
}

// uuid reads a field that names something, in lower case; absent is "". An empty one names
// nothing, and is no absent one: a client that lost an id must not get what no id means.
func (c *checked) uuid(field string, given *string) string {
	if given == nil {
		return ""
	}
	id, ok := narya.ParseUUID(*given)
	if !ok {
		c.add(field, "must be a UUID")
	}
	return id
}

// recordedKind is the kind of client that is recorded: nothing of one that does not know
// its own (the default is that of who speaks the contract).
func recordedKind(told string) string {
	if told == string(narya.ClientUnknown) {
		return ""
	}
	return cmp.Or(told, string(narya.ClientAPI))
}

// createSession makes a session. The same id, or the same key, again finds it.
func (b *Binding) createSession(w http.ResponseWriter, r *request) error {
	var c creation
	if err := r.decode(&c); err != nil {
		return err
	}
	id, command, err := c.command()
	if err != nil {
		return err
	}
	return b.make(w, r, id, command, func(s *narya.Session) {
		s.ModelNotice = cmp.Or(b.notRun(c.Variant, s), b.chosenByHost(c, s))
	})
}

// workspace is that of the sessions that this contract makes: it knows of none.
const workspace = "default"

// make makes a session with a command and answers with it: 201, or 200 where it was there.
// finish adds what the request says about it, so not where the id alone has found it.
func (b *Binding) make(w http.ResponseWriter, r *request, id string, c decide.Command, finish func(*narya.Session)) error {
	key, err := r.commandID()
	if err != nil {
		return err
	}
	if id == "" {
		id = b.newSessionID(r, key)
	}
	a, err := b.host.Do(r.Context(), r.principal(), host.Request{Action: access.CreateSession, Session: id, Command: c, CommandID: key})
	if err != nil {
		return err
	}
	if err := refused(a); err != nil {
		return err
	}
	status := http.StatusCreated
	if a.Status == decide.AlreadyApplied {
		status = http.StatusOK
		if key == "" {
			finish = nil
		}
		if _, err := b.session(r, narya.UUID(narya.KindSession, id)); errors.Is(err, host.ErrNotFound) {
			return refuse(narya.CodeConflict, "the id belongs to a session that began before the host spoke this contract")
		}
	}
	return b.show(w, r, id, status, access.CreateSession, finish)
}

// newSessionID is a new id, or for a request that can be sent again the one that it always
// gets. The store's key is in it, so that nobody can know it before.
func (b *Binding) newSessionID(r *request, key string) string {
	if key == "" {
		return b.host.NewID()
	}
	return uuid.NewSHA1(uuid.Nil, []byte(b.host.Seal(key, "narya create session", r.URL.Path, r.principal().ID()))).String()
}

// show answers with a session, to a caller who may do action in it.
func (b *Binding) show(w http.ResponseWriter, r *request, id string, status int, action access.Action, finish func(*narya.Session)) error {
	s, err := b.shown(r, id, action)
	if err != nil {
		return err
	}
	if finish != nil {
		finish(s)
		s.Fit()
	}
	return write(w, status, s)
}

func (b *Binding) shown(r *request, id string, action access.Action) (*narya.Session, error) {
	server.Annotate(r.Context(), "session", id)
	view, err := b.host.Attach(r.Context(), r.principal(), action, id)
	if err != nil {
		return nil, err
	}
	return whole(r.Context(), view)
}

// chosenByHost says that nobody chose the model, where others could have been chosen.
func (b *Binding) chosenByHost(c creation, s *narya.Session) string {
	offered := b.host.Models(cmp.Or(c.Agent, b.host.DefaultAgent()))
	if c.Model != "" || len(offered) < 2 || offered[0].Provider != s.Provider || offered[0].ID != s.Model {
		return ""
	}
	var others []string
	for _, m := range offered {
		if m.Provider != s.Provider || m.ID != s.Model {
			others = append(others, m.Provider+"/"+m.ID)
		}
	}
	const most = 5
	more := ""
	if len(others) > most {
		others, more = others[:most], " and others"
	}
	return ("Nobody chose a model, so the session runs on " + s.Provider + "/" + s.Model +
		", the first that its agent offers. There is " + strings.Join(others, ", ") + more + " too: PUT the session's model to choose.")
}

// notRun says that a variant was named that the model has no use for.
func (b *Binding) notRun(variant string, s *narya.Session) string {
	if variant == "" || s.Variant == variant {
		return ""
	}
	return ("The model " + s.Provider + "/" + s.Model + " has no variants: it runs at its own default, not under " + variant + ".")
}

// branching is the body of a request for a branch.
type branching struct {
	SessionID  *string `json:"sessionId"`
	EntryID    *string `json:"entryId"`
	Title      string  `json:"title"`
	ClientKind *string `json:"clientKind"`
}

// branchSession makes a session that goes on from another one, from its end or an entry.
func (b *Binding) branchSession(w http.ResponseWriter, r *request) error {
	var c branching
	if err := r.decodeOptional(&c); err != nil {
		return err
	}
	var is checked
	id, entry := is.id("sessionId", c.SessionID), is.uuid("entryId", c.EntryID)
	is.title(c.Title)
	kind := is.word("clientKind", c.ClientKind, clientKinds...)
	if err := is.err(); err != nil {
		return err
	}
	parent, err := b.session(r, r.PathValue("sessionId"))
	if err != nil {
		return err
	}
	command := decide.Branch{ParentSessionID: parent, Title: c.Title, ClientKind: recordedKind(kind)}
	if entry != "" {
		view, err := b.host.Attach(r.Context(), r.principal(), access.ReadSession, parent)
		if err != nil {
			return err
		}
		of, at, err := b.find(r, view, entry)
		if err != nil {
			return err
		}
		command.ParentSessionID, command.Through = of.Session(), int64(at)
	}
	return b.make(w, r, id, command, nil)
}
