package naryahttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// lane is a lane as the operations show it.
type lane struct {
	LaneID    string `json:"laneId"`
	SessionID string `json:"sessionId"`
	Kind      string `json:"kind"`
	Agent     string `json:"agent,omitzero"`
	// Status is open, completed, failed or cancelled.
	Status string `json:"status"`
	// TurnID is the one turn of a lane that is not the main one.
	TurnID           string `json:"turnId,omitzero"`
	ParentToolCallID string `json:"parentToolCallId,omitzero"`
	StartedAt        string `json:"startedAt"`
	FinishedAt       string `json:"finishedAt,omitzero"`
}

// laneOpen is the status of a lane that is not closed.
const laneOpen = "open"

// laneError is the refusal for a lane that is not there.
func laneError(err error) error {
	if errors.Is(err, host.ErrNotFound) {
		return refuse(narya.CodeLaneNotFound, "")
	}
	return err
}

// lanes lists the lanes of a session in the order in which they opened.
func (b *Binding) lanes(w http.ResponseWriter, r *request) error {
	v, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	at, err := b.page(r, "narya.lanes", v.Session())
	if err != nil {
		return err
	}
	s, err := b.stretch(r, v, "")
	if err != nil {
		return err
	}
	list, next, err := s.lanes(r.Context(), at)
	if err != nil {
		return err
	}
	return writeList(w, at, list, next)
}

// started is the fact with which a lane opens.
type started struct {
	sequence uint64
	fact     narad.Authority
}

func (s stretch) lanes(ctx context.Context, at page) (list []lane, next string, err error) {
	if s.after, err = at.sequence(); err != nil {
		return nil, "", err
	}
	upTo := min(s.upTo, s.after+s.facts)
	var found []started
	err = scan(ctx, s.view, s.after, upTo, wantsLanes, func(sequence uint64, fact narad.Authority) bool {
		if opensLane(fact) != nil {
			found = append(found, started{sequence, fact})
		}
		return len(found) <= at.Limit
	})
	if err != nil {
		return nil, "", err
	}
	if upTo < s.upTo {
		next = place(upTo)
	}
	if len(found) > at.Limit {
		found = found[:at.Limit]
		next = place(found[len(found)-1].sequence)
	}
	for _, f := range found {
		one, err := laneOf(ctx, s.view, f.fact)
		if err != nil {
			return nil, "", err
		}
		list = append(list, one)
	}
	return list, next, nil
}

// opensLane returns the lane-started that a fact causes, nil for none.
func opensLane(fact narad.Authority) *narya.Event {
	for _, e := range narya.Mapping1.Project(fact) {
		if _, ok := e.Payload.(*narya.LaneStarted); ok {
			return &e
		}
	}
	return nil
}

// laneOf is the lane that a fact opens, as it stands now.
func laneOf(ctx context.Context, v *host.View, fact narad.Authority) (lane, error) {
	opens := opensLane(fact)
	if opens == nil {
		return lane{}, host.ErrNotFound
	}
	start, _ := opens.Payload.(*narya.LaneStarted)
	is := lane{
		LaneID: opens.LaneID, SessionID: opens.SessionID, Kind: string(start.Kind), Agent: start.Agent,
		Status: laneOpen, StartedAt: opens.Timestamp,
	}
	run, ok := fact.(*narad.RunStarted)
	if !ok {
		return is, nil // the main lane
	}
	is.TurnID, is.ParentToolCallID = narya.UUID(narya.KindRun, run.RunID), run.ParentToolCallID
	span, err := v.Run(ctx, run.RunID)
	if err != nil || span.Last == 0 {
		return is, err
	}
	end, err := v.Fact(ctx, span.Last)
	if err != nil {
		return is, err
	}
	for _, e := range narya.Mapping1.Project(end) {
		if finished, ok := e.Payload.(*narya.LaneFinished); ok {
			is.Status, is.FinishedAt = string(finished.Status), e.Timestamp
		}
	}
	return is, nil
}

// lane answers with one lane, wherever it is.
func (b *Binding) lane(w http.ResponseWriter, r *request) error {
	v, first, err := b.findLane(r)
	if err != nil {
		return laneError(err)
	}
	fact, err := v.Fact(r.Context(), first)
	if err != nil {
		return laneError(err)
	}
	is, err := laneOf(r.Context(), v, fact)
	if err != nil {
		return laneError(err)
	}
	return write(w, http.StatusOK, is)
}

// findLane returns the session of the lane in the path, and where it opened.
func (b *Binding) findLane(r *request) (v *host.View, first uint64, err error) {
	uuid, ok := narya.ParseUUID(r.PathValue("laneId"))
	if !ok {
		return nil, 0, host.ErrNotFound
	}
	session, run, err := b.host.Alias(r.Context(), r.principal(), narya.KindLane, uuid)
	if errors.Is(err, host.ErrNotFound) {
		session, _, err = b.host.Alias(r.Context(), r.principal(), narya.KindMainLane, uuid)
		run = ""
	}
	if err != nil {
		return nil, 0, err
	}
	v, err = b.host.Attach(r.Context(), r.principal(), access.ReadSession, session)
	if err != nil || run == "" {
		return v, 1, err // a session's first fact opens its main lane (R8)
	}
	span, err := v.Run(r.Context(), run)
	return v, span.First, err
}
