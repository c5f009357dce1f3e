package naryahttp

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) transcriptRoutes() routes {
	return routes{
		"GET /v1/sessions/{sessionId}/transcript":           b.transcript,
		"GET /v1/sessions/{sessionId}/transcript/{entryId}": b.entry,
		"GET /v1/sessions/{sessionId}/lanes":                b.lanes,
		"GET /v1/lanes/{laneId}":                            b.lane,
	}
}

// pageBytes is about how many bytes a page has. One that meets this bound, or that of the
// facts looked at, has fewer items than it may have, or none.
const pageBytes = 4 << 20

// The orders of a transcript.
const (
	oldestFirst = "asc"
	newestFirst = "desc"
)

func (b *Binding) transcript(w http.ResponseWriter, r *request) error {
	v, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	order, err := r.word("order", oldestFirst, newestFirst)
	if err != nil {
		return err
	}
	laneID, err := r.uuid("laneId")
	if err != nil {
		return err
	}
	at, err := b.page(r, "narya.transcript", v.Session(), laneID, order)
	if err != nil {
		return err
	}
	s, err := b.stretch(r, v, laneID)
	if err != nil {
		return err
	}
	parts, err := b.ancestry(r, s)
	if err != nil {
		return err
	}
	items, next, err := pageOver(r.Context(), parts, at, order == newestFirst)
	if err != nil {
		return err
	}
	return writeList(w, at, items, next)
}

// stretch is the part of a session in which the entries of a lane stand, or those of all.
type stretch struct {
	view        *host.View
	laneID      string // "" for all
	after, upTo uint64
	facts       uint64 // that are looked at for a page
	shownIn     string // the lane in which its entries are shown, "" for their own
	content     int    // the most bytes of a message
}

func (b *Binding) stretch(r *request, v *host.View, laneID string) (stretch, error) {
	head, err := v.Head(r.Context())
	s := stretch{view: v, laneID: laneID, upTo: head, facts: b.opt.PageFacts, content: listedContent}
	if err != nil || laneID == "" || laneID == narya.MainLaneID(v.Session()) {
		return s, err
	}
	session, run, err := b.host.Alias(r.Context(), r.principal(), narya.KindLane, laneID)
	if err == nil && session != v.Session() {
		err = host.ErrNotFound
	}
	if err != nil {
		return s, laneError(err)
	}
	span, err := v.Run(r.Context(), run)
	if err != nil {
		return s, laneError(err)
	}
	s.after = span.First - 1
	if span.Last > 0 {
		s.upTo = span.Last
	}
	return s, nil
}

// page reads a page of entries, and says where the next one begins.
func (s stretch) page(ctx context.Context, at page, backwards bool) (items []entry, next string, err error) {
	from, err := at.sequence()
	switch {
	case err != nil:
		return nil, "", err
	case from > 0 && backwards:
		s.upTo = from - 1
	default:
		s.after = max(s.after, from)
	}
	p := pageOf{stretch: s, most: at.Limit}
	if backwards {
		err = p.back(ctx)
	} else {
		err = p.forth(ctx)
	}
	return p.items, p.next, err
}

// pageOf is a page that is being read.
type pageOf struct {
	stretch
	most  int
	items []entry
	bytes int
	next  string // the place behind the page, "" at the end
}

// forth reads on from where the stretch begins.
func (p *pageOf) forth(ctx context.Context) error {
	upTo := min(p.upTo, p.after+p.facts)
	found, more, err := p.oldest(ctx, p.after, upTo)
	if err != nil {
		return err
	}
	full, err := p.take(ctx, found)
	switch {
	case err != nil || full:
	case more: // what was found is shown shorter than it is, so that all of it had room
		p.next = place(found[len(found)-1].sequence)
	case upTo < p.upTo:
		p.next = place(upTo)
	}
	return err
}

// How many facts are looked at together on the way back. They may be large, so there are
// few at first, more where they are small, and fewer where they are large.
const (
	firstWindow = 16
	maxWindow   = 128
)

// back reads back from where the stretch ends, a window at a time.
func (p *pageOf) back(ctx context.Context) error {
	end, bottom, window := p.upTo, p.after, uint64(firstWindow)
	if p.upTo > p.facts {
		bottom = max(bottom, p.upTo-p.facts)
	}
	for end > bottom {
		begin := bottom
		if end-bottom > window {
			begin = end - window
		}
		found, large, err := p.newest(ctx, begin, end)
		if err != nil {
			return err
		}
		slices.Reverse(found)
		if full, err := p.take(ctx, found); err != nil || full {
			return err
		}
		if large {
			end, window = found[len(found)-1].sequence-1, max(window/2, 1)
		} else {
			end, window = begin, min(window*2, maxWindow)
		}
	}
	if bottom > p.after {
		p.next = place(bottom + 1)
	}
	return nil
}

// oldest returns the first entries between two sequences, until there are more than may be
// on the page, or they take more than its bytes: then there may be more.
func (p *pageOf) oldest(ctx context.Context, after, upTo uint64) (found []entry, more bool, err error) {
	bytes := 0
	err = p.entries(ctx, after, upTo, func(e entry) bool {
		found = append(found, e)
		bytes += e.size()
		more = len(found) > p.most || bytes > pageBytes
		return !more
	})
	return found, more, err
}

// newest returns the last entries between two sequences, as many as have room in the bytes of
// a page, at least one. more says that there are others before them.
func (p *pageOf) newest(ctx context.Context, after, upTo uint64) (found []entry, more bool, err error) {
	bytes := 0
	err = p.entries(ctx, after, upTo, func(e entry) bool {
		found = append(found, e)
		bytes += e.size()
		for bytes > pageBytes && len(found) > 1 {
			bytes -= found[0].size()
			found, more = slices.Delete(found, 0, 1), true // which lets go of it
		}
		return true
	})
	return found, more, err
}

// entries visits the entries of the lane between two sequences, until visit says that it has
// enough.
func (p *pageOf) entries(ctx context.Context, after, upTo uint64, visit func(entry) bool) error {
	return scan(ctx, p.view, after, upTo, wantsEntries, func(sequence uint64, fact narad.Authority) bool {
		for _, e := range entriesOf(sequence, fact) {
			if (p.laneID == "" || e.LaneID == p.laneID) && !visit(e) {
				return false
			}
		}
		return true
	})
}

// take adds entries to the page until it is full. A fact has one entry, so the place of an
// entry is that of its fact.
func (p *pageOf) take(ctx context.Context, found []entry) (full bool, err error) {
	for _, e := range found {
		if len(p.items) == p.most || len(p.items) > 0 && p.bytes+e.size() > pageBytes {
			p.next = place(p.items[len(p.items)-1].sequence)
			return true, nil
		}
		if err := e.complete(ctx, p.view, p.content); err != nil {
			return false, err
		}
		e.LaneID = cmp.Or(p.shownIn, e.LaneID)
		p.items = append(p.items, e)
		p.bytes += e.size()
	}
	return false, nil
}

func (b *Binding) entry(w http.ResponseWriter, r *request) error {
	v, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	id, ok := narya.ParseUUID(r.PathValue("entryId"))
	if !ok {
		return refuse(narya.CodeEntryNotFound, "")
	}
	of, at, err := b.find(r, v, id)
	if err != nil {
		return err
	}
	fact, err := of.Fact(r.Context(), at)
	if err != nil {
		return err
	}
	for _, e := range entriesOf(at, fact) {
		if e.EntryID != id {
			continue
		}
		if err := e.complete(r.Context(), of, wholeContent); err != nil {
			return err
		}
		if of != v {
			e.LaneID = narya.MainLaneID(v.Session())
		}
		return write(w, http.StatusOK, e)
	}
	return refuse(narya.CodeEntryNotFound, "")
}
