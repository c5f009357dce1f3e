package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

const testDir = "/home/journal"

func openTest(t testing.TB, files vfs.FS, options journal.Options) *Journal {
	t.Helper()
	if options.Free == nil {
		options.Free = func() (uint64, error) { return math.MaxUint64, nil }
	}
	j, err := Open(testDir, Options{Options: options, FS: files})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// fill writes four batches to each of three sessions, in turn, and closes. The
// sids are 1, 2 and 3.
func fill(t *testing.T, files vfs.FS) {
	t.Helper()
	j := openTest(t, files, journal.Options{})
	var stories []*journaltest.Story
	for _, session := range []string{"a", "b", "c"} {
		stories = append(stories, journaltest.NewStory(session))
	}
	for n := range 4 {
		for _, s := range stories {
			batch := s.Batch(s.Fact(journaltest.Place{Events: 1, Run: "run", Log: "run", Logs: 1, Size: 700}), s.Fact(journaltest.Place{Events: 1}))
			if n == 1 {
				batch.Changes = []journal.Change{
					journal.Put{Row: journal.SessionRow{Session: s.Session}},
					journal.Put{Row: journal.InterruptRow{ID: "i" + s.Session, Session: s.Session, Sequence: 3, Open: true}},
					journal.Put{Row: journal.TimerRow{ID: "t", Session: s.Session, Due: journaltest.Start}},
				}
			}
			if _, err := j.Append(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// tamper changes the database behind the engine's back.
func tamper(t *testing.T, files vfs.FS, change func(db *lsm.DB)) {
	t.Helper()
	j := &Journal{options: Options{FS: files}, log: &quietLogger{log: journal.Options{}.WithDefaults().Logger}}
	db, err := lsm.Open(testDir, j.tuning())
	if err != nil {
		t.Fatal(err)
	}
	change(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, db *lsm.DB, key []byte) []byte {
	t.Helper()
	value, closer, err := db.Get(key)
	if err != nil {
		t.Fatalf("key %q: %v", key, err)
	}
	defer func() { _ = closer.Close() }()
	return bytes.Clone(value)
}

func set(t *testing.T, db *lsm.DB, key, value []byte) {
	t.Helper()
	var err error
	if value == nil {
		err = db.Delete(key, lsm.Sync)
	} else {
		err = db.Set(key, value, lsm.Sync)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedBatchCostsItsSession(t *testing.T) {
	flip := func(t *testing.T, db *lsm.DB) {
		value := get(t, db, batchKey(2, 3))
		value[len(value)/2] ^= 1
		set(t, db, batchKey(2, 3), value)
	}
	tests := map[string]func(*testing.T, *lsm.DB){
		"a bit flipped":        flip,
		"cut short":            func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(2, 3), []byte{1}) },
		"missing":              func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(2, 3), nil) },
		"another session's":    func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(2, 3), get(t, db, batchKey(3, 3))) },
		"another of the same":  func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(2, 3), get(t, db, batchKey(2, 1))) },
		"of an unknown format": func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(2, 3), withChecksum([]byte{99, 1, 1})) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			files := vfs.NewMem()
			fill(t, files)
			tamper(t, files, func(db *lsm.DB) { damage(t, db) })
			checkDamaged(t, openTest(t, files, journal.Options{}))
		})
	}
}

// checkDamaged expects session b to be damaged at sequence 3 and all else well.
func checkDamaged(t *testing.T, j *Journal) {
	t.Helper()
	ctx := context.Background()
	for _, session := range []string{"a", "c"} {
		chunk, err := j.Read(ctx, journal.BySession{Session: session}, journal.Page{})
		if err != nil || len(chunk.Records) != 8 {
			t.Errorf("session %s: %d records, %v; want 8", session, len(chunk.Records), err)
		}
	}
	chunk, err := j.Read(ctx, journal.BySession{Session: "b"}, journal.Page{})
	if err != nil || len(chunk.Records) != 2 || !chunk.More {
		t.Errorf("b before the damage: %d records, more %t, %v; want 2 and more", len(chunk.Records), chunk.More, err)
	}
	for _, order := range []journal.Order{
		journal.BySession{Session: "b", After: 2}, journal.BySession{Session: "b", After: 3},
		journal.ByRun{Session: "b", RootRunID: "run", After: 1},
	} {
		_, err := j.Read(ctx, order, journal.Page{})
		wantDamage(t, err)
	}
	rest, err := j.Read(ctx, journal.BySession{Session: "b", After: 4}, journal.Page{})
	if err != nil || len(rest.Records) != 4 {
		t.Errorf("b behind the damage: %d records, %v; want 4", len(rest.Records), err)
	}
	if got := readSession(t, j, "b"); !slices.Equal(got, []uint64{1, 2, 5, 6, 7, 8}) {
		t.Errorf("b around the damage: %v, want all but 3 and 4", got)
	}
	for name, order := range map[string]func(journal.Mark) journal.Order{
		"offset": func(m journal.Mark) journal.Order { return journal.ByOffset{After: m.Offset} },
		"event":  func(m journal.Mark) journal.Order { return journal.ByEvent{After: m.Event} },
	} {
		if got := readAround(t, j, order); got != 22 {
			t.Errorf("by %s, around the damage: %d records, want 22", name, got)
		}
	}
	other := journaltest.NewStory("a")
	other.Head = 8
	if _, err := j.Append(ctx, other.Batch(other.Facts(1)...)); err != nil {
		t.Errorf("append to a whole session: %v", err)
	}
	report, err := j.Verify(ctx, journal.VerifyOptions{})
	if err != nil || report.OK() || report.Facts != 23 {
		t.Fatalf("verify: %v, %+v; want problems, and 23 facts", err, report)
	}
	for _, p := range report.Problems {
		if p.Session != "b" || p.Sequence != 3 && p.Sequence != 5 {
			t.Errorf("problem %+v, want only session b at 3", p)
		}
	}
}

func wantDamage(t *testing.T, err error) *journal.DamagedError {
	t.Helper()
	var damage *journal.DamagedError
	if !errors.As(err, &damage) || damage.Session != "b" || damage.Sequence != 3 {
		t.Errorf("got %v, want session b damaged at 3", err)
		return &journal.DamagedError{}
	}
	return damage
}

// readAround reads the order of the store, going on where the damage says.
func readAround(t *testing.T, j *Journal, order func(journal.Mark) journal.Order) (records int) {
	t.Helper()
	var after journal.Mark
	for range 100 {
		chunk, err := j.Read(context.Background(), order(after), journal.Page{Limit: 5})
		if err != nil {
			damage := wantDamage(t, err)
			after = journal.Mark{Offset: damage.ResumeOffset, Event: damage.ResumeEvent}
			if after.Offset == 0 {
				return records
			}
			continue
		}
		records += len(chunk.Records)
		for _, r := range chunk.Records {
			after = journal.Mark{Offset: r.Offset, Event: r.FirstEvent}
		}
		if !chunk.More {
			return records
		}
	}
	return records
}

// readSession reads a session, going on where the damage says.
func readSession(t *testing.T, j *Journal, session string) (sequences []uint64) {
	t.Helper()
	after := uint64(0)
	for range 100 {
		chunk, err := j.Read(context.Background(), journal.BySession{Session: session, After: after}, journal.Page{Limit: 3})
		var damage *journal.DamagedError
		switch {
		case errors.As(err, &damage) && damage.ResumeSequence > after:
			after = damage.ResumeSequence
			continue
		case errors.As(err, &damage) && damage.ResumeSequence == 0:
			return sequences
		case err != nil:
			t.Fatalf("behind %d: %v (go on behind %d)", after, err, damage.ResumeSequence)
		}
		for _, r := range chunk.Records {
			after = r.Sequence
			sequences = append(sequences, after)
		}
		if !chunk.More {
			return sequences
		}
	}
	t.Fatalf("reading does not end: %v", sequences)
	return nil
}

// TestMissingIsNotSkipped takes away what a reader could pass without a sign:
// the first batch of a session, and a commit group.
func TestMissingIsNotSkipped(t *testing.T) {
	files := vfs.NewMem()
	fill(t, files)
	tamper(t, files, func(db *lsm.DB) {
		set(t, db, batchKey(1, 1), nil)
		set(t, db, keyOf(tagGroup, 9), nil)
		set(t, db, keyOf(tagGroup, 15), []byte("torn"))
	})
	j := openTest(t, files, journal.Options{})
	var damage *journal.DamagedError
	_, err := j.Read(context.Background(), journal.BySession{Session: "a"}, journal.Page{})
	if !errors.As(err, &damage) || damage.Session != "a" || damage.Sequence != 1 {
		t.Errorf("session without its first batch: got %v, want it damaged at 1", err)
	}
	if got := readSession(t, j, "a"); !slices.Equal(got, []uint64{3, 4, 5, 6, 7, 8}) {
		t.Errorf("session without its first batch: read %v, want what is behind it", got)
	}
	for at, resume := range map[uint64]uint64{8: 10, 14: 16} {
		_, err = j.Read(context.Background(), journal.ByOffset{After: at}, journal.Page{})
		if !errors.As(err, &damage) || damage.ResumeOffset != resume {
			t.Errorf("after offset %d: got %+v, want damage until %d", at, err, resume)
		}
		chunk, err := j.Read(context.Background(), journal.ByOffset{After: resume}, journal.Page{Limit: 1})
		if err != nil || len(chunk.Records) != 1 || chunk.Records[0].Offset != resume+1 {
			t.Errorf("after the damage, from %d: got %+v, %v", resume, chunk, err)
		}
	}
}

func TestDamagedTailRefusesAppends(t *testing.T) {
	files := vfs.NewMem()
	fill(t, files)
	tamper(t, files, func(db *lsm.DB) { set(t, db, batchKey(2, 7), []byte("nothing")) })
	j := openTest(t, files, journal.Options{})
	if got := readSession(t, j, "b"); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("before a damaged end: read %v, want all", got)
	}
	s := journaltest.NewStory("b")
	s.Head = 8
	_, err := j.Append(context.Background(), s.Batch(s.Facts(1)...))
	if !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("append behind damage: got %v, want %v", err, journal.ErrDamaged)
	}
}

func TestVerifyFinds(t *testing.T) {
	mark := markKey(2, span{spanRun, "run"}, 1)
	tests := map[string]struct {
		code   journal.ProblemCode
		change func(*testing.T, *lsm.DB)
	}{
		"a mark that is missing":   {journal.ProblemInterval, func(t *testing.T, db *lsm.DB) { set(t, db, mark, nil) }},
		"a mark that leads astray": {journal.ProblemInterval, func(t *testing.T, db *lsm.DB) { set(t, db, mark, markValue(5)) }},
		"a mark too many":          {journal.ProblemInterval, func(t *testing.T, db *lsm.DB) { set(t, db, markKey(2, span{spanLog, "x"}, 1), markValue(1)) }},
		"marks of no session":      {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, markKey(9, span{spanLog, "x"}, 1), markValue(1)) }},
		"a batch of no session":    {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, batchKey(9, 1), get(t, db, batchKey(2, 1))) }},
		"a group that is missing":  {journal.ProblemGap, func(t *testing.T, db *lsm.DB) { set(t, db, keyOf(tagGroup, 3), nil) }},
		"a group that is damaged":  {journal.ProblemDamaged, func(t *testing.T, db *lsm.DB) { set(t, db, keyOf(tagGroup, 3), []byte("x")) }},
		"an event of no group":     {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, keyOf(tagEvent, 5), markValue(1)) }},
		"a list that misses a row": {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, append(keyOf(tagOpen, 9), "ib"...), nil) }},
		"a list entry of no row":   {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, append(keyOf(tagOpen, 99), "ix"...), []byte{}) }},
		"a timer in two places":    {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) { set(t, db, dueKey(journaltest.Start.Add(1e9), 2, "t"), []byte{}) }},
		"a row that is unreadable": {journal.ProblemRow, func(t *testing.T, db *lsm.DB) { set(t, db, keyOf(tagCatalogue, 2), []byte{200}) }},
		"a row under another key": {journal.ProblemRow, func(t *testing.T, db *lsm.DB) {
			set(t, db, textKey(tagRun, "r"), journal.EncodeRow(journal.RunRow{ID: "q", Session: "b"}))
		}},
		"a row of no session": {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) {
			set(t, db, textKey(tagRun, "r"), journal.EncodeRow(journal.RunRow{ID: "r", Session: "none"}))
		}},
		"a row of a later fact": {journal.ProblemDangling, func(t *testing.T, db *lsm.DB) {
			set(t, db, textKey(tagRun, "r"), journal.EncodeRow(journal.RunRow{ID: "r", Session: "b", First: 9}))
		}},
		"a session under two names": {journal.ProblemOrder, func(t *testing.T, db *lsm.DB) { set(t, db, textKey(tagSession, "again"), encodeStream(2, streamLive)) }},
		"a chain that is cut": {journal.ProblemChain, func(t *testing.T, db *lsm.DB) {
			b, err := decodeBatch(get(t, db, batchKey(2, 3)))
			if err != nil {
				t.Fatal(err)
			}
			b.previous[0] ^= 1
			var facts []journal.Fact
			for _, r := range b.records {
				facts = append(facts, r.Fact)
			}
			set(t, db, batchKey(2, 3), sealed(b.batchHeader, facts))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := vfs.NewMem()
			fill(t, files)
			tamper(t, files, func(db *lsm.DB) { test.change(t, db) })
			report, err := openTest(t, files, journal.Options{}).Verify(context.Background(), journal.VerifyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Problems, func(p journal.Problem) bool { return p.Code == test.code }) {
				t.Errorf("got %+v, want a problem %q", report.Problems, test.code)
			}
		})
	}
}

// TestDamagedFiles flips bytes in the files that hold values. Whatever a reader
// then gets is right or an error; nothing panics and nobody else's read fails
// without a name.
func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	options := Options{Options: journal.Options{Free: func() (uint64, error) { return math.MaxUint64, nil }}}
	j, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for i := range 40 {
		s := journaltest.NewStory("s" + string(rune('a'+i%26)) + string(rune('a'+i/26)))
		for range 5 {
			batch := s.Batch(s.Fact(journaltest.Place{Size: 3_000}))
			if _, err := j.Append(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
			want[s.Session+"/"+batch.Facts[0].EventID] = string(batch.Facts[0].Bytes)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flipBlobs(t, dir)
	if j, err = Open(dir, options); err != nil {
		t.Fatalf("open: %v", err)
	}
	defer func() { _ = j.Close() }()
	read, lost := 0, 0
	for place, text := range want {
		session, id, _ := strings.Cut(place, "/")
		switch record, err := j.Find(context.Background(), session, id); {
		case errors.Is(err, journal.ErrDamaged):
			lost++
		case err != nil || string(record.Bytes) != text:
			t.Errorf("%s: got %q, %v", place, record.Bytes, err)
		default:
			read++
		}
	}
	if lost == 0 || read == 0 {
		t.Errorf("%d read, %d lost; want some of both", read, lost)
	}
	report, err := j.Verify(context.Background(), journal.VerifyOptions{MaxProblems: 3})
	if err != nil || report.ProblemCount < 1 || len(report.Problems) > 3 || j.Err() != nil {
		t.Errorf("verify: %v, %d problems, %d listed, store: %v", err, report.ProblemCount, len(report.Problems), j.Err())
	}
	if report, err = j.Verify(context.Background(), journal.VerifyOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		if p.Code == journal.ProblemDamaged && p.Session == "" {
			t.Errorf("damage without its session: %+v", p)
		}
	}
}

// flipBlobs flips a byte near the start of every blob file, and one in its midst.
func flipBlobs(t *testing.T, dir string) {
	t.Helper()
	flipped := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blob" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content[100] ^= 0xff
		content[len(content)/2] ^= 0xff
		flipped++
		return os.WriteFile(path, content, fileMode)
	})
	if err != nil || flipped == 0 {
		t.Fatalf("%d blob files changed, %v; want one at least", flipped, err)
	}
}

// fillLists gives sessions a, b and c, of sids 1 to 3, a row in each list.
func fillLists(t *testing.T, files vfs.FS, value []byte) {
	t.Helper()
	j := openTest(t, files, journal.Options{})
	for _, session := range []string{"a", "b", "c"} {
		s := journaltest.NewStory(session)
		batch := s.Batch(s.Facts(1)...)
		for _, row := range []journal.Row{
			journal.SessionRow{Session: session, Value: value},
			journal.OpenWorkRow{Session: session, Value: value},
			journal.InterruptRow{ID: "i" + session, Session: session, Sequence: 1, Open: true, Value: value},
			journal.TimerRow{ID: "t", Session: session, Due: journaltest.Start, Value: value},
			journal.LeaseRow{Executor: "e" + session, Value: value},
			journal.TokenRow{Executor: "e", ID: "t" + session, Session: session, Value: value},
			journal.AgentRow{ID: "a" + session, Value: value},
			journal.MaterialRow{Session: session, Space: "m", ID: "m" + session, Value: value},
			journal.DecisionRow{ID: "x" + session, Session: session, Value: value},
			journal.DecisionRow{Of: session, ID: "x" + session, Session: session, Value: value},
			journal.WorkflowRow{ID: "w" + session, Session: session, First: 1, State: "running", Value: value},
		} {
			batch.Changes = append(batch.Changes, journal.Put{Row: row})
		}
		if _, err := j.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// rowsOf are the keys of b's rows in the lists, with those of c.
func rowsOf(list journal.List) (b, c []byte) {
	named := func(tag byte, name string) []byte { return textKey(tag, name) }
	switch list := list.(type) {
	case journal.Sessions:
		return keyOf(tagCatalogue, 2), keyOf(tagCatalogue, 3)
	case journal.OpenWork:
		return keyOf(tagOpenWork, 2), keyOf(tagOpenWork, 3)
	case journal.OpenInterrupts:
		return named(tagInterrupt, "ib"), named(tagInterrupt, "ic")
	case journal.TimersDue:
		return append(keyOf(tagTimer, 2), "t"...), append(keyOf(tagTimer, 3), "t"...)
	case journal.Leases:
		return named(tagLease, "eb"), named(tagLease, "ec")
	case journal.Tokens:
		return named(tagToken, "e\x00tb"), named(tagToken, "e\x00tc")
	case journal.Agents:
		return named(tagAgent, "ab"), named(tagAgent, "ac")
	case journal.Decisions:
		return named(tagDecision, list.Session+"\x00xb"), named(tagDecision, "\x00xc")
	case journal.Workflows:
		return named(tagWorkflow, "wb"), named(tagWorkflow, "wc")
	default:
		return append(keyOf(tagMaterial, 2), "m\x00mb"...), append(keyOf(tagMaterial, 3), "m\x00mc"...)
	}
}

var everyList = []journal.List{
	journal.Sessions{}, journal.OpenWork{}, journal.OpenInterrupts{}, journal.OpenInterrupts{Session: "b"},
	journal.TimersDue{Until: journaltest.Start}, journal.Leases{}, journal.Tokens{Executor: "e"}, journal.Agents{}, journal.Materials{},
	journal.Decisions{}, journal.Decisions{Session: "b"}, journal.Workflows{}, journal.Workflows{Session: "b", State: "running"},
}

// checkList reads a list a row at a time and expects b's alone to be damaged.
func checkList(t *testing.T, j *Journal, list journal.List) []journal.Damage {
	t.Helper()
	var rows []string
	var damaged []journal.Damage
	page := journal.RowPage{Limit: 1}
	for range 10 {
		got, err := j.Rows(context.Background(), list, page)
		if err != nil {
			t.Fatalf("%T: %v", list, err)
		}
		for _, row := range got.Rows {
			rows = append(rows, row.Key().String())
		}
		damaged = append(damaged, got.Damaged...)
		if page.Cursor = got.Next; page.Cursor == "" {
			break
		}
	}
	want := 2
	switch list {
	case journal.OpenInterrupts{Session: "b"}, journal.Decisions{Session: "b"}, journal.Workflows{Session: "b", State: "running"}:
		want = 0
	}
	if len(rows) != want || len(damaged) != 1 || page.Cursor != "" {
		t.Errorf("%T: got %v, damaged %+v; want %d rows, and that of b damaged", list, rows, damaged, want)
	}
	for _, d := range damaged {
		switch d.Key.Kind {
		case journal.KindLease, journal.KindToken, journal.KindAgent, journal.KindDecision, journal.KindWorkflow:
		default:
			if d.Session != "b" {
				t.Errorf("%T: got %+v, want b damaged", list, d)
			}
		}
		if !strings.Contains(d.Key.String(), "b") {
			t.Errorf("%T: got %s, want the row of b", list, d.Key)
		}
	}
	return damaged
}

func TestDamagedRowCostsNoOther(t *testing.T) {
	tests := map[string]func(t *testing.T, db *lsm.DB, b, c []byte){
		"no row":              func(t *testing.T, db *lsm.DB, b, _ []byte) { set(t, db, b, []byte("\xffgarbage")) },
		"empty":               func(t *testing.T, db *lsm.DB, b, _ []byte) { set(t, db, b, []byte{}) },
		"cut short":           func(t *testing.T, db *lsm.DB, b, _ []byte) { v := get(t, db, b); set(t, db, b, v[:2]) },
		"another's":           func(t *testing.T, db *lsm.DB, b, c []byte) { set(t, db, b, get(t, db, c)) },
		"of another kind":     func(t *testing.T, db *lsm.DB, b, _ []byte) { set(t, db, b, journal.EncodeRow(journal.RunRow{ID: "r"})) },
		"no key in its place": func(t *testing.T, db *lsm.DB, b, _ []byte) { set(t, db, b, journal.EncodeRow(journal.RunRow{})) },
	}
	for name, damage := range tests {
		for _, list := range everyList {
			t.Run(fmt.Sprintf("%s/%T", name, list), func(t *testing.T) {
				files := vfs.NewMem()
				fillLists(t, files, nil)
				b, c := rowsOf(list)
				tamper(t, files, func(db *lsm.DB) { damage(t, db, b, c) })
				j := openTest(t, files, journal.Options{})
				damaged := checkList(t, j, list)
				report, err := j.Verify(context.Background(), journal.VerifyOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range damaged {
					found := slices.ContainsFunc(report.Problems, func(p journal.Problem) bool {
						return p.Session == d.Session && p.Row == d.Key.String()
					})
					if !found {
						t.Errorf("verify: got %+v, want %s of %q", report.Problems, d.Key, d.Session)
					}
				}
			})
		}
	}
}

// A key of a list that leads nowhere, or where it should not, costs no other either.
func TestDamagedSideKeyCostsNoOther(t *testing.T) {
	due := func(at uint64, sid uint64) []byte {
		return append(keyOf(tagDue, dueNumber(journaltest.Start)-at, sid), "t"...)
	}
	tests := map[string]struct {
		list   journal.List
		change func(t *testing.T, db *lsm.DB)
		// session and due are what the damage must tell.
		session string
		due     bool
	}{
		"open, of no row": {journal.OpenInterrupts{}, func(t *testing.T, db *lsm.DB) {
			set(t, db, append(keyOf(tagOpen, 2), "gone"...), []byte{})
		}, "b", false},
		"open, of a row that is closed": {journal.OpenInterrupts{}, func(t *testing.T, db *lsm.DB) {
			closed := journal.InterruptRow{ID: "x", Session: "b", Sequence: 1, Offset: 2}
			set(t, db, textKey(tagInterrupt, "x"), journal.EncodeRow(closed))
			set(t, db, append(keyOf(tagOpen, 2), "x"...), []byte{})
		}, "b", false},
		"open, at an offset of nobody": {journal.OpenInterrupts{}, func(t *testing.T, db *lsm.DB) {
			set(t, db, append(keyOf(tagOpen, 99), "ib"...), []byte{})
		}, "", false},
		"open, cut short": {journal.OpenInterrupts{}, func(t *testing.T, db *lsm.DB) { set(t, db, []byte("Px"), []byte{}) }, "", false},
		"open of a session, of another's": {journal.OpenInterrupts{Session: "b"}, func(t *testing.T, db *lsm.DB) {
			set(t, db, append(keyOf(tagOpenOf, 2, 1), "ia"...), []byte{})
		}, "b", false},
		"due, of no row": {journal.TimersDue{Until: journaltest.Start}, func(t *testing.T, db *lsm.DB) {
			set(t, db, append(keyOf(tagDue, dueNumber(journaltest.Start), 2), "gone"...), []byte{})
		}, "b", true},
		"due, at another time": {journal.TimersDue{Until: journaltest.Start}, func(t *testing.T, db *lsm.DB) {
			set(t, db, due(5, 2), []byte{})
		}, "b", false},
		"due, of no session": {journal.TimersDue{Until: journaltest.Start}, func(t *testing.T, db *lsm.DB) {
			set(t, db, due(0, 77), []byte{})
		}, "", false},
		"due, cut short": {journal.TimersDue{Until: journaltest.Start}, func(t *testing.T, db *lsm.DB) { set(t, db, []byte("t\x01"), []byte{}) }, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := vfs.NewMem()
			fillLists(t, files, nil)
			tamper(t, files, func(db *lsm.DB) { test.change(t, db) })
			j := openTest(t, files, journal.Options{})
			rows, err := j.Rows(context.Background(), test.list, journal.RowPage{})
			if err != nil {
				t.Fatal(err)
			}
			want := 3
			if test.list == (journal.OpenInterrupts{Session: "b"}) {
				want = 1
			}
			if len(rows.Rows) != want || len(rows.Damaged) != 1 {
				t.Fatalf("got %+v, want %d rows and one damaged", rows, want)
			}
			if d := rows.Damaged[0]; d.Session != test.session || d.Due.IsZero() == test.due {
				t.Errorf("got %+v, want session %q, due %t", d, test.session, test.due)
			}
			report, err := j.Verify(context.Background(), journal.VerifyOptions{})
			if err != nil || !slices.ContainsFunc(report.Problems, func(p journal.Problem) bool {
				return p.Code == journal.ProblemDangling && p.Session == test.session
			}) {
				t.Errorf("verify: %v, %+v; want the key found, of session %q", err, report.Problems, test.session)
			}
		})
	}
}

// Values that stand apart from their keys may be lost with a file. Of those that are, the
// lists and verify tell; the keys are all there.
func TestDamagedFilesCostNoList(t *testing.T) {
	dir := t.TempDir()
	options := Options{Options: journal.Options{Free: func() (uint64, error) { return math.MaxUint64, nil }}}
	j, err := Open(dir, options)
	if err != nil {
		t.Fatal(err)
	}
	const sessions = 30
	random := rand.New(rand.NewSource(1))
	large := func() []byte { b := make([]byte, 3_000); _, _ = random.Read(b); return b }
	for i := range sessions {
		s := journaltest.NewStory(fmt.Sprintf("s%02d", i))
		batch := s.Batch(s.Facts(1)...)
		batch.Changes = []journal.Change{
			journal.Put{Row: journal.SessionRow{Session: s.Session, Value: large()}},
			journal.Put{Row: journal.OpenWorkRow{Session: s.Session, Value: large()}},
			journal.Put{Row: journal.InterruptRow{ID: "i" + s.Session, Session: s.Session, Sequence: 1, Open: true, Value: large()}},
		}
		if _, err := j.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flipBlobs(t, dir)
	if j, err = Open(dir, options); err != nil {
		t.Fatalf("open: %v", err)
	}
	defer func() { _ = j.Close() }()
	report, err := j.Verify(context.Background(), journal.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, list := range []journal.List{journal.OpenWork{}, journal.OpenInterrupts{}, journal.Sessions{NewestFirst: true}} {
		rows, err := j.Rows(context.Background(), list, journal.RowPage{})
		if n := len(rows.Rows) + len(rows.Damaged); err != nil || n != sessions || len(rows.Rows) == 0 {
			t.Fatalf("%T: got %d rows, %d damaged, %v; want %d in all, and not all damaged", list, len(rows.Rows), len(rows.Damaged), err, sessions)
		}
		lost += len(rows.Damaged)
		for _, d := range rows.Damaged {
			if d.Session == "" || !found(report, d) {
				t.Errorf("%T: got %+v; want the session named, by verify too", list, d)
			}
		}
	}
	if lost == 0 {
		t.Error("nothing is damaged: the test damages nothing")
	}
}

// found reports whether verify names the session of a damaged row.
func found(report journal.Report, d journal.Damage) bool {
	return slices.ContainsFunc(report.Problems, func(p journal.Problem) bool { return p.Session == d.Session })
}
