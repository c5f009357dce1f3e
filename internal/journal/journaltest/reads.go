package journaltest

import (
	"context"
	"fmt"
	"testing"

	"github.com/mahati-host/mahati/internal/journal"
)

func testOrders(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	for range 5 {
		mustAppend(t, j, s.Batch(s.Fact(Place{Run: "r", Size: 100}), s.Fact(Place{Workflow: "w", Size: 100, Events: 2})))
	}
	session := func(after uint64) journal.Order { return journal.BySession{Session: "s", After: after} }
	wantSequences(t, "all", mustRead(t, j, session(0), journal.Page{}), false, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	wantSequences(t, "three", mustRead(t, j, session(0), journal.Page{Limit: 3}), true, 1, 2, 3)
	wantSequences(t, "from the middle of a batch", mustRead(t, j, session(3), journal.Page{Limit: 2}), true, 4, 5)
	wantSequences(t, "exactly to the end", mustRead(t, j, session(7), journal.Page{Limit: 3}), false, 8, 9, 10)
	wantSequences(t, "by bytes", mustRead(t, j, session(0), journal.Page{Bytes: 250}), true, 1, 2)
	wantSequences(t, "by exact bytes", mustRead(t, j, session(8), journal.Page{Bytes: 200}), false, 9, 10)
	wantSequences(t, "at least one", mustRead(t, j, session(0), journal.Page{Bytes: 1}), true, 1)
	wantSequences(t, "at the head", mustRead(t, j, session(10), journal.Page{}), false)
	wantSequences(t, "above the head", mustRead(t, j, session(1<<63), journal.Page{}), false)
	run := journal.ByRun{Session: "s", RootRunID: "r", After: 2}
	wantSequences(t, "run", mustRead(t, j, run, journal.Page{Limit: 2}), true, 5, 7)
	run.After = 3
	wantSequences(t, "rest of the run", mustRead(t, j, run, journal.Page{Limit: 2}), false, 7, 9)
	run.After = 5
	wantSequences(t, "end of the run", mustRead(t, j, run, journal.Page{}), false)
	wantSequences(t, "no such run", mustRead(t, j, journal.ByRun{Session: "s", RootRunID: "x"}, journal.Page{}), false)
	workflow := journal.ByWorkflow{Session: "s", WorkflowID: "w", After: 1}
	wantSequences(t, "workflow", mustRead(t, j, workflow, journal.Page{}), false, 4, 6, 8, 10)
	seed := j.Identity().FirstEvent
	wantSequences(t, "by event", mustRead(t, j, journal.ByEvent{After: seed + 1}, journal.Page{}), false, 4, 6, 8, 10)
	wantSequences(t, "inside of a fact's events", mustRead(t, j, journal.ByEvent{After: seed + 2}, journal.Page{Limit: 1}), true, 4)
	wantSequences(t, "by event, before the seed", mustRead(t, j, journal.ByEvent{}, journal.Page{Limit: 1}), true, 2)
	wantSequences(t, "by offset", mustRead(t, j, journal.ByOffset{After: 8}, journal.Page{}), false, 9, 10)
	for _, order := range []journal.Order{
		journal.BySession{Session: "none"}, journal.ByRun{Session: "none", RootRunID: "r"},
		journal.ByWorkflow{Session: "none", WorkflowID: "w"}, journal.ByLog{Session: "none", LogRun: "r"},
	} {
		_, err := j.Read(context.Background(), order, journal.Page{})
		wantError(t, fmt.Sprintf("%+v", order), err, journal.ErrNotFound)
	}
}

// testPagesAreKept: a page of any size is the caller's for good, whatever is read behind it.
func testPagesAreKept(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	for i := range 40 {
		mustAppend(t, j, s.Batch(s.Fact(Place{Size: 1 + 7*i*i}), s.Fact(Place{Size: 80_000 * (i % 2)})))
	}
	var want []string
	var pages []journal.Chunk
	for limit := range 8 {
		for after := uint64(0); after < 80; after += 9 {
			chunk := mustRead(t, j, journal.BySession{Session: "s", After: after}, journal.Page{Limit: limit})
			pages = append(pages, chunk)
			for _, r := range chunk.Records {
				want = append(want, string(r.Bytes))
			}
		}
	}
	at := 0
	for _, page := range pages {
		for i, r := range page.Records {
			if string(r.Bytes) != want[at] {
				t.Fatalf("record %d of a page has changed: got %.40q, want %.40q", i, r.Bytes, want[at])
			}
			if r.Bytes = append(r.Bytes, '!'); i+1 < len(page.Records) && string(page.Records[i+1].Bytes) != want[at+1] {
				t.Fatalf("what was added to record %d stands in the next one", i)
			}
			at++
		}
	}
}

// testScan: a scan visits what Read gives, once each, and reports the same end.
func testScan(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	for range 9 {
		mustAppend(t, j, s.Batch(s.Fact(Place{Run: "r", Size: 100}), s.Fact(Place{Size: 30})))
	}
	for _, order := range []journal.Order{
		journal.BySession{Session: "s", After: 3}, journal.ByRun{Session: "s", RootRunID: "r"}, journal.ByOffset{}, journal.BySession{Session: "s", After: 99},
	} {
		for limit := range 20 {
			page := journal.Page{Limit: limit, Bytes: 400 + 100*limit}
			want := mustRead(t, j, order, page)
			var got []string
			more, err := j.Scan(context.Background(), order, page, func(r *journal.Record) { got = append(got, describe(*r)) })
			if err != nil || more != want.More || len(got) != len(want.Records) {
				t.Fatalf("%+v, %+v: got %d records, more %t, error %v; want %d, %t", order, page, len(got), more, err, len(want.Records), want.More)
			}
			for i, r := range want.Records {
				if got[i] != describe(r) {
					t.Fatalf("%+v, %+v: got\n%s\nas record %d, want\n%s", order, page, got[i], i, describe(r))
				}
			}
		}
	}
	_, err := j.Scan(context.Background(), journal.BySession{Session: "none"}, journal.Page{}, func(*journal.Record) { t.Error("a record was visited") })
	wantError(t, "scan of no session", err, journal.ErrNotFound)
}

// testAlternatingRuns has runs and workflows take turns, which the state
// machine does not allow at the top level and the journal serves all the same.
func testAlternatingRuns(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	model, probes := modelOf(j), &Probes{}
	s := NewStory("s")
	for i := range 60 {
		run := fmt.Sprintf("r%d", i%3)
		batch := s.Batch(
			s.Fact(Place{Run: run, Workflow: fmt.Sprintf("w%d", i%2), Log: run, Logs: uint32(1 + i%2)}),
			s.Fact(Place{Log: "withdrawn", Logs: 1}),
			s.Fact(Place{}),
		)
		appendBoth(t, j, model, probes, batch)
	}
	compareText(t, "alternating runs", Everything(j, probes), Everything(model, probes))
}

func appendBoth(t testing.TB, j journal.Appender, model *Model, probes *Probes, batch journal.Batch) {
	t.Helper()
	probes.Add(batch)
	got := mustAppend(t, j, batch)
	want, err := model.Append(batch)
	if err != nil {
		t.Fatalf("model refuses %+v: %v", batch, err)
	}
	got.UpTo = want.UpTo
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("receipt of %+v: got %+v, want %+v", batch, got, want)
	}
}

// testLongRuns reads inside of runs of more facts than any engine's marks are
// apart, with many session facts between and behind them.
func testLongRuns(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	for run := range 2 {
		id := fmt.Sprintf("r%d", run)
		for range 7 {
			facts := make([]journal.Fact, 0, 200)
			for range 100 {
				facts = append(facts, s.Fact(Place{Run: id, Log: id, Logs: 1}), s.Fact(Place{}))
			}
			mustAppend(t, j, s.Batch(facts...))
		}
		mustAppend(t, j, s.Batch(s.Facts(500)...))
	}
	for run := range 2 {
		base := uint64(run) * 1_900
		for _, after := range []uint64{0, 1, 99, 100, 255, 256, 257, 511, 512, 513, 698, 699} {
			order := journal.ByRun{Session: "s", RootRunID: fmt.Sprintf("r%d", run), After: after}
			chunk := mustRead(t, j, order, journal.Page{Limit: 1})
			wantSequences(t, fmt.Sprintf("%+v", order), chunk, after < 699, base+2*after+1)
			log := journal.ByLog{Session: "s", LogRun: order.RootRunID, After: after}
			wantSequences(t, fmt.Sprintf("%+v", log), mustRead(t, j, log, journal.Page{Limit: 1}), after < 699, base+2*after+1)
		}
		all := mustRead(t, j, journal.ByRun{Session: "s", RootRunID: fmt.Sprintf("r%d", run)}, journal.Page{})
		if len(all.Records) != 700 || all.More {
			t.Errorf("run %d: %d records, more %t; want 700", run, len(all.Records), all.More)
		}
	}
}

func testLogs(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Fact(Place{Log: "l", Logs: 3}), s.Fact(Place{})))
	mustAppend(t, j, s.Batch(s.Fact(Place{Log: "l", Logs: 2})))
	log := func(after uint64) journal.Order { return journal.ByLog{Session: "s", LogRun: "l", After: after} }
	wantSequences(t, "from the start", mustRead(t, j, log(0), journal.Page{}), false, 1, 3)
	wantSequences(t, "inside of a fact", mustRead(t, j, log(2), journal.Page{}), false, 1, 3)
	wantSequences(t, "after a fact", mustRead(t, j, log(3), journal.Page{}), false, 3)
	wantSequences(t, "at the end", mustRead(t, j, log(5), journal.Page{}), false)
	if first := mustRead(t, j, log(3), journal.Page{}).Records[0].FirstLog; first != 4 {
		t.Errorf("first log number of the second fact: %d, want 4", first)
	}
}

func testFind(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	facts := s.Facts(3)
	mustAppend(t, j, s.Batch(facts...))
	for i, fact := range facts {
		record, err := j.Find(ctx, "s", fact.EventID)
		if err != nil || record.Sequence != uint64(i)+1 || string(record.Bytes) != string(fact.Bytes) {
			t.Errorf("find %q: got %+v, %v", fact.EventID, record, err)
		}
	}
	for _, id := range []string{"2.other", "4.00000000", "0.x", "2", "", "x", facts[1].EventID + "0", "99999999999999999999.x"} {
		_, err := j.Find(ctx, "s", id)
		wantError(t, fmt.Sprintf("find %q", id), err, journal.ErrNotFound)
	}
	_, err := j.Find(ctx, "none", facts[0].EventID)
	wantError(t, "find in no session", err, journal.ErrNotFound)
}
