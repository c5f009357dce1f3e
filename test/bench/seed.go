package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// seed is the store that the host is measured on.
type seed struct {
	sessions int // in all
	large    int // facts of the session "large"
	medium   int // sessions "medium-N" of 10 MB
}

const (
	largeSession = "large"
	// the last facts of the large session are in batches as an owner writes them
	tailFacts   = 4_000
	tailBatch   = 3
	mediumFacts = 24_000 // about 10 MB
	smallFacts  = 12
	smallBatch  = 6
)

func mediumSession(i int) string { return "medium-" + strconv.Itoa(i) }

// agentOf is the agent of a session: the medium ones are written to while they are
// followed.
func agentOf(session string) string {
	if strings.HasPrefix(session, "medium-") {
		return "steady"
	}
	return "quiet"
}

func smallSession(i int) string { return "small-" + strconv.Itoa(i) }

// sow writes the store as a host would have: every fact is judged by the guard and has
// its rows and snapshots; only the batches are larger, where sessions are large.
func (s seed) sow(ctx context.Context, home string) (size int64, err error) {
	j, err := pebble.Open(filepath.Join(home, "store"), pebble.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	sower := &sower{journal: j, replay: replay.New(j, replay.Options{})}
	type plot struct {
		id           string
		facts, batch int
	}
	plots := make(chan plot)
	var workers sync.WaitGroup
	failed := make(chan error, 1)
	for range 64 {
		workers.Go(func() {
			for p := range plots {
				if err := sower.session(ctx, p.id, p.facts, p.batch); err != nil {
					select {
					case failed <- fmt.Errorf("session %s: %w", p.id, err):
					default:
					}
				}
			}
		})
	}
	// The large one is neither the oldest nor the newest.
	for i := range s.sessions - s.medium - 1 {
		plots <- plot{smallSession(i), smallFacts, smallBatch}
		switch {
		case i == s.sessions/2:
			plots <- plot{largeSession, s.large, 500}
		case i > s.sessions/2 && i <= s.sessions/2+s.medium:
			plots <- plot{mediumSession(i - s.sessions/2), mediumFacts, 500}
		}
	}
	close(plots)
	workers.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return sower.size.Load(), nil
	}
}

type sower struct {
	journal journal.Journal
	replay  *replay.Replay
	size    atomic.Int64
}

// profiles are what sessions of a host use.
const profiles = narad.AllProfiles &^ (narad.Graph | narad.Workspace | narad.Trace | narad.Debug)

// session writes one session of so many facts.
func (s *sower) session(ctx context.Context, id string, n, batch int) error {
	w := &writer{sower: s, id: id, left: n, most: batch}
	w.begin()
	for w.left > 0 {
		w.turn()
	}
	return errors.Join(w.err, w.flush(ctx))
}

// writer writes one session, as its owner would.
type writer struct {
	sower   *sower
	id      string
	control *replay.Control
	batch   journal.Batch
	left    int
	most    int // facts in a batch
	turns   int
	err     error
}

// begin makes the session.
func (w *writer) begin() {
	w.control = replay.Empty(w.id)
	w.add(facts.Session(facts.SessionCreated, facts.Created{
		WorkspaceID: "default", Title: "A session of the bench", Agent: agentOf(w.id),
		RequiredProfiles: profiles.IDs(), Mappings: facts.Mappings{Narya: mappingOf(w.id)},
	}))
}

// mappingOf is the version of Narya's mapping that a session has.
func mappingOf(session string) int {
	if session == eventsSession {
		return 1
	}
	return 0
}

// text is what an agent says in one piece.
var text = strings.Repeat("Some words. ", 6)

// turn is one run: a question, tools, an answer. The last one is as long as is left.
func (w *writer) turn() {
	w.turns++
	run := fmt.Sprintf("%s-run-%d", w.id, w.turns)
	message := fmt.Sprintf("%s-answer-%d", w.id, w.turns)
	in := func(fact narad.Authority) {
		e := fact.Envelope()
		e.RootRunID, e.RunID = run, run
		w.add(fact)
	}
	in(&narad.RunStarted{})
	in(&narad.MessageUserRecorded{MessageID: run + "-prompt", MessageScope: narad.ScopeSession, Content: "Do it."})
	for i := range 3 {
		call := fmt.Sprintf("%s-call-%d", run, i)
		if w.left < 8 {
			break
		}
		in(&narad.ToolCallStarted{ToolCallID: call, ToolName: "read", Executor: narad.ExecutorBackend, Args: narad.Raw(`{"path":"internal/some/file.go"}`)})
		in(&narad.ToolCallFinished{ToolCallID: call, Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{"lines":200,"text":"package some"}`)})
	}
	in(&narad.MessageTextStarted{MessageID: message, Role: narad.RoleAssistant, MessageScope: narad.ScopeSession})
	for range min(90, max(w.left-2, 0)) {
		in(&narad.MessageTextDelta{MessageID: message, Delta: text})
	}
	in(&narad.MessageTextCompleted{MessageID: message})
	in(&narad.RunFinished{})
}

// add gives a fact its place, judges and applies it, and puts it into the batch.
func (w *writer) add(fact narad.Authority) {
	if w.err != nil {
		return
	}
	now := time.Now().UTC()
	s := w.control.Session
	s.Number(fact)
	e := fact.Envelope()
	e.EventID = strconv.FormatInt(e.SessionSequence, 10) + ".abcdefgh"
	e.Timestamp = narad.Timestamp(now)
	data, err := narad.Encode(fact)
	if err != nil {
		w.err = fmt.Errorf("encode %s: %w", fact.Type(), err)
		return
	}
	changes := index.Changes(s, w.control.Desk, fact)
	if r := s.Admit(fact); r.Kind != session.Applied {
		w.err = fmt.Errorf("the guard refuses %s: %s %s", fact.Type(), r.Code, r.Detail)
		return
	}
	w.control.Desk.Apply(fact)
	w.batch.Changes = append(w.batch.Changes, changes...)
	w.batch.Facts = append(w.batch.Facts, journal.Fact{
		EventID: e.EventID, Bytes: data, RootRunID: e.RootRunID, RunSequence: uint64(e.Sequence),
	})
	w.batch.Time = now
	w.left--
	if w.id == largeSession && w.left < tailFacts {
		w.most = tailBatch
	}
	if len(w.batch.Facts) >= w.most {
		w.err = w.flush(context.Background())
	}
}

// flush appends the batch and keeps a snapshot when one is due.
func (w *writer) flush(ctx context.Context) error {
	if len(w.batch.Facts) == 0 {
		return nil
	}
	for i := range w.batch.Facts {
		w.sower.size.Add(int64(len(w.batch.Facts[i].Bytes)))
	}
	w.batch.Session = w.id
	w.batch.ExpectHead = uint64(w.control.Session.Last()) - uint64(len(w.batch.Facts))
	if _, err := w.sower.journal.Append(ctx, w.batch); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	w.batch = journal.Batch{}
	w.sower.replay.Save(ctx, w.id, w.control)
	return nil
}
