package cli

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

type sessionCommands struct {
	Promote sessionPromoteCommand `cmd:"" help:"Let a session work on with nobody there: what it asks is denied at once."`
	Attend  sessionAttendCommand  `cmd:"" help:"Be there again: what a session asks waits for you."`
	Move    sessionMoveCommand    `cmd:"" help:"Let a session work in another directory from its next run on."`
	Title   sessionTitleCommand   `cmd:"" help:"Call a session something else."`
	Model   sessionModelCommand   `cmd:"" help:"Choose the model of a session's next run."`
	Style   sessionStyleCommand   `cmd:"" help:"Choose how a session answers from its next run on."`
	Branch  sessionBranchCommand  `cmd:"" help:"Go on from a session in a new one."`
	Archive sessionArchiveCommand `cmd:"" help:"Put a session away that is at rest."`
	Restore sessionRestoreCommand `cmd:"" help:"Take an archived session back."`
}

func (sessionCommands) Help() string { return "Example: mahati session move SESSION ../other" }

// sessionFlags are what all commands on a session have.
type sessionFlags struct {
	hostFlags
	JSON    bool   `name:"json" help:"Print the session as a JSON object."`
	Session string `arg:"" help:"Session, by its id or its UUID."`
}

// change asks for something of the session and prints the session that the answer holds, in
// the field of that name where it is not the whole answer.
func (f sessionFlags) change(ctx context.Context, a *app, method, path, field string, body any) error {
	c, err := f.connectTo(a, naryahttp.Prefix)
	if err != nil {
		return err
	}
	defer c.Close()
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a request: %w", err)
	}
	answer, err := c.once(ctx, path+" session", method, "/sessions/"+narya.UUID(narya.KindSession, f.Session)+"/"+path, nil, data)
	if err != nil {
		return err
	}
	if field != "" {
		answer = answer.Field(field)
	}
	if f.JSON {
		return a.printLine(narad.Raw(strings.TrimSuffix(string(answer), "\n")))
	}
	is, err := narya.DecodeSession(answer)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	id := is.ID
	if id == narya.UUID(narya.KindSession, f.Session) {
		id = f.Session // the name that the other commands know too
	}
	return a.printSession(id, is)
}

// printSession prints a session for people, on one line, by the id that they call it.
func (a *app) printSession(id string, s *narya.Session) error {
	model := s.Model
	if model != "" {
		model = s.Provider + "/" + s.Model
	}
	_, err := fmt.Fprintln(a.out, oneLine(joined("  ", id, string(s.Status), s.Title, s.Repository,
		joined(" ", model, s.Variant), prefixed("style ", s.Style), string(s.Posture), s.ModelNotice)))
	return err
}

type empty struct{}

type sessionPromoteCommand struct{ sessionFlags }

func (sessionPromoteCommand) Help() string {
	return `What it asks from now on is denied, with the reason "detached". What waits already waits on: see mahati inbox.

Example: mahati session promote SESSION`
}

func (c sessionPromoteCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPut, "posture", "", map[string]string{"posture": string(narya.Detached)})
}

type sessionAttendCommand struct{ sessionFlags }

func (sessionAttendCommand) Help() string { return "Example: mahati session attend SESSION" }

func (c sessionAttendCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPut, "posture", "", map[string]string{"posture": string(narya.Attended)})
}

type sessionMoveCommand struct {
	sessionFlags
	Dir string `arg:"" help:"Directory."`
}

func (sessionMoveCommand) Help() string { return "Example: mahati session move SESSION ../other" }

func (c sessionMoveCommand) Run(ctx context.Context, a *app) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return fmt.Errorf("find %s: %w", c.Dir, err)
	}
	return c.change(ctx, a, http.MethodPost, "move", "session", map[string]string{"repository": dir})
}

type sessionTitleCommand struct {
	sessionFlags
	Title string `arg:"" help:"Title; empty for none."`
}

func (sessionTitleCommand) Help() string { return `Example: mahati session title SESSION "The parser"` }

func (c sessionTitleCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPut, "title", "", map[string]string{"title": c.Title})
}

type sessionModelCommand struct {
	sessionFlags
	Variant string `placeholder:"NAME" help:"A preset of the model."`
	Model   string `arg:"" help:"One of its agent's models: PROVIDER/MODEL, or MODEL."`
}

func (sessionModelCommand) Help() string {
	return "Example: mahati session model SESSION anthropic/claude-sonnet-4-5"
}

func (c sessionModelCommand) Run(ctx context.Context, a *app) error {
	body := map[string]string{"model": c.Model, "variant": c.Variant}
	if provider, model, ok := strings.Cut(c.Model, "/"); ok {
		body["provider"], body["model"] = provider, model
	}
	return c.change(ctx, a, http.MethodPut, "model", "", body)
}

type sessionStyleCommand struct {
	sessionFlags
	Style string `arg:"" help:"One of the host's styles; empty for the agent's own."`
}

func (sessionStyleCommand) Help() string { return "Example: mahati session style SESSION brief" }

func (c sessionStyleCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPut, "style", "", map[string]string{"style": c.Style})
}

type sessionBranchCommand struct {
	sessionFlags
	Entry string `placeholder:"UUID" help:"The last entry of the conversation that is taken over. Otherwise all of it is."`
	Title string `placeholder:"TEXT" help:"Title of the new session. Otherwise that of the old one."`
}

func (sessionBranchCommand) Help() string { return "Example: mahati session branch SESSION" }

func (c sessionBranchCommand) Run(ctx context.Context, a *app) error {
	body := map[string]string{"title": c.Title, "clientKind": string(narya.ClientInline)}
	if c.Entry != "" {
		body["entryId"] = c.Entry
	}
	return c.change(ctx, a, http.MethodPost, "branch", "", body)
}

type sessionArchiveCommand struct{ sessionFlags }

func (sessionArchiveCommand) Help() string { return "Example: mahati session archive SESSION" }

func (c sessionArchiveCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPost, "archive", "", empty{})
}

type sessionRestoreCommand struct{ sessionFlags }

func (sessionRestoreCommand) Help() string { return "Example: mahati session restore SESSION" }

func (c sessionRestoreCommand) Run(ctx context.Context, a *app) error {
	return c.change(ctx, a, http.MethodPost, "restore", "", empty{})
}
