package naryahttp

import (
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// maxAncestors bounds how far back the sessions are followed from which one has branched.
const maxAncestors = 64

// entryAt finds an entry in a session, or in what the session goes on from: in which one it
// is, and the sequence of the fact that appended it.
func (b *Binding) entryAt(r *request, session, entry string) (in string, sequence int64, err error) {
	through := int64(-1) // all of the session itself
	for range maxAncestors {
		view, err := b.host.Attach(r.Context(), r.principal(), access.ReadSession, session)
		if errors.Is(err, host.ErrNotFound) && through >= 0 { // the parent is gone
			break
		}
		if err != nil {
			return "", 0, err
		}
		found, created, err := b.lookFor(r, view, entry)
		if err != nil {
			return "", 0, err
		}
		if found > 0 && (through < 0 || found <= through) {
			return session, found, nil
		}
		if created.Branch == nil {
			break
		}
		session, through = created.ParentSessionID, created.Branch.Through
	}
	return "", 0, refuse(narya.CodeEntryNotFound, "")
}

// lookFor reads a session for an entry. It returns 0 where there is none.
func (b *Binding) lookFor(r *request, view *host.View, entry string) (sequence int64, created facts.Created, err error) {
	for after, more := uint64(0), true; more && err == nil && sequence == 0; {
		var broken error
		more, err = view.Scan(r.Context(), host.Cursor{After: after}, host.Page{}, func(record *host.Record) {
			after = record.Sequence
			if sequence != 0 || broken != nil {
				return
			}
			rec, failed := narad.Decode(record.Bytes)
			fact, ok := rec.(narad.Authority)
			if failed != nil || !ok {
				broken = fmt.Errorf("fact %d: %w", record.Sequence, errors.Join(failed, host.ErrDamaged))
				return
			}
			if c, ok := rec.(*narad.Custom); ok && c.Name == facts.SessionCreated {
				created, _ = facts.Read[facts.Created](c, c.Name)
			}
			if appends(fact, created.Mappings.Narya, entry) {
				sequence = int64(record.Sequence)
			}
		})
		err = errors.Join(err, broken)
	}
	return sequence, created, err
}

// appends reports whether a fact appends an entry.
func appends(fact narad.Authority, mapping int, entry string) bool {
	for _, e := range narya.MappingOf(fact, mapping).Project(fact) {
		if appended, ok := e.Payload.(*narya.EntryAppended); ok && appended.EntryID == entry {
			return true
		}
	}
	return false
}
