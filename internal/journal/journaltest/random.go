package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// testRandomCommands gives the same random commands, many of them wrong, to
// the engine and to the model and compares answers and content.
func testRandomCommands(t *testing.T, engine Engine) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			j := open(t, engine, journal.Options{})
			g := NewGenerator(seed, "")
			model := modelOf(j)
			accepted := 0
			for i := range 150 {
				batch := g.Batch()
				sent := batch
				if g.Chance(8) { // an owner that knows too little or too much
					sent.ExpectHead += uint64(g.Intn(3)) - 1
				}
				got, gotErr := j.Append(context.Background(), sent)
				want, wantErr := model.Append(sent)
				got.UpTo = want.UpTo
				if gotErr == nil && wantErr == nil && fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("command %d: receipt %+v, want %+v", i, got, want)
				}
				if (gotErr == nil) != (wantErr == nil) || wantErr != nil && errorName(gotErr) != errorName(wantErr) {
					t.Fatalf("command %d, %+v: got %v, want %v", i, sent, gotErr, wantErr)
				}
				g.Done(batch, gotErr == nil)
				if gotErr == nil {
					accepted++
				}
				g.maybeDelete(t, j, model)
				if i%30 == 0 {
					compareText(t, fmt.Sprintf("after command %d", i), Everything(j, &g.Probes), Everything(model, &g.Probes))
				}
			}
			compareText(t, "at the end", Everything(j, &g.Probes), Everything(model, &g.Probes))
			wantVerified(t, j)
			if accepted < 40 || accepted > 140 {
				t.Errorf("%d of 150 commands were accepted, want a mixture", accepted)
			}
		})
	}
}

// Generator makes random batches of a few sessions.
type Generator struct {
	*rand.Rand
	Probes   Probes
	prefix   string
	stories  map[string]*Story
	sessions []string
	deleted  map[string]bool
	requests map[string][]journal.InterruptRow
}

// NewGenerator makes a generator whose sessions have names of their own.
func NewGenerator(seed uint64, prefix string) *Generator {
	return &Generator{
		Rand: rand.New(rand.NewPCG(seed, 0x6d616861)), prefix: prefix, stories: map[string]*Story{},
		deleted: map[string]bool{}, requests: map[string][]journal.InterruptRow{},
	}
}

// Intn is a number below n.
func (g *Generator) Intn(n int) int { return g.IntN(n) }

// Chance is true once in n times.
func (g *Generator) Chance(n int) bool { return g.IntN(n) == 0 }

func (g *Generator) story(session string) *Story {
	if g.stories[session] == nil {
		g.stories[session] = NewStory(session)
		g.sessions = append(g.sessions, session)
	}
	return g.stories[session]
}

// FactBatch makes a batch with a fact at least, so that it can be told from
// what is stored whether it was written.
func (g *Generator) FactBatch() journal.Batch {
	for {
		batch := g.Batch()
		if len(batch.Facts) > 0 {
			return batch
		}
		g.Done(batch, false)
	}
}

// Batch makes a batch that fits, as far as the generator knows.
func (g *Generator) Batch() journal.Batch {
	s := g.story(fmt.Sprintf("%ss%d", g.prefix, g.IntN(5)))
	var facts []journal.Fact
	for range g.IntN(5) {
		facts = append(facts, s.Fact(g.place(s)))
	}
	batch := s.Batch(facts...)
	for range g.IntN(4) {
		batch.Changes = append(batch.Changes, g.change(s, len(facts)))
	}
	if len(facts)+len(batch.Changes) == 0 {
		batch.Changes = []journal.Change{put(sessionRow(s.Session, "active"))}
	}
	if g.Chance(3) {
		batch.Conditions = append(batch.Conditions, g.condition(s))
	}
	g.Probes.Add(batch)
	return batch
}

// Done tells the generator what became of its batch.
func (g *Generator) Done(batch journal.Batch, accepted bool) {
	s := g.stories[batch.Session]
	if accepted {
		for _, change := range batch.Changes {
			if p, ok := change.(journal.Put); ok {
				if interrupt, ok := p.Row.(journal.InterruptRow); ok {
					g.requests[batch.Session] = append(g.requests[batch.Session], interrupt)
				}
			}
		}
		return
	}
	for _, fact := range batch.Facts {
		s.Head--
		if fact.RootRunID != "" {
			s.runs[fact.RootRunID]--
		}
		if fact.WorkflowID != "" {
			s.workflows[fact.WorkflowID]--
		}
	}
}

func (g *Generator) place(s *Story) Place {
	place := Place{Events: uint32(g.IntN(3)), Size: g.IntN(2_000)}
	if !g.Chance(3) {
		place.Run = fmt.Sprintf("%s-r%d", s.Session, g.IntN(3))
	}
	if g.Chance(2) {
		place.Workflow = fmt.Sprintf("%s-w%d", s.Session, g.IntN(2))
	}
	if g.Chance(2) {
		place.Log, place.Logs = fmt.Sprintf("%s-r%d", s.Session, g.IntN(3)), uint32(1+g.IntN(3))
	}
	return place
}

func (g *Generator) change(s *Story, facts int) journal.Change {
	n := func(kind string) string { return fmt.Sprintf("%s-%s%d", s.Session, kind, g.IntN(3)) }
	if facts > 0 && g.Chance(3) {
		return put(journal.InterruptRow{
			ID: fmt.Sprintf("%s-i%d", s.Session, s.Head), Session: s.Session, Sequence: s.Head - uint64(g.IntN(facts)), Open: true,
		})
	}
	if known := g.requests[s.Session]; len(known) > 0 && g.Chance(3) {
		interrupt := known[g.IntN(len(known))]
		interrupt.Open, interrupt.Value = g.Chance(3), []byte("decided")
		return put(interrupt)
	}
	due, known := time.Duration(g.IntN(60))*time.Second, s.Head-uint64(facts)
	rows := []journal.Row{
		sessionRow(s.Session, []string{"active", "archived"}[g.IntN(2)]),
		journal.RunRow{ID: n("r"), Session: s.Session, Root: n("r"), First: known},
		journal.WorkflowRow{ID: n("w"), Session: s.Session, Last: known},
		journal.OpenWorkRow{Session: s.Session},
		timerRow(s.Session, n("t"), due),
		journal.TimerRow{ID: n("free"), Due: Start.Add(due), Carried: true},
		journal.CommandRow{Session: s.Session, Space: "p", ID: n("c"), Value: []byte{byte(g.IntN(3))}},
		journal.AliasRow{Space: "x", Alias: n("a"), Session: s.Session, ID: n("id")},
		journal.LeaseRow{Executor: g.prefix + "e", Value: []byte{byte(g.IntN(3))}},
		journal.TokenRow{Executor: g.prefix + "e", ID: n("k"), Session: s.Session},
		journal.AgentRow{ID: n("agent"), Session: s.Session},
		journal.MaterialRow{Session: s.Session, Space: []string{"a", "b"}[g.IntN(2)], ID: n("m"), Digest: n("d")},
		journal.DecisionRow{Of: []string{"", s.Session}[g.IntN(2)], ID: n("x"), Session: s.Session, Decision: []string{"allow", "deny"}[g.IntN(2)]},
	}
	row := rows[g.IntN(len(rows))]
	if g.Chance(4) {
		return remove(row.Key())
	}
	return put(row)
}

func (g *Generator) condition(s *Story) journal.Condition {
	key := journal.CommandKey(s.Session, "p", fmt.Sprintf("%s-c%d", s.Session, g.IntN(3)))
	if g.Chance(2) {
		return journal.IfAbsent{Key: key}
	}
	return journal.IfEqual{Row: journal.LeaseRow{Executor: g.prefix + "e", Value: []byte{byte(g.IntN(3))}}}
}

func (g *Generator) maybeDelete(t *testing.T, j journal.Journal, model *Model) {
	t.Helper()
	if !g.Chance(70) {
		return
	}
	session := g.sessions[g.IntN(len(g.sessions))]
	head := g.stories[session].Head
	deletion := journal.Deletion{Session: session, ExpectHead: head}
	got, want := j.Delete(context.Background(), deletion), model.Delete(deletion)
	if (got == nil) != (want == nil) || want != nil && errorName(got) != errorName(want) {
		t.Fatalf("delete %+v: got %v, want %v", deletion, got, want)
	}
}

// testConcurrentAppenders has many writers, several to a session, and readers
// beside them; afterwards the model is told what was acknowledged, in the order
// of its numbers, and must hold the same.
func testConcurrentAppenders(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() { followStore(t, j, stop) })
	}
	acknowledged := make([][]ackedBatch, 12)
	for i := range acknowledged {
		writers.Go(func() { acknowledged[i] = contend(j, uint64(i), 20) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()

	all := slices.Concat(acknowledged...)
	slices.SortFunc(all, func(a, b ackedBatch) int { return int(a.receipt.FirstOffset) - int(b.receipt.FirstOffset) })
	model, probes := modelOf(j), &Probes{}
	for _, acked := range all {
		probes.Add(acked.batch)
		receipt, err := model.Append(acked.batch)
		receipt.UpTo = acked.receipt.UpTo
		if err != nil || fmt.Sprint(receipt) != fmt.Sprint(acked.receipt) {
			t.Fatalf("acknowledged %+v with %+v; in the order of numbers the model says %+v, %v", acked.batch, acked.receipt, receipt, err)
		}
	}
	compareText(t, "after all writers", Everything(j, probes), Everything(model, probes))
	wantVerified(t, j)
}

type ackedBatch struct {
	batch   journal.Batch
	receipt journal.Receipt
}

// contend appends n batches to one of four sessions that other writers use too.
func contend(j journal.Journal, writer uint64, n int) (acknowledged []ackedBatch) {
	random := rand.New(rand.NewPCG(writer, 1))
	session := fmt.Sprintf("s%d", writer%4)
	for len(acknowledged) < n {
		s := NewStory(session)
		head, err := j.Head(context.Background(), session)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return acknowledged
		}
		s.Head = head.Sequence
		batch := s.Batch(s.Facts(1 + random.IntN(3))...)
		batch.Changes = []journal.Change{
			put(sessionRow(session, fmt.Sprint(writer))),
			put(journal.LeaseRow{Executor: "shared", Value: []byte(fmt.Sprint(writer))}),
		}
		receipt, err := j.Append(context.Background(), batch)
		switch {
		case err == nil:
			acknowledged = append(acknowledged, ackedBatch{batch, receipt})
		case !errors.Is(err, journal.ErrConflict):
			return acknowledged
		}
	}
	return acknowledged
}

// followStore reads by offset from the start until told to stop; it must see
// every offset once, and none above the mark.
func followStore(t *testing.T, j journal.Journal, stop <-chan struct{}) {
	var after uint64
	for {
		select {
		case <-stop:
			return
		default:
		}
		chunk, err := j.Read(context.Background(), journal.ByOffset{After: after}, journal.Page{Limit: 7})
		if err != nil {
			t.Errorf("read after %d: %v", after, err)
			return
		}
		mark := j.Durable().Offset
		for _, r := range chunk.Records {
			if r.Offset != after+1 || r.Offset > mark {
				t.Errorf("after offset %d came %d, with the mark at %d", after, r.Offset, mark)
				return
			}
			after = r.Offset
		}
	}
}
