package executor

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/journal"
)

// lease is one lease of an executor. The zero lease is none.
type lease struct {
	hash      hash
	principal string
	// workspaces limit the sessions whose calls the lease gets; none: it gets those of all.
	workspaces []string
	expires    time.Time
	// id is the secret; it is empty after a restart, until its holder shows it.
	id string
}

// storedLease is the stored form of a lease. Only fields are added to it.
type storedLease struct {
	Lease      hash     `json:"lease"`
	Principal  string   `json:"principal"`
	Workspaces []string `json:"workspaces,omitempty"`
}

func newLease(random io.Reader, p access.Principal) (lease, error) {
	id, err := draw(random, "mxl_")
	if err != nil {
		return lease{}, err
	}
	return lease{hash: hashOf(id), principal: p.ID(), workspaces: p.Workspaces(), id: id}, nil
}

func (l lease) row(executor string) journal.LeaseRow {
	value, err := json.Marshal(storedLease{l.hash, l.principal, l.workspaces}, json.Deterministic(true))
	if err != nil {
		panic("executor: a lease is JSON: " + err.Error())
	}
	return journal.LeaseRow{Executor: executor, Value: value}
}

func readLease(r journal.LeaseRow) (lease, error) {
	var s storedLease
	if err := json.Unmarshal(r.Value, &s); err != nil || s.Lease == "" {
		return lease{}, errors.New("a stored lease does not decode")
	}
	return lease{hash: s.Lease, principal: s.Principal, workspaces: s.Workspaces}, nil
}

// reaches says whether calls of a workspace go to the lease.
func (l lease) reaches(workspace string) bool {
	return len(l.workspaces) == 0 || slices.Contains(l.workspaces, workspace)
}

// check says whether a caller holds the lease, now.
func (l lease) check(p access.Principal, id string, now time.Time) error {
	switch {
	case l.hash == "":
		return ErrLeaseExpired
	case !l.hash.fits(id), l.principal != p.ID():
		return ErrWrongLease
	case !now.Before(l.expires):
		return ErrLeaseExpired
	}
	return nil
}
