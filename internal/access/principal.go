package access

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Principal is somebody who has been authenticated. The zero Principal is
// nobody and may do nothing.
type Principal struct {
	id    string
	name  string
	grant Grant
}

// NewPrincipal returns a principal with a grant.
func NewPrincipal(id, name string, grant Grant) (Principal, error) {
	if err := checkID("principal", id); err != nil {
		return Principal{}, err
	}
	if err := checkName(name); err != nil {
		return Principal{}, err
	}
	if err := grant.validate(); err != nil {
		return Principal{}, err
	}
	return Principal{id: id, name: name, grant: grant.clone()}, nil
}

const ownerID = "owner"

// Owner is the principal of the host's Unix socket, which only the owner of the
// home can open: everything is allowed, and no token stands behind it.
func Owner() Principal {
	return Principal{id: ownerID, name: "owner of the home", grant: everything()}
}

func everything() Grant {
	return Grant{Roles: []Role{Admin, Execute}, Executors: []string{AnyExecutor}}
}

// ID is the opaque id that facts record as actor.id (R6) and that commands are
// deduplicated by (R21). It is the id of the token behind the principal.
func (p Principal) ID() string { return p.id }

// IsOwner says that p is the owner of the home, who stands behind every client of its
// socket.
func (p Principal) IsOwner() bool { return p.id == ownerID }

// Name is what people call the principal.
func (p Principal) Name() string { return p.name }

// IsZero says that p is nobody.
func (p Principal) IsZero() bool { return p.id == "" }

// String is the id.
func (p Principal) String() string { return p.id }

// May says whether p has the role in a workspace. The empty workspace is the
// host as a whole, which takes a grant that no workspace limits.
func (p Principal) May(role Role, workspace string) bool {
	return p.MaySomewhere(role) && p.Reaches(workspace)
}

// Reaches says whether the roles of p, whichever they are, hold in a workspace. Of one
// that p does not reach nothing is told, not even what is there.
func (p Principal) Reaches(workspace string) bool {
	return !p.IsZero() && (len(p.grant.Workspaces) == 0 || slices.Contains(p.grant.Workspaces, workspace))
}

// Workspaces are those that the roles of p are limited to; none: they hold in all.
func (p Principal) Workspaces() []string { return slices.Clone(p.grant.Workspaces) }

// MaySomewhere says whether there may be a workspace in which p has the role.
func (p Principal) MaySomewhere(role Role) bool {
	return !p.IsZero() && (slices.Contains(p.grant.Roles, role) || slices.Contains(p.grant.Roles, Admin))
}

// MayAttach says whether p may attach as that executor (R34). An administrator
// of the whole host may attach as any.
func (p Principal) MayAttach(executor string) bool {
	if executor == "" || executor == AnyExecutor || p.IsZero() {
		return false
	}
	if p.May(Admin, "") {
		return true
	}
	return slices.Contains(p.grant.Roles, Execute) &&
		(slices.Contains(p.grant.Executors, executor) || slices.Contains(p.grant.Executors, AnyExecutor))
}

// checkName bounds names that people choose. They are shown in terminals, so
// control characters are refused.
func checkName(name string) error {
	if len(name) == 0 || len(name) > maxName {
		return fmt.Errorf("name of %d bytes, 1 to %d are allowed: %w", len(name), maxName, ErrInvalid)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("name is not UTF-8: %w", ErrInvalid)
	}
	for i, c := range name {
		if unicode.IsControl(c) {
			return fmt.Errorf("name has the control character %U at byte %d: %w", c, i, ErrInvalid)
		}
	}
	return nil
}
