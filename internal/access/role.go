package access

import (
	"errors"
	"fmt"
	"slices"
)

// A Role is a right that a token carries.
type Role string

// The roles. They do not include one another, except that Admin includes all.
const (
	// Observe reads everything of a session but its trace: there is no partial
	// authority (R6).
	Observe Role = "observe"
	// Decide answers interrupts, and sees the inbox of those it may answer.
	Decide Role = "decide"
	// Drive creates sessions and sends them messages, stops and the like.
	Drive Role = "drive"
	// Execute attaches as one of the grant's executors (R34).
	Execute Role = "execute"
	// Trace reads trace side sessions (R6).
	Trace Role = "trace"
	// Admin does everything, in the grant's workspaces.
	Admin Role = "admin"
)

// Roles lists every role.
func Roles() []Role { return []Role{Observe, Decide, Drive, Execute, Trace, Admin} }

// ErrInvalid says that a name, role, id or time given for a token cannot be used.
var ErrInvalid = errors.New("invalid")

// ParseRole returns the role of that name.
func ParseRole(name string) (Role, error) {
	if role := Role(name); slices.Contains(Roles(), role) {
		return role, nil
	}
	return "", fmt.Errorf("role %.40q is not one of %q: %w", name, Roles(), ErrInvalid)
}

// AnyExecutor in Grant.Executors stands for every executor id.
const AnyExecutor = "*"

// A Grant is what a principal may do.
type Grant struct {
	// Roles hold in each of the workspaces. At least one.
	Roles []Role
	// Workspaces the roles are limited to. Empty: all of them, and the host as a
	// whole.
	Workspaces []string
	// Executors that a principal with the role Execute may attach, or AnyExecutor.
	Executors []string
}

const (
	maxName     = 256
	maxID       = 128
	maxPerGrant = 256
)

// validate returns what is wrong with g.
func (g Grant) validate() error {
	if len(g.Roles) == 0 {
		return fmt.Errorf("no role: %w", ErrInvalid)
	}
	if max(len(g.Roles), len(g.Workspaces), len(g.Executors)) > maxPerGrant {
		return fmt.Errorf("more than %d entries: %w", maxPerGrant, ErrInvalid)
	}
	for _, role := range g.Roles {
		if _, err := ParseRole(string(role)); err != nil {
			return err
		}
	}
	for _, id := range g.Workspaces {
		if err := checkID("workspace", id); err != nil {
			return err
		}
	}
	for _, id := range g.Executors {
		if id == AnyExecutor {
			continue
		}
		if err := checkID("executor", id); err != nil {
			return err
		}
	}
	if len(g.Executors) > 0 && !slices.Contains(g.Roles, Execute) {
		return fmt.Errorf("executors are listed without the role %s: %w", Execute, ErrInvalid)
	}
	return nil
}

func (g Grant) clone() Grant {
	return Grant{
		Roles:      slices.Clone(g.Roles),
		Workspaces: slices.Clone(g.Workspaces),
		Executors:  slices.Clone(g.Executors),
	}
}

// checkID holds ids that clients choose to the form of R4.
func checkID(what, id string) error {
	if len(id) == 0 || len(id) > maxID {
		return fmt.Errorf("%s id of %d bytes, 1 to %d are allowed: %w", what, len(id), maxID, ErrInvalid)
	}
	for _, c := range []byte(id) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '.' && c != '_' && c != ':' && c != '-' {
			return fmt.Errorf("%s id %q: only letters, digits and . _ : - are allowed: %w", what, id, ErrInvalid)
		}
	}
	return nil
}
