package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/numbers"
)

// engine is a store whose rows can be made unreadable between two lives of a host.
type engine struct {
	open func() journal.Journal
	// damage makes every row in the lists unreadable that speaks of hurt: the session, its
	// interrupt, an executor or a process of that name. The journal is closed, if it can be
	// opened again.
	damage func(interrupt string)
	closes bool
}

func inMemory(t *testing.T) engine {
	j := memory(t, journal.Options{})
	return engine{
		open: func() journal.Journal { return j },
		damage: func(interrupt string) {
			j.(*journal.Memory).Damage(
				journal.SessionKey("hurt"), journal.OpenWorkKey("hurt"), journal.InterruptKey(interrupt),
				journal.TimerKey("hurt", index.TimerID(interrupt)), journal.LeaseKey("desk-hurt"), journal.AgentKey("boot-hurt/7/8"),
			)
		},
	}
}

// onPebble damages the bytes in the store itself.
func onPebble(t *testing.T) engine {
	files := vfs.NewMem()
	return engine{
		closes: true,
		open:   func() journal.Journal { return onMem(t, files, nil) },
		damage: func(string) {
			db, err := lsm.Open("/journal", &lsm.Options{FS: files, FormatMajorVersion: lsm.FormatValueSeparation, Logger: quiet{}})
			if err != nil {
				t.Fatal(err)
			}
			it, err := db.NewIter(nil)
			if err != nil {
				t.Fatal(err)
			}
			damaged := ""
			for valid := it.First(); valid; valid = it.Next() { // the tags of rows that stand in lists
				if key := it.Key(); bytes.IndexByte([]byte("lxiuey"), key[0]) >= 0 && bytes.Contains(it.Value(), []byte("hurt")) {
					damaged += string(key[:1])
					if err := db.Set(key, []byte("\xffgarbage"), lsm.Sync); err != nil {
						t.Fatal(err)
					}
				}
			}
			if damaged != "eiluxy" {
				t.Errorf("damaged rows of %q, want one of each", damaged)
			}
			if err := it.Close(); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		},
	}
}

func onMem(t *testing.T, files *vfs.MemFS, log *slog.Logger) journal.Journal {
	t.Helper()
	free := func() (uint64, error) { return math.MaxUint64, nil }
	j, err := pebble.Open("/journal", pebble.Options{FS: files, MemTable: 1 << 20, Options: journal.Options{Free: free, Logger: log}})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

type quiet struct{}

func (quiet) Infof(string, ...any)                   {}
func (quiet) Errorf(string, ...any)                  {}
func (quiet) Fatalf(format string, _ ...any)         { panic(format) }
func (quiet) Eventf(context.Context, string, ...any) {}
func (quiet) IsTracingEnabled(context.Context) bool  { return false }

// hurt is a host whose store has a damaged row of each kind, all of one session, with an
// open question in that and in another one.
type hurt struct {
	*stage
	log   *bytes.Buffer
	ids   map[string]string // the interrupts, by session
	ended []string          // boot ids of processes that were ended
}

// hurtHost plays what comes before: two sessions ask, the host stops, rows are damaged, and
// a host starts again.
func hurtHost(t *testing.T, e engine, resumes bool, play func(*testing.T, *hurt)) {
	h := &hurt{log: &bytes.Buffer{}, ids: map[string]string{}}
	kind := asker{h, resumes}
	h.before(t, e, kind)
	h.stage = open(t, e.open(), kind, host.Options{
		Logger: slog.New(slog.NewTextHandler(h.log, nil)),
		EndLeft: func(_ context.Context, p agent.Process) error {
			h.ended = append(h.ended, p.BootID)
			return nil
		},
	})
	synctest.Wait()
	play(t, h)
	h.leave(e)
}

// before plays until the store is damaged.
func (h *hurt) before(t *testing.T, e engine, kind agent.Kind) {
	t.Helper()
	s := open(t, e.open(), kind, host.Options{})
	for _, id := range []string{"hurt", "whole"} {
		s.create(id)
		s.say(id, "work")
		if _, err := s.host.AttachExecutor(t.Context(), access.Owner(), "desk-"+id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // hurt asks first
	}
	for _, asked := range s.inbox() {
		h.ids[asked.SessionID] = asked.InterruptID
	}
	s.leave(e)
	e.damage(h.ids["hurt"])
}

// leave closes the host, and the journal if it is opened again.
func (s *stage) leave(e engine) {
	s.t.Helper()
	s.close()
	if e.closes {
		if err := s.journal.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// asker is an agent with a process, which asks and waits for the answer.
type asker struct {
	h       *hurt
	resumes bool
}

func (a asker) Resumes() bool { return a.resumes }
func (a asker) Steers() bool  { return false }
func (a asker) Open(ctx context.Context, s agent.Session) (agent.Agent, error) {
	return inquiring{a.h}, s.Own(ctx, agent.Process{BootID: "boot-" + s.ID, PID: 7, StartTime: 8})
}

type inquiring struct{ h *hurt }

func (inquiring) Close() error                               { return nil }
func (inquiring) Steer(context.Context, agent.Message) error { return nil }
func (a inquiring) Run(ctx context.Context, h agent.Handle) agent.Ending {
	var err error
	if id, asked := a.h.ids[h.Info().SessionID]; asked {
		_, err = h.Await(ctx, id)
	} else {
		_, err = h.Ask(ctx, agent.Ask{Kind: "approval", Title: "Sure?", Actions: []string{"approve", "deny"}, ExpiresIn: time.Hour})
	}
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	return agent.Ending{StopReason: "completed"}
}

// bothEngines plays on each engine.
func bothEngines(t *testing.T, play func(*testing.T, engine)) {
	for name, engineOf := range map[string]func(*testing.T) engine{"memory": inMemory, "pebble": onPebble} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, engineOf(t)) })
		})
	}
}

// DESIGN §4: damage costs only the session that it touches, which is reported by its id.
// Here it costs not even that: what rows say, facts say too.
func TestDamagedRowsCostNoOther(t *testing.T) {
	bothEngines(t, func(t *testing.T, e engine) {
		hurtHost(t, e, true, func(t *testing.T, h *hurt) {
			h.wantLists()
			h.wantTold()
			if slices.Sort(h.ended); strings.Join(h.ended, " ") != "boot-hurt boot-whole" {
				t.Errorf("ended the processes %v, want both", h.ended)
			}
			for _, id := range []string{"whole", "hurt"} {
				if a := h.resolve(h.ids[id], "approve"); !a.Status.Accepted() {
					t.Errorf("decide in %s: %+v", id, a)
				}
			}
			synctest.Wait()
			for _, id := range []string{"whole", "hurt"} {
				if story := h.story(id); !strings.HasSuffix(story, decided) {
					t.Errorf("%s: %s, want it decided", id, story)
				}
				if a := h.say(id, "more"); !a.Status.Accepted() {
					t.Errorf("say more in %s: %+v", id, a)
				}
				if _, err := h.host.AttachExecutor(t.Context(), access.Owner(), "desk-"+id); err != nil {
					t.Errorf("executor of %s: %v", id, err)
				}
			}
			synctest.Wait() // and what was written since is whole: verify finds nothing
		})
	})
}

// wantTold expects the log to name each damaged row with its session, once.
func (h *hurt) wantTold() {
	h.t.Helper()
	pass(time.Hour - 20*time.Second) // the timers of the next half minute are looked at
	synctest.Wait()
	h.wantLists()
	rows := []string{
		`session \"hurt\"`, `open work \"hurt\"`, `timer \"hurt\"`, `interrupt \"` + h.ids["hurt"], `lease \"desk-hurt`, `agent \"boot-hurt`,
	}
	for _, row := range rows {
		lines := linesWith(h.log.String(), row)
		if len(lines) != 1 {
			h.t.Errorf("log tells %d times of %s, want once:\n%s", len(lines), row, h.log)
			continue
		}
		if !strings.Contains(row, "-hurt") && !strings.Contains(lines[0], "session=hurt") {
			h.t.Errorf("log says %s, want session=hurt", lines[0])
		}
	}
	if lines := linesWith(h.log.String(), "whole"); len(lines) != 0 {
		h.t.Errorf("log speaks of the whole session: %v", lines)
	}
}

func linesWith(text, part string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// wantLists expects both sessions in the lists, and the damaged one to be named.
func (h *hurt) wantLists() {
	h.t.Helper()
	list, lost, _, err := h.host.Sessions(h.t.Context(), access.Owner(), host.Filter{State: index.Running})
	if err != nil || len(list) != 2 || !slices.Equal(lost, []host.Lost{{SessionID: "hurt"}}) {
		h.t.Errorf("sessions: got %+v, damaged %+v, %v; want both, and hurt damaged", list, lost, err)
	}
	for _, s := range list {
		if s.ActiveRoot == "" || s.CreatedAt == "" {
			h.t.Errorf("summary: got %+v, want it whole", s)
		}
	}
	if none, lost, _, err := h.host.Sessions(h.t.Context(), access.Owner(), host.Filter{State: index.Archived}); err != nil || len(none) != 0 || len(lost) != 1 {
		h.t.Errorf("archived sessions: got %+v, damaged %+v, %v; want none, and hurt damaged", none, lost, err)
	}
	inbox, lost, _, err := h.host.Inbox(h.t.Context(), access.Owner(), "", "", 1)
	if err != nil || len(inbox) != 1 || !slices.Equal(lost, []host.Lost{{SessionID: "hurt", InterruptID: h.ids["hurt"]}}) {
		h.t.Errorf("the oldest: got %+v, damaged %+v, %v; want that of hurt", inbox, lost, err)
	}
	for _, asked := range h.inbox() {
		if asked.InterruptID != h.ids[asked.SessionID] || asked.Title != "Sure?" || len(asked.Actions) != 2 {
			h.t.Errorf("inbox: got %+v, want it whole", asked)
		}
	}
	view, err := h.host.Attach(h.t.Context(), access.Owner(), access.ReadSession, "hurt")
	if err != nil {
		h.t.Fatal(err)
	}
	if s, err := view.Summary(h.t.Context()); err != nil || s.State != index.Running || s.ActiveRoot == "" || s.WorkspaceID != "default" {
		h.t.Errorf("summary: got %+v, %v", s, err)
	}
}

// A timer whose row is lost fires when its place in the list says so.
func TestLostTimerFires(t *testing.T) {
	bothEngines(t, func(t *testing.T, e engine) {
		hurtHost(t, e, true, func(t *testing.T, h *hurt) {
			pass(59 * time.Minute)
			synctest.Wait()
			for _, id := range []string{"whole", "hurt"} {
				if story := h.story(id); !strings.HasSuffix(story, "interrupt.requested run.paused") {
					t.Errorf("%s, early: %s", id, story)
				}
			}
			pass(time.Minute + time.Second)
			synctest.Wait()
			for _, id := range []string{"whole", "hurt"} {
				if story := h.story(id); !strings.HasSuffix(story, decided) {
					t.Errorf("%s: %s, want its interrupt expired", id, story)
				}
			}
			if _, err := h.host.AttachExecutor(t.Context(), access.Owner(), "desk-hurt"); err != nil {
				t.Error(err)
			}
		})
	})
}

// A session whose mark of open work is lost is repaired as the others are.
func TestLostOpenWorkIsRecovered(t *testing.T) {
	bothEngines(t, func(t *testing.T, e engine) {
		hurtHost(t, e, false, func(t *testing.T, h *hurt) {
			for _, id := range []string{"whole", "hurt"} {
				if story := h.story(id); !strings.HasSuffix(story, "interrupt.resolved run.resumed run.error") {
					t.Errorf("%s: %s, want it closed", id, story)
				}
			}
			if list := h.inbox(); len(list) != 0 {
				t.Errorf("inbox: got %+v, want it empty", list)
			}
			if _, err := h.host.AttachExecutor(t.Context(), access.Owner(), "desk-hurt"); err != nil {
				t.Error(err)
			}
		})
	})
}

// Who is limited to workspaces hears nothing of damage in others, nor of that of which
// nobody knows the workspace.
func TestDamageIsNotToldToStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hurtHost(t, inMemory(t), true, func(t *testing.T, h *hurt) {
			for workspace, want := range map[string]int{"default": 1, "elsewhere": 0} {
				p := principal(t, workspace)
				list, lost, _, err := h.host.Sessions(t.Context(), p, host.Filter{})
				if err != nil || len(lost) != want || len(list) != 2*want {
					t.Errorf("sessions for %s: got %d, damaged %+v, %v", workspace, len(list), lost, err)
				}
				open, lost, _, err := h.host.Inbox(t.Context(), p, "", "", 10)
				if err != nil || len(lost) != want || len(open) != 2*want {
					t.Errorf("inbox for %s: got %d, damaged %+v, %v", workspace, len(open), lost, err)
				}
			}
			if _, err := h.host.AttachExecutor(t.Context(), access.Owner(), "desk-hurt"); err != nil {
				t.Error(err)
			}
			for _, id := range []string{"whole", "hurt"} {
				h.resolve(h.ids[id], "approve")
			}
			synctest.Wait()
		})
	})
}

// principal may do everything in one workspace.
func principal(t *testing.T, workspace string) access.Principal {
	t.Helper()
	p, err := access.NewPrincipal("p-"+workspace, "p", access.Grant{
		Roles: []access.Role{access.Observe, access.Decide}, Workspaces: []string{workspace},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What a decision depends on and cannot be read is not taken for something that is not
// there: the command fails, and the session goes on.
func TestCommandsFailOnUnreadableRows(t *testing.T) {
	tests := map[string]struct {
		action  access.Action
		command func(run string) decide.Command
		row     func(run string) journal.Key
	}{
		"stop of a run that has ended": {
			access.StopRun, func(run string) decide.Command { return decide.Stop{RootRunID: run} }, journal.RunKey,
		},
		"redaction of a message": {
			access.RedactMessage, func(string) decide.Command { return decide.Redact{MessageID: "m1", Reason: "private"} },
			func(string) journal.Key { return index.Recorded("s1", "m1") },
		},
		"repetition of a message": {
			access.SendMessage, func(string) decide.Command { return decide.Message{MessageID: "m1", Content: "work"} },
			func(string) journal.Key { return journal.CommandKey("s1", "message", "m1") },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{})
				defer s.end()
				s.create("s1")
				run := s.do(access.SendMessage, "s1", decide.Message{MessageID: "m1", Content: "work"}, "").RunID
				synctest.Wait()
				before := s.story("s1")
				s.journal.(*journal.Memory).Damage(test.row(run))
				_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: test.action, Session: "s1", Command: test.command(run)})
				if !errors.Is(err, host.ErrDamaged) || s.story("s1") != before {
					t.Errorf("got %v, then %s; want ErrDamaged and nothing new", err, s.story("s1"))
				}
				if a := s.say("s1", "more"); !a.Status.Accepted() {
					t.Errorf("another message: %+v", a)
				}
				synctest.Wait()
			})
		})
	}
}

// verify names the damaged session for each row of it, and no other session.
func TestVerifyNamesTheDamagedSession(t *testing.T) {
	bothEngines(t, func(t *testing.T, e engine) {
		h := &hurt{log: &bytes.Buffer{}, ids: map[string]string{}}
		h.before(t, e, asker{h, true})
		interrupt := h.ids["hurt"]
		j := e.open()
		report, err := j.Verify(t.Context(), journal.VerifyOptions{Derive: index.Deriver(numbers.Of)})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []journal.Key{
			journal.SessionKey("hurt"), journal.OpenWorkKey("hurt"), journal.InterruptKey(interrupt),
			journal.TimerKey("hurt", index.TimerID(interrupt)), journal.LeaseKey("desk-hurt"), journal.AgentKey("boot-hurt/7/8"),
		} {
			if !slices.ContainsFunc(report.Problems, func(p journal.Problem) bool {
				return p.Row == key.String() && (p.Session == "hurt" || key.Kind == journal.KindLease || key.Kind == journal.KindAgent)
			}) {
				t.Errorf("verify: got %+v, want %s", report.Problems, key)
			}
		}
		for _, p := range report.Problems {
			if p.Session == "whole" {
				t.Errorf("verify: got %+v, want nothing of the whole session", p)
			}
		}
		if e.closes {
			_ = j.Close()
		}
	})
}

// A block of a table that cannot be read, with the rows of many sessions in it, keeps the
// host neither from starting nor from serving the others; what it held facts say too.
func TestUnreadableBlockCostsNoOther(t *testing.T) {
	for _, tag := range "lxPpituq" {
		t.Run(string(tag), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := vfs.NewMem()
				h := &hurt{log: &bytes.Buffer{}, ids: map[string]string{}}
				const sessions = 200 // so that each list fills more than a block
				s := open(t, onMem(t, files, nil), asker{h, true}, host.Options{MaxRunning: sessions})
				for i := range sessions {
					id := fmt.Sprintf("s%02d", i)
					s.create(id)
					s.say(id, "work")
				}
				synctest.Wait()
				before := &hurt{stage: s, ids: h.ids}
				for _, asked := range before.allInbox(100) {
					h.ids[asked.SessionID] = asked.InterruptID
				}
				s.leave(engine{closes: true})
				flipBlock(t, files, byte(tag))

				log := slog.New(slog.NewTextHandler(h.log, nil))
				h.stage = open(t, onMem(t, files, log), asker{h, true}, host.Options{MaxRunning: sessions, Logger: log})
				synctest.Wait()
				pass(time.Minute) // the timers are looked at
				synctest.Wait()
				if list, lost := h.allSessions(7); len(list) != sessions || tag == 'l' && len(lost) == 0 {
					t.Errorf("sessions: got %d, damaged %v; want %d", len(list), lost, sessions)
				}
				if list := h.allInbox(7); len(list) != sessions {
					t.Errorf("inbox: got %d, want %d", len(list), sessions)
				}
				decided := 0
				for id, interrupt := range h.ids {
					a, err := h.host.Do(t.Context(), access.Owner(), host.Request{
						Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: interrupt, Decision: "approve"},
					})
					switch {
					case err == nil && !a.Status.Accepted():
						t.Errorf("decide in %s: %+v", id, a)
					case err == nil:
						decided++
					case !errors.Is(err, host.ErrDamaged):
						t.Errorf("decide in %s: %v", id, err)
					}
				}
				if decided != sessions {
					t.Errorf("%d of %d could be decided", decided, sessions)
				}
				synctest.Wait()
				report, err := h.journal.Verify(t.Context(), journal.VerifyOptions{Derive: index.Deriver(numbers.Of)})
				if err != nil || report.OK() {
					t.Errorf("verify: %v, %+v; want problems", err, report)
				}
				if told := linesWith(h.log.String(), "stored data is damaged"); len(told) == 0 {
					t.Errorf("log says nothing of damage:\n%s", h.log)
				}
				if told := linesWith(h.log.String(), "session=s1"); len(told) == 0 && strings.ContainsRune("lxi", tag) {
					t.Errorf("log names no session:\n%s", h.log)
				}
				h.end()
				if err := h.journal.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func (h *hurt) allSessions(limit int) (ids []string, lost []host.Lost) {
	h.t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		list, damaged, next, err := h.host.Sessions(h.t.Context(), access.Owner(), host.Filter{Cursor: cursor, Limit: limit})
		if err != nil || len(list) > limit {
			h.t.Fatalf("sessions: %d, %v", len(list), err)
		}
		for _, s := range list {
			if seen[s.SessionID] {
				h.t.Errorf("session %s came twice", s.SessionID)
			}
			seen[s.SessionID] = true
			ids = append(ids, s.SessionID)
		}
		lost = append(lost, damaged...)
		if cursor = next; next == "" {
			return ids, lost
		}
	}
}

func (h *hurt) allInbox(limit int) (list []host.Asked) {
	h.t.Helper()
	for cursor := ""; ; {
		page, _, next, err := h.host.Inbox(h.t.Context(), access.Owner(), "", cursor, limit)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, asked := range page {
			if id, known := h.ids[asked.SessionID]; known && id != asked.InterruptID || asked.Title != "Sure?" {
				h.t.Errorf("inbox: got %+v, want that of %s", asked, asked.SessionID)
			}
		}
		list = append(list, page...)
		if cursor = next; next == "" {
			return list
		}
	}
}

// flipBlock changes a byte of the block that holds the middle one of the keys with a tag.
func flipBlock(t *testing.T, files *vfs.MemFS, tag byte) {
	t.Helper()
	options := &lsm.Options{FS: files, FormatMajorVersion: lsm.FormatValueSeparation, Logger: quiet{}}
	db, err := lsm.Open("/journal", options)
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(&lsm.IterOptions{LowerBound: []byte{tag}, UpperBound: []byte{tag + 1}})
	if err != nil {
		t.Fatal(err)
	}
	var keys [][]byte
	for valid := it.First(); valid; valid = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	if err := errors.Join(it.Close(), db.Compact(context.Background(), []byte{0}, []byte{0xff}, false), db.Close()); err != nil || len(keys) == 0 {
		t.Fatalf("%d keys of %c, %v", len(keys), tag, err)
	}
	names, err := files.List("/journal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if path := files.PathJoin("/journal", name); strings.HasSuffix(name, ".sst") {
			flipByte(t, files, path, blockOf(t, files, path, keys[len(keys)/2]))
		}
	}
}

// blockOf is a place in the block of a table that holds a key.
func blockOf(t *testing.T, files *vfs.MemFS, path string, key []byte) int64 {
	t.Helper()
	file, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		t.Fatal(err)
	}
	options := &lsm.Options{}
	options.EnsureDefaults()
	table, err := sstable.NewReader(context.Background(), readable, options.MakeReaderOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	end, err := table.EstimateDiskUsage(nil, key, sstable.ReadEnv{})
	if err != nil || end == 0 {
		t.Fatalf("key %q is not in %s: %v", key, path, err)
	}
	return int64(end) - 20
}

func flipByte(t *testing.T, files *vfs.MemFS, path string, at int64) {
	t.Helper()
	file, err := files.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err = file.ReadAt(b, at)
	if b[0] ^= 0xff; err == nil {
		_, err = file.WriteAt(b, at)
	}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
}
