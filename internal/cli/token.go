package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mahati-host/mahati/internal/access"
)

type tokenCommands struct {
	Create tokenCreateCommand `cmd:"" help:"Make a token and print it, once."`
	List   tokenListCommand   `cmd:"" help:"List the tokens, without their secrets."`
	Revoke tokenRevokeCommand `cmd:"" help:"End a token."`
}

func (tokenCommands) Help() string {
	return "Example: mahati token create --name phone --role observe,decide"
}

type tokenCreateCommand struct {
	homeFlag
	Name      string   `required:"" help:"What people call it."`
	Role      []string `required:"" placeholder:"ROLE" help:"observe, decide, drive, execute, trace or admin; several with commas."`
	Workspace []string `placeholder:"ID" help:"Workspaces that the roles are for. Otherwise all."`
	Executor  []string `placeholder:"ID" help:"Executors that it may attach as (role execute), or *."`
	Expires   string   `placeholder:"WHEN" help:"When it ends: 12h, 30d, or 2027-01-31T12:00:00Z. Otherwise never."`
	JSON      bool     `name:"json" help:"Print one JSON object."`
}

func (tokenCreateCommand) Help() string {
	return `The token alone is printed on standard output. It is kept hashed and cannot be had again.
A running host takes it at once.

Example: mahati token create --name phone --role observe,decide --expires 30d > phone.token`
}

func (c tokenCreateCommand) Run(a *app) error {
	grant := access.Grant{Workspaces: c.Workspace, Executors: c.Executor}
	for _, name := range c.Role {
		role, err := access.ParseRole(strings.TrimSpace(name))
		if err != nil {
			return usage("mahati token create --help", "%w", err)
		}
		grant.Roles = append(grant.Roles, role)
	}
	if slices.Contains(grant.Roles, access.Execute) && len(grant.Executors) == 0 {
		return usage("mahati token create --help", "the role execute is for executors: name them with --executor")
	}
	now := time.Now()
	expires, err := expiry(c.Expires, now)
	if err != nil {
		return err
	}
	store, err := c.open(a)
	if err != nil {
		return err
	}
	// The first token of a home is the one that this program finds by itself.
	if _, err := store.EnsureFirst(now); err != nil {
		return fmt.Errorf("make the first token: %w", err)
	}
	token, secret, err := store.Create(access.TokenRequest{Name: c.Name, Grant: grant, Expires: expires}, now)
	if err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	if c.JSON {
		line := newTokenLine(token, now)
		line.Token = secret.Reveal()
		return a.printJSON(line)
	}
	fmt.Fprintf(a.Stderr, "token %s of %s: keep it now, it is not shown again\n", token.ID, oneLine(token.Name))
	return a.printLine([]byte(secret.Reveal()))
}

// open opens the tokens of a home that exists.
func (h homeFlag) open(a *app) (*access.Store, error) {
	home, err := h.dir(a)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return nil, &fault{err: fmt.Errorf("there is no home %s", home), code: exitFailed, hint: "mahati serve makes it; or name another with --home"}
	}
	store, err := access.Open(home, access.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("open the tokens of %s: %w", home, err)
	}
	return store, nil
}

// expiry reads a time: an age from now, or a point in time.
func expiry(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 16); err == nil && strings.HasSuffix(text, "d") && days > 0 {
		return now.Add(time.Duration(days) * 24 * time.Hour), nil
	}
	if age, err := time.ParseDuration(text); err == nil && age > 0 {
		return now.Add(age), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, usage("--expires 12h, 30d or 2027-01-31T12:00:00Z", "no time to come: %q", text)
}

type tokenListCommand struct {
	homeFlag
	JSON bool `name:"json" help:"Print one JSON object a line."`
}

func (tokenListCommand) Help() string { return "Example: mahati token list --json" }

// tokenLine describes a token to programs.
type tokenLine struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Roles      []access.Role `json:"roles"`
	Workspaces []string      `json:"workspaces,omitempty"`
	Executors  []string      `json:"executors,omitempty"`
	State      string        `json:"state"`
	Created    string        `json:"createdAt"`
	Expires    string        `json:"expiresAt,omitzero"`
	Revoked    string        `json:"revokedAt,omitzero"`
	Token      string        `json:"token,omitzero"`
}

func newTokenLine(t access.Token, now time.Time) tokenLine {
	state := "valid"
	switch {
	case !t.Revoked.IsZero():
		state = "revoked"
	case t.Usable(now) != nil:
		state = "expired"
	}
	return tokenLine{
		ID: t.ID, Name: t.Name, Roles: t.Grant.Roles, Workspaces: t.Grant.Workspaces, Executors: t.Grant.Executors,
		State: state, Created: instant(t.Created), Expires: instant(t.Expires), Revoked: instant(t.Revoked),
	}
}

// instant writes a point in time, "" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func (c tokenListCommand) Run(a *app) error {
	store, err := c.open(a)
	if err != nil {
		return err
	}
	tokens, err := store.List()
	if err != nil {
		return fmt.Errorf("list tokens: %w", err)
	}
	now := time.Now()
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "ID\tNAME\tROLES\tWORKSPACES\tSTATE\tEXPIRES")
	}
	for _, t := range tokens {
		line := newTokenLine(t, now)
		if c.JSON {
			if err := a.printJSON(line); err != nil {
				return err
			}
			continue
		}
		roles := make([]string, len(line.Roles))
		for i, r := range line.Roles {
			roles[i] = string(r)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", line.ID, oneLine(line.Name), strings.Join(roles, ","),
			orWord(strings.Join(line.Workspaces, ","), "all"), line.State, orWord(line.Expires, "never"))
	}
	return table.Flush()
}

func orWord(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return oneLine(text)
}

type tokenRevokeCommand struct {
	homeFlag
	Token string `arg:"" name:"token" help:"Id or name."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

func (tokenRevokeCommand) Help() string { return "Example: mahati token revoke phone" }

func (c tokenRevokeCommand) Run(a *app) error {
	store, err := c.open(a)
	if err != nil {
		return err
	}
	now := time.Now()
	token, err := store.Revoke(c.Token, now)
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	if c.JSON {
		return a.printJSON(newTokenLine(token, now))
	}
	_, err = fmt.Fprintf(a.out, "revoked %s (%s)\n", token.ID, oneLine(token.Name))
	return err
}
