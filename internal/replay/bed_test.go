package replay

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a journal in memory that counts.
type store struct {
	*journal.Memory
	reads, records, puts atomic.Int64
	onRead               func() error
}

func openStore(t testing.TB) *store {
	t.Helper()
	memory, err := journal.NewMemory(journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return &store{Memory: memory}
}

func (s *store) Read(ctx context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	s.reads.Add(1)
	if s.onRead != nil {
		if err := s.onRead(); err != nil {
			return journal.Chunk{}, err
		}
	}
	chunk, err := s.Memory.Read(ctx, order, page)
	s.records.Add(int64(len(chunk.Records)))
	return chunk, err
}

func (s *store) PutSnapshot(ctx context.Context, session string, snapshot journal.Snapshot) error {
	s.puts.Add(1)
	return s.Memory.PutSnapshot(ctx, session, snapshot)
}

// add appends encoded facts to a session.
func (s *store) add(t testing.TB, session string, encoded [][]byte) {
	t.Helper()
	at := 0
	if head, err := s.Head(context.Background(), session); err == nil {
		at = int(head.Sequence)
	}
	for chunk := range slices.Chunk(encoded, journal.MaxBatchFacts) {
		batch := journal.Batch{Session: session, ExpectHead: uint64(at)}
		for _, bytes := range chunk {
			at++
			batch.Facts = append(batch.Facts, journal.Fact{EventID: fmt.Sprintf("%d.abcdefgh", at), Bytes: bytes})
		}
		if _, err := s.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// encode numbers facts of a session from a sequence on and writes them.
func encodeFacts(t testing.TB, sessionID string, from int, list []narad.Authority) [][]byte {
	t.Helper()
	var encoded [][]byte
	for i, fact := range list {
		e := fact.Envelope()
		e.SessionID, e.SessionSequence = sessionID, int64(from+i)
		e.EventID = fmt.Sprintf("%d.abcdefgh", e.SessionSequence)
		e.Timestamp = "2026-01-02T03:04:05.000Z"
		bytes, err := narad.Encode(fact)
		if err != nil {
			t.Fatalf("encode %s: %v", fact.Type(), err)
		}
		encoded = append(encoded, bytes)
	}
	return encoded
}

const testSession = "s-1"

// history makes the facts of a session in which everything happens: the story
// of a random trace, and between its facts those of the desk.
func history(t testing.TB, seed int64, n int) [][]byte {
	t.Helper()
	random := rand.New(rand.NewSource(seed))
	list := []narad.Authority{facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w", Title: "t"})}
	for _, fact := range trace(t, random, n) {
		list = append(list, fact)
		if random.Intn(5) == 0 {
			list = append(list, deskFact(random))
		}
	}
	return encodeFacts(t, testSession, 1, list)
}

// trace gives the facts of a trace that begins with the session's first fact:
// what changes the state of a reader who remembers everything, repetitions left out.
func trace(t testing.TB, random *rand.Rand, n int) []narad.Authority {
	t.Helper()
	for {
		var list []narad.Authority
		state := session.New(session.Options{Remember: session.RememberAll})
		for _, line := range sessiontest.Trace(random, n) {
			record, err := narad.Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			fact, ok := record.(narad.Authority)
			if !ok {
				continue
			}
			if r := state.Apply(fact); r.Kind == session.Applied && r.Code == "" {
				list = append(list, fact)
			}
		}
		if len(list) > 0 && list[0].Envelope().SessionSequence == 1 {
			return list
		}
	}
}

func deskFact(random *rand.Rand) narad.Authority {
	id := fmt.Sprintf("q-%d", random.Intn(6))
	switch random.Intn(7) {
	case 0, 1, 2:
		return facts.Session(facts.InputQueued, facts.Queued{MessageID: "m-" + id, RunID: id, Kind: facts.FollowUp, Content: "c"})
	case 3:
		return facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: "m-" + id, RunID: id})
	case 4:
		return facts.Session(facts.Posture, facts.Postured{Posture: facts.Detached, Was: facts.Attended})
	case 5:
		return facts.Session(facts.AgentRemembered, facts.Remembered{Agent: "a", Ref: id})
	default:
		members := []facts.MemberDecided{{RequestID: id, Decision: "approve"}}
		return facts.Session(facts.Decision, facts.Decided{InterruptID: id, Members: members, Actor: facts.Actor{ID: "p"}})
	}
}

// postures are small facts of a session, from a sequence on.
func postures(t testing.TB, sessionID string, from, n int) [][]byte {
	t.Helper()
	fact := facts.Session(facts.Posture, facts.Postured{Posture: facts.Detached, Was: facts.Attended})
	encoded := make([][]byte, n)
	for i := range encoded {
		encoded[i] = encodeFacts(t, sessionID, from+i, []narad.Authority{fact})[0]
	}
	return encoded
}

// fold applies facts to an empty state, one by one.
func fold(t testing.TB, o session.Options, encoded [][]byte) State {
	t.Helper()
	o.SessionID = testSession
	s := newState(o)
	applyAll(t, s, 1, encoded)
	return s
}

func applyAll(t testing.TB, s State, from int, encoded [][]byte) {
	t.Helper()
	for i, bytes := range encoded {
		record := &journal.Record{Session: testSession, Sequence: uint64(from + i), Fact: journal.Fact{Bytes: bytes}}
		if err := s.apply(record); err != nil {
			t.Fatalf("fact %d, %s: %v", from+i, bytes, err)
		}
	}
}

// controlText is all of a control state.
func controlText(s State) string {
	return string(s.Session.EncodeControl()) + "\n" + string(s.Desk.Encode())
}

// controlTexts are the control states after each number of facts.
func controlTexts(t testing.TB, encoded [][]byte) []string {
	t.Helper()
	s := fold(t, session.Options{NoDisplay: true}, nil)
	texts := []string{controlText(s)}
	for i := range encoded {
		applyAll(t, s, i+1, encoded[i:i+1])
		texts = append(texts, controlText(s))
	}
	return texts
}

// displayText is all of a display state.
func displayText(s State) string {
	return string(s.Session.SnapshotJSON()) + "\n" + string(s.Desk.Encode())
}
