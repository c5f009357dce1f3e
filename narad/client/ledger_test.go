package client

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

func execute(token string) *narad.ClientToolExecute {
	return &narad.ClientToolExecute{
		Lease: narad.Lease{ClientExecutorID: "desk", LeaseID: "lease"}, ExecutionToken: token,
		ToolCallID: "call-" + token, ToolName: "tool", Args: narad.Raw("{}"),
	}
}

func openLedger(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func accepted(t *testing.T, l *Ledger, token string, expires time.Time) bool {
	t.Helper()
	_, fresh, err := l.accept(execute(token), expires)
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// A token is accepted once, in this process and in every later one (§11.3 rule 5).
func TestLedgerAcceptsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	later := time.Now().Add(time.Hour)
	if !accepted(t, l, "t1", later) || accepted(t, l, "t1", later) {
		t.Error("want t1 accepted the first time, and not the second")
	}
	if _, err := l.finish("t1", narad.OutcomeSuccess, narad.Raw(`{"n":1.10}`)); err != nil {
		t.Fatal(err)
	}
	if !accepted(t, l, "t2", later) {
		t.Error("t2 is not accepted")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLedger(t, path)
	for _, token := range []string{"t1", "t2"} {
		if accepted(t, l, token, later) {
			t.Errorf("%s is accepted again after a restart", token)
		}
	}
	left := map[string]entry{}
	for _, e := range l.open("desk") {
		left[e.Token] = e
	}
	if len(left) != 2 || left["t1"].Outcome != narad.OutcomeSuccess || string(left["t1"].Response) != `{"n":1.10}` || left["t2"].Outcome != "" {
		t.Errorf("what is left is %+v, want t1 with its end and t2 without", left)
	}
	if got := l.open("other"); len(got) != 0 {
		t.Errorf("another executor has %v", got)
	}
}

// What is told and expired is forgotten; what is told and could come again is not.
func TestLedgerForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	accepted(t, l, "old", time.Now().Add(-time.Hour))
	accepted(t, l, "new", time.Now().Add(time.Hour))
	for _, token := range []string{"old", "new"} {
		if _, err := l.finish(token, narad.OutcomeError, narad.Raw("null")); err != nil {
			t.Fatal(err)
		}
		if err := l.told(token); err != nil {
			t.Fatal(err)
		}
	}
	_ = l.Close()
	l = openLedger(t, path)
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte(`"old"`)) || !bytes.Contains(text, []byte(`"new"`)) {
		t.Errorf("the file is %s %v, want new without old", text, err)
	}
	if accepted(t, l, "new", time.Now().Add(time.Hour)) {
		t.Error("a told token is accepted again before it has expired")
	}
}

// What the host could not be told of in time is not told any more: it is forgotten too.
func TestLedgerForgetsWhatIsTooLateToTell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	accepted(t, l, "late", time.Now().Add(-2*lateTelling))
	accepted(t, l, "soon", time.Now().Add(-lateTelling/2))
	_ = l.Close()
	openLedger(t, path)
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte(`"late"`)) || !bytes.Contains(text, []byte(`"soon"`)) {
		t.Errorf("the file is %s %v, want soon without late", text, err)
	}
}

// Cut anywhere, the file opens, and of its whole lines nothing is lost.
func TestLedgerCutAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	for i := range 5 {
		accepted(t, l, fmt.Sprint("t", i), time.Now().Add(time.Hour))
	}
	_ = l.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLedger(path)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", cut, err)
		}
		if got, want := len(l.open("desk")), bytes.Count(whole[:cut], []byte("\n")); got != want {
			t.Errorf("cut after %d bytes: %d entries, want %d", cut, got, want)
		}
		_ = l.Close()
	}
}

// Damage before the end is told, and nothing is thrown away.
func TestLedgerDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	accepted(t, l, "t1", time.Now().Add(time.Hour))
	accepted(t, l, "t2", time.Now().Add(time.Hour))
	_ = l.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[3] = 0
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(path); err == nil || !strings.Contains(err.Error(), "line 1 is damaged") {
		t.Errorf("got %v, want line 1 named as damaged", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(after, damaged) {
		t.Error("the damaged file was changed")
	}
}

func TestLedgerIsTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path+".new", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l := openLedger(t, path)
	accepted(t, l, "t1", time.Now().Add(time.Hour))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v %v, want 0600", info.Mode(), err)
	}
	if _, err := OpenLedger(path); !errors.Is(err, errLedgerInUse) {
		t.Errorf("a second time: %v, want %v", err, errLedgerInUse)
	}
	_ = l.Close()
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLedger(path); err == nil || !strings.Contains(err.Error(), "others") {
		t.Errorf("readable by others: %v, want it refused", err)
	}
}

// Of many who take a token at once, one runs its tool; and the file is written anew as it
// grows.
func TestLedgerAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l := openLedger(t, path)
	l.mu.Lock()
	l.least, l.large = 10_000, 10_000
	l.mu.Unlock()
	var mu sync.Mutex
	fresh := map[string]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				token := fmt.Sprint("t", i)
				_, first, err := l.accept(execute(token), time.Now().Add(-time.Second))
				if err != nil {
					t.Errorf("accept: %v", err)
					return
				}
				if !first {
					continue
				}
				mu.Lock()
				fresh[token]++
				mu.Unlock()
				_, err = l.finish(token, narad.OutcomeSuccess, narad.Raw("1"))
				if err := errors.Join(err, l.told(token)); err != nil {
					t.Errorf("finish: %v", err)
				}
			}
		})
	}
	all.Wait()
	if len(fresh) != 200 {
		t.Errorf("%d tokens were accepted, want 200", len(fresh))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 60_000 {
		t.Errorf("the file has %d bytes %v: it is not written anew", info.Size(), err)
	}
}
