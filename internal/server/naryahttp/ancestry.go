package naryahttp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// maxAncestors bounds how far back the sessions are followed from which one has branched.
const maxAncestors = 64

// ancestry is a transcript with what its session goes on from: its own part first, then that
// of its parent up to where it branched, and so on. Of an ancestor that was deleted, and of
// those behind it, nothing is left.
func (b *Binding) ancestry(r *request, own stretch) ([]stretch, error) {
	parts := []stretch{own}
	if main := narya.MainLaneID(own.view.Session()); own.laneID != "" && own.laneID != main {
		return parts, nil
	}
	for of := own.view; len(parts) < maxAncestors; {
		created, err := createdWith(r.Context(), of)
		if err != nil || created.Branch == nil {
			return parts, err
		}
		of, err = b.host.Attach(r.Context(), r.principal(), access.ReadSession, created.ParentSessionID)
		if errors.Is(err, host.ErrNotFound) || errors.Is(err, host.ErrGone) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, stretch{
			view: of, laneID: narya.MainLaneID(of.Session()), upTo: uint64(created.Branch.Through), facts: own.facts,
			content: own.content, shownIn: narya.MainLaneID(own.view.Session()),
		})
	}
	return parts, nil
}

// createdWith is what a session was created with: its first fact.
func createdWith(ctx context.Context, v *host.View) (facts.Created, error) {
	fact, err := v.Fact(ctx, 1)
	if err != nil {
		return facts.Created{}, err
	}
	created, _ := facts.Read[facts.Created](fact, facts.SessionCreated)
	return created, nil
}

// pageOver reads a page over all parts of a transcript.
func pageOver(ctx context.Context, parts []stretch, at page, backwards bool) (items []entry, next string, err error) {
	step, part := -1, len(parts)-1
	if backwards {
		step, part = 1, 0
	}
	inside := at.Cursor
	if at.Cursor != "" {
		if part, inside, err = placeIn(parts, at.Cursor); err != nil {
			return nil, "", err
		}
	}
	for ; part >= 0 && part < len(parts); part += step {
		if len(items) == at.Limit {
			return items, strconv.Itoa(part) + "/", nil
		}
		found, more, err := parts[part].page(ctx, page{Limit: at.Limit - len(items), Cursor: inside}, backwards)
		if err != nil {
			return nil, "", err
		}
		items, inside = append(items, found...), ""
		if more != "" {
			return items, strconv.Itoa(part) + "/" + more, nil
		}
	}
	return items, "", nil
}

// placeIn reads a place: the number of the part, and the place in it.
func placeIn(parts []stretch, cursor string) (part int, inside string, err error) {
	number, inside, ok := strings.Cut(cursor, "/")
	part, err = strconv.Atoi(number)
	if !ok || err != nil || part < 0 || part >= len(parts) {
		return 0, "", malformed("cursor was not given by this list with these filters")
	}
	return part, inside, nil
}

// find finds an entry in a session, or in what the session goes on from, and the sequence of
// the fact that appended it.
func (b *Binding) find(r *request, v *host.View, entryID string) (in *host.View, sequence uint64, err error) {
	parts, err := b.ancestry(r, stretch{view: v})
	if err != nil {
		return nil, 0, err
	}
	for _, part := range parts {
		_, at, err := part.view.Entry(r.Context(), entryID)
		switch {
		case errors.Is(err, host.ErrNotFound):
			continue
		case err != nil:
			return nil, 0, err
		case part.shownIn == "" || at <= part.upTo:
			return part.view, at, nil
		}
	}
	return nil, 0, refuse(narya.CodeEntryNotFound, "")
}
