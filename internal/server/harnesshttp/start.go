package harnesshttp

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// The sizes of what clients send (DESIGN §10), in bytes.
const (
	maxName   = 256
	maxTitle  = 512
	maxReason = 4 << 10
	maxPath   = 4 << 10
	maxText   = 256 << 10
)

// start is the body of a request for a run: in a session that it names, or in a new one.
type start struct {
	Version          string          `json:"version"`
	InputID          string          `json:"input_id"`
	Text             string          `json:"text"`
	SessionID        string          `json:"session_id"`
	WhenBusy         decide.WhenBusy `json:"when_busy"`
	WorkspaceID      string          `json:"workspace_id"`
	CWD              string          `json:"cwd"`
	Title            string          `json:"title"`
	Agent            string          `json:"agent"`
	ClientExecutorID string          `json:"client_executor_id"`
}

func (s *start) check() error {
	return cmp.Or(
		checkVersion(s.Version, s.Version != ""),
		server.CheckID("input_id", s.InputID),
		checkText(s.Text),
		s.checkBusy(),
		s.checkSession(),
	)
}

func (s *start) checkBusy() error {
	switch s.WhenBusy {
	case "", decide.WhenBusyQueue, decide.WhenBusyReject:
		return nil
	}
	return server.BadField("when_busy", "must be queue or reject")
}

// checkSession holds what a new session is made with to its form; a session that is named
// was made before.
func (s *start) checkSession() error {
	for _, f := range []struct{ name, id string }{
		{"session_id", s.SessionID}, {"workspace_id", s.WorkspaceID}, {"client_executor_id", s.ClientExecutorID},
	} {
		if f.id == "" {
			continue
		}
		if err := server.CheckID(f.name, f.id); err != nil {
			return err
		}
	}
	if s.SessionID != "" && (s.WorkspaceID != "" || s.CWD != "" || s.Title != "" || s.Agent != "" || s.ClientExecutorID != "") {
		return server.BadField("session_id", "must not stand beside what only a new session can have")
	}
	return cmp.Or(
		server.CheckText("cwd", s.CWD, maxPath, false),
		server.CheckText("title", s.Title, maxTitle, false),
		server.CheckText("agent", s.Agent, maxName, false),
	)
}

func checkVersion(version string, given bool) error {
	if given && version != harness.Version {
		return server.Bad("version_unsupported", "version must be "+harness.Version)
	}
	return nil
}

func checkText(text string) error {
	if text == "" {
		return server.BadField("text", "is required")
	}
	if len(text) > maxText {
		return server.BadField("text", "may have at most "+strconv.Itoa(maxText)+" bytes")
	}
	return nil
}

// started is the answer to a start.
type started struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	InputID   string `json:"input_id"`
	Duplicate bool   `json:"duplicate,omitzero"`
}

// start begins a run, once for each input id (R21): a session that it makes has an id that
// follows from the input's, so that the same start finds it again.
func (b *Binding) start(w http.ResponseWriter, r *request) error {
	var s start
	if err := server.DecodeBody(r.Request, &s); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	command := decide.StartRootRun{
		Text: s.Text, WhenBusy: s.WhenBusy, WorkspaceID: s.WorkspaceID, Cwd: s.CWD, Title: s.Title, Agent: s.Agent,
		ClientExecutorID: s.ClientExecutorID,
	}
	if !(decide.Message{Content: s.Text}).Fits() { // before a session is made for it
		return rejected("content is too large")
	}
	if s.SessionID == "" {
		command.WorkspaceID = cmp.Or(s.WorkspaceID, defaultWorkspace)
		s.SessionID = sessionFor(r.principal(), s.InputID)
		if err := b.create(r, &s); err != nil {
			return err
		}
	}
	server.Annotate(r.Context(), "session", s.SessionID)
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.SendMessage, Session: s.SessionID, InputID: s.InputID, Command: command,
	})
	if err != nil {
		return err
	}
	return s.answer(w, answer)
}

const defaultWorkspace = "default"

// create makes the session of a start, unless it is there.
func (b *Binding) create(r *request, s *start) error {
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: access.CreateSession, Session: s.SessionID,
		Command: decide.Create{Payload: facts.Created{
			WorkspaceID: cmp.Or(s.WorkspaceID, defaultWorkspace), Cwd: s.CWD, ClientKind: "api", Title: s.Title,
			Agent: cmp.Or(s.Agent, b.host.DefaultAgent()), ClientExecutorID: s.ClientExecutorID,
			RequiredProfiles: host.RequiredProfiles.IDs(),
		}},
	})
	if err != nil || answer.Status != decide.Rejected {
		// A session that is there, wherever it is, is what the same input made before: the
		// start says whether it said the same.
		return err
	}
	return rejected(answer.Detail)
}

// rejected is a start that no session would take.
func rejected(why string) error {
	return &server.Problem{HTTPStatus: http.StatusUnprocessableEntity, Code: "rejected", Detail: why}
}

// sessionSpace is the name space of the sessions that starts make. It is for ever.
var sessionSpace = uuid.MustParse("0b0f9a1e-5f0c-5d57-8f0a-6d6168617469")

// sessionFor is the id of the session that an input of a principal makes.
func sessionFor(p access.Principal, inputID string) string {
	return uuid.NewSHA1(sessionSpace, []byte(strconv.Itoa(len(p.ID()))+":"+p.ID()+inputID)).String()
}

func (s *start) answer(w http.ResponseWriter, a host.Answer) error {
	switch {
	case a.Status == decide.Accepted:
		status := http.StatusCreated
		if a.Repeated {
			status = http.StatusOK
		}
		w.Header().Set("Location", Prefix+"/runs/"+a.RunID+"/events")
		return write(w, status, started{a.RunID, s.SessionID, s.InputID, a.Repeated})
	case a.Status == decide.NotFound:
		return &server.Problem{HTTPStatus: http.StatusNotFound, Code: server.CodeNotFound, Detail: "no such session"}
	case a.Err == decide.RefusedReused:
		p := server.Conflict(codeReused, "the input started another run")
		p.Members = map[string]any{"first": started{RunID: a.RunID, SessionID: s.SessionID, InputID: s.InputID}}
		return p
	case a.Status == decide.Conflict:
		p := server.Conflict("session_busy", a.Detail)
		if a.RunID != "" {
			p.Members = map[string]any{"run_id": a.RunID}
		}
		return p
	}
	return rejected(a.Detail)
}
