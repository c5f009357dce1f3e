package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// blockSessions is enough for each list to fill several blocks.
const blockSessions = 400

// blockStore makes a store whose rows lie in the blocks of tables.
func blockStore(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := openDir(t, dir)
	for i := range blockSessions {
		s := journaltest.NewStory(blockSession(i))
		batch := s.Batch(s.Facts(1)...)
		value := bytes.Repeat([]byte(s.Session), 30)
		for _, row := range []journal.Row{
			journal.SessionRow{Session: s.Session, Value: value},
			journal.OpenWorkRow{Session: s.Session, Value: value},
			journal.InterruptRow{ID: "i" + s.Session, Session: s.Session, Sequence: 1, Open: true, Value: value},
			journal.TimerRow{ID: "t", Session: s.Session, Due: journaltest.Start.Add(time.Duration(i) * time.Second), Value: value},
			journal.LeaseRow{Executor: "e" + s.Session, Value: value},
			journal.TokenRow{Executor: "e", ID: "t" + s.Session, Session: s.Session, Value: value},
			journal.AgentRow{ID: "a" + s.Session, Value: value},
			journal.MaterialRow{Session: s.Session, Space: "m", ID: "m" + s.Session, Value: value},
			journal.DecisionRow{ID: "x" + s.Session, Session: s.Session, Value: value},
			journal.WorkflowRow{ID: "w" + s.Session, Session: s.Session, First: 1, State: "running", Value: value},
		} {
			batch.Changes = append(batch.Changes, journal.Put{Row: row})
		}
		if _, err := j.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyStore(t *testing.T, store string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func blockSession(i int) string { return fmt.Sprintf("s%03d", i) }

func openDir(t *testing.T, dir string) *Journal {
	t.Helper()
	free := func() (uint64, error) { return math.MaxUint64, nil }
	j, err := Open(dir, Options{Options: journal.Options{Free: free}})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// flipBlocks changes a byte of the block that holds a key, for each key. The store is closed.
func flipBlocks(t *testing.T, dir string, keys ...[]byte) {
	t.Helper()
	var places []int64
	for _, key := range keys {
		places = append(places, blockOf(t, dir, key))
	}
	for _, at := range places {
		flipByte(t, tables(t, dir)[0], at)
	}
}

// blockOf is a place in the block that holds a key, in the only table.
func blockOf(t *testing.T, dir string, key []byte) int64 {
	t.Helper()
	paths := tables(t, dir)
	table := openTable(t, paths[0])
	defer func() { _ = table.Close() }()
	end, err := table.EstimateDiskUsage(nil, key, sstable.ReadEnv{})
	if err != nil || end == 0 || len(paths) > 1 {
		t.Fatalf("key %q ends at %d, %v, in tables %v", key, end, err, paths)
	}
	return int64(end) - 20
}

func tables(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("tables: %v, %v; want some", paths, err)
	}
	return paths
}

func openTable(t *testing.T, path string) *sstable.Reader {
	t.Helper()
	file, err := vfs.Default.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		t.Fatal(err)
	}
	options := (&Journal{log: &quietLogger{}}).tuning()
	options.EnsureDefaults()
	table, err := sstable.NewReader(context.Background(), readable, options.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func flipByte(t *testing.T, path string, at int64) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += int64(len(content))
	}
	content[at] ^= 0xff
	if err := os.WriteFile(path, content, fileMode); err != nil {
		t.Fatal(err)
	}
}

// blockList is a list of blockStore with the key of its row of a session.
type blockList struct {
	list journal.List
	key  func(i int) []byte
	// named says that what is lost is known by its session, told that nothing is.
	named, told bool
}

var blockLists = map[string]blockList{
	"sessions":     {journal.Sessions{}, func(i int) []byte { return keyOf(tagCatalogue, uint64(i+1)) }, true, false},
	"newest first": {journal.Sessions{NewestFirst: true}, func(i int) []byte { return keyOf(tagCatalogue, uint64(i+1)) }, true, false},
	"open work":    {journal.OpenWork{}, func(i int) []byte { return keyOf(tagOpenWork, uint64(i+1)) }, true, false},
	"materials":    {journal.Materials{}, func(i int) []byte { return append(keyOf(tagMaterial, uint64(i+1)), "m\x00m"+blockSession(i)...) }, true, false},
	"interrupts":   {journal.OpenInterrupts{}, func(i int) []byte { return append(keyOf(tagOpen, uint64(i+1)), "i"+blockSession(i)...) }, true, true},
	"interrupts of one": {journal.OpenInterrupts{Session: blockSession(200)}, func(int) []byte {
		return append(keyOf(tagOpenOf, 201, 201), "i"+blockSession(200)...)
	}, true, true},
	"timers": {journal.TimersDue{Until: journaltest.Start.Add(time.Hour)}, func(i int) []byte {
		return dueKey(journaltest.Start.Add(time.Duration(i)*time.Second), uint64(i+1), "t")
	}, true, true},
	"interrupt rows": {journal.OpenInterrupts{}, func(i int) []byte { return textKey(tagInterrupt, "i"+blockSession(i)) }, true, false},
	"timer rows":     {journal.TimersDue{Until: journaltest.Start.Add(time.Hour)}, func(i int) []byte { return append(keyOf(tagTimer, uint64(i+1)), "t"...) }, true, false},
	"leases":         {journal.Leases{}, func(i int) []byte { return textKey(tagLease, "e"+blockSession(i)) }, false, false},
	"tokens":         {journal.Tokens{Executor: "e"}, func(i int) []byte { return textKey(tagToken, "e\x00t"+blockSession(i)) }, false, false},
	"decisions":      {journal.Decisions{}, func(i int) []byte { return textKey(tagDecision, "\x00x"+blockSession(i)) }, false, false},
	"workflows":      {journal.Workflows{}, func(i int) []byte { return textKey(tagWorkflow, "w"+blockSession(i)) }, false, false},
	"agents":         {journal.Agents{}, func(i int) []byte { return textKey(tagAgent, "a"+blockSession(i)) }, false, false},
}

// pages reads a list to its end. No page may be larger than the limit.
func pages(t *testing.T, j *Journal, list journal.List, limit int) (all journal.Rows) {
	t.Helper()
	page := journal.RowPage{Limit: limit}
	for range 3 * blockSessions {
		got, err := j.Rows(context.Background(), list, page)
		if err != nil {
			t.Fatalf("%T: %v", list, err)
		}
		if n := len(got.Rows) + len(got.Damaged); n > limit || n == 0 {
			t.Fatalf("%T: a page of %d has %d", list, limit, n)
		}
		all.Rows, all.Damaged = append(all.Rows, got.Rows...), append(all.Damaged, got.Damaged...)
		if page.Cursor = got.Next; page.Cursor == "" {
			return all
		}
	}
	t.Fatalf("%T does not end", list)
	return all
}

// A block of a table that cannot be read costs no row of a list that stands in another, and
// the sessions in it are named, where the list or another place can tell.
func TestUnreadableBlockCostsNoOtherRow(t *testing.T) {
	store := blockStore(t)
	for name, l := range blockLists {
		t.Run(name, func(t *testing.T) {
			dir := copyStore(t, store)
			flipBlocks(t, dir, l.key(100), l.key(200), l.key(255))
			j := openDir(t, dir)
			for _, limit := range []int{1, 7, 1000} {
				checkBlocks(t, j, l, limit)
			}
			report, err := j.Verify(context.Background(), journal.VerifyOptions{MaxProblems: 10_000})
			if err != nil || report.OK() || report.Facts != blockSessions || report.Sessions != blockSessions {
				t.Errorf("verify: %v, %d facts, %d problems; want problems, and all facts", err, report.Facts, report.ProblemCount)
			}
		})
	}
}

func checkBlocks(t *testing.T, j *Journal, l blockList, limit int) {
	t.Helper()
	all := pages(t, j, l.list, limit)
	if l.list == (journal.OpenInterrupts{Session: blockSession(200)}) {
		if len(all.Rows) != 1 || len(all.Damaged) != 0 {
			t.Errorf("got %d rows, damaged %+v; want one", len(all.Rows), all.Damaged)
		}
		return
	}
	seen := map[string]bool{}
	for _, row := range all.Rows {
		if seen[row.Key().String()] {
			t.Errorf("%s came twice", row.Key())
		}
		seen[row.Key().String()] = true
	}
	lost := map[string]bool{}
	for _, d := range all.Damaged {
		if l.named && (d.Session == "" || lost[d.Session]) {
			t.Errorf("got %+v, want it to name a session, once", d)
		}
		lost[d.Session] = true
	}
	few := blockSessions / 3
	switch {
	case l.told:
		if len(all.Rows) != blockSessions || len(all.Damaged) != 0 {
			t.Errorf("%d rows, %d damaged; want all", len(all.Rows), len(all.Damaged))
		}
	case l.named:
		if n := len(all.Damaged); n == 0 || n > few || len(all.Rows)+n < blockSessions || !lost[blockSession(200)] || !lost[blockSession(100)] {
			t.Errorf("%d rows, %d damaged %v; want all, few damaged, and 100 and 200 among them", len(all.Rows), n, lost)
		}
	case l.list == journal.Workflows{}: // backwards, what is between two holes is taken for one of them
		if n := len(all.Damaged); n == 0 || n > 3 || len(all.Rows) < blockSessions/2 {
			t.Errorf("%d rows, %d damaged; want those before and behind the damage", len(all.Rows), n)
		}
	default:
		if n := len(all.Damaged); n == 0 || n > 3 || len(all.Rows) < blockSessions-few {
			t.Errorf("%d rows, %d damaged; want most, and some damage", len(all.Rows), n)
		}
	}
}

// Wherever in a table bytes are flipped: the store opens, takes writes, tells of every session
// that its list can tell of, and what it does not give is an error that names the session.
func TestAnyUnreadableBlock(t *testing.T) {
	store := blockStore(t)
	table := openTable(t, tables(t, store)[0])
	layout, err := table.Layout()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	places := map[string]int64{"filter": int64(layout.Filter[0].Offset) + 10}
	for i, block := range layout.Data {
		if i%20 == 5 {
			places[fmt.Sprintf("data %d of %d", i, len(layout.Data))] = int64(block.Offset + block.Length/2)
		}
	}
	// By what the block begins with: rows so small that those of all sessions are in it.
	for name, key := range map[string][]byte{
		"identity": keyOf(tagStore), "names": textKey(tagSession, blockSession(200)), "sids": keyOf(tagSid, blockSessions),
		"groups": keyOf(tagGroup, blockSessions), "current spans": keyOf(tagCurrent, 200),
	} {
		places[name] = blockOf(t, store, key)
	}
	for name, at := range places {
		t.Run(name, func(t *testing.T) {
			dir := copyStore(t, store)
			flipByte(t, tables(t, dir)[0], at)
			j := openDir(t, dir)
			tried, whole := 0, 0
			for i := 0; i < blockSessions; i += 5 {
				tried++
				s := journaltest.NewStory(blockSession(i))
				head, err := j.Head(context.Background(), s.Session)
				if err == nil && head.Sequence == 1 {
					_, err = j.Read(context.Background(), journal.BySession{Session: s.Session}, journal.Page{})
				}
				if err == nil {
					s.Head = 1
					batch := s.Batch(s.Facts(1)...)
					batch.Changes = []journal.Change{
						journal.Put{Row: journal.SessionRow{Session: s.Session}},
						journal.Put{Row: journal.InterruptRow{ID: "i" + s.Session, Session: s.Session, Sequence: 2, Open: true}},
						journal.Put{Row: journal.TimerRow{ID: "t", Session: s.Session, Due: journaltest.Start}},
					}
					_, err = j.Append(context.Background(), batch)
				}
				var damage *journal.DamagedError
				switch {
				case err == nil:
					whole++
				case !errors.As(err, &damage) || damage.Session != s.Session:
					t.Errorf("%s: got %v, want it named", s.Session, err)

				}
			}
			if want := tried * 2 / 3; name != "names" && whole < want || whole == 0 {
				t.Errorf("%d of %d sessions are whole, want %d", whole, tried, want)
			}
			for _, l := range blockLists {
				if l.list != (journal.OpenInterrupts{Session: blockSession(200)}) {
					pages(t, j, l.list, 100)
				}
			}
			report, err := j.Verify(context.Background(), journal.VerifyOptions{})
			if err != nil || report.OK() && name != "filter" {
				t.Errorf("verify: %v, %+v; want problems", err, report)
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A table that cannot be read stops no writer, is told once, and what is written over it is
// read again.
func TestUnreadableBlockStopsNoWriter(t *testing.T) {
	dir := copyStore(t, blockStore(t))
	flipBlocks(t, dir, keyOf(tagCatalogue, 200))
	log := &lines{}
	free := func() (uint64, error) { return math.MaxUint64, nil }
	j, err := Open(dir, Options{Options: journal.Options{Free: free, Logger: slog.New(slog.NewTextHandler(log, nil))}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	s := journaltest.NewStory(blockSession(199))
	s.Head = 1
	for round := range 3 {
		batch := s.Batch(s.Facts(1)...)
		batch.Changes = []journal.Change{journal.Put{Row: journal.SessionRow{Session: s.Session, State: fmt.Sprint(round)}}}
		if _, err := j.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false); err == nil {
		t.Fatal("the damaged table was merged with others: the test damages nothing")
	}
	row, err := journal.Get[journal.SessionRow](context.Background(), j, journal.SessionKey(s.Session))
	if err != nil || row.State != "2" || j.Err() != nil {
		t.Errorf("got %+v, %v; store: %v; want what was written over the damage", row, err, j.Err())
	}
	all := pages(t, j, journal.Sessions{}, 1000)
	if n := len(all.Damaged); n == 0 || len(all.Rows)+n != blockSessions || slices.ContainsFunc(all.Damaged, func(d journal.Damage) bool { return d.Session == s.Session }) {
		t.Errorf("%d rows, damaged %+v; want all, and %s whole", len(all.Rows), all.Damaged, s.Session)
	}
	for _, text := range []string{"keeps tables from being merged", "see mahati verify"} {
		if n := log.count(text); n != 1 {
			t.Errorf("log says %d times %q, want once:\n%s", n, text, log.text.String())
		}
	}
}

// Pebble would try to merge a table that is damaged again and again, without a pause.
func TestMergeOfDamageRests(t *testing.T) {
	dir := t.TempDir()
	j := openDir(t, dir)
	rows := func(write func(key []byte) error) {
		for i := range uint64(4 * blockSessions) {
			if err := write(keyOf(tagOpenWork, i+1)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	rows(func(key []byte) error { return j.db.Set(key, bytes.Repeat(key, 4), lsm.NoSync) })
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	flipBlocks(t, dir, keyOf(tagOpenWork, 700))
	j = openDir(t, dir)
	failed := func() int64 { return j.db.Metrics().Compact.FailedCount }
	for limit := time.Now().Add(30 * time.Second); failed() == 0; {
		rows(func(key []byte) error { return j.db.Delete(key, lsm.NoSync) })
		if time.Now().After(limit) {
			t.Fatal("no merge has failed: the test damages nothing")
		}
	}
	for range 30 {
		rows(func(key []byte) error { return j.db.Delete(key, lsm.NoSync) })
	}
	if n := failed(); n > 2 {
		t.Errorf("%d merges have failed, want no more than 2 in half a minute", n)
	}
}

// lines is a log that background work may write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}
