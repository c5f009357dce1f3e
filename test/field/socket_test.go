package field_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// Case 93. Two hosts never share a store. The second says so and ends before it touches or
// repairs anything, whatever address it is given and by whatever name it reaches the home
// or the store in it; the lock dies with its owner.
func TestCase93TwoHostsOnOneStore(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{tool: {name: shell, run: \"echo $$ > pid; exec sleep 300\"}}]\n")
	dir := b.session("s1")
	run := b.say("s1", "work")
	shell := b.pidIn(filepath.Join(dir, "pid"))

	alias := filepath.Join(t.TempDir(), "alias")
	b.must(os.Symlink(b.home, alias))
	// Another home, whose store is that of the first by another name.
	thief := t.TempDir()
	b.must(os.Symlink(filepath.Join(b.home, "store"), filepath.Join(thief, "store")))
	before := b.written()
	for name, home := range map[string]string{"same": b.home, "symlink": alias, "symlinked store": thief} {
		for _, args := range [][]string{{"serve", "--home", home, "--listen", "127.0.0.1:0"}, {"verify", "--home", home}} {
			text, code := b.mahati(args...)
			if code != 1 {
				t.Errorf("%s: %s: exit %d, want 1:\n%s", name, args[0], code, text)
			}
			if !strings.Contains(text, "host runs on") {
				t.Errorf("%s: %s does not say that another host is there:\n%s", name, args[0], text)
			}
		}
	}
	if after := b.written(); !maps.Equal(after, before) {
		t.Errorf("the second host changed files of the first: %v, before %v", after, before)
	}
	for _, e := range decode(t, b.facts("s1")) {
		if f, ok := e.(*narad.ToolCallFinished); ok {
			t.Errorf("the second host repaired what is at work: %s %s", f.Outcome, f.Code)
		}
	}
	if !alive(shell) {
		t.Error("the second host ended what the first one runs")
	}

	b.kill()
	b.start() // the lock is free
	b.awaitEnd("s1", run)
}

// written is the size and time of every file that only the host that owns the home changes
// on purpose. Its own log and the store's files grow by themselves.
func (b *bed) written() map[string]string {
	b.t.Helper()
	files := map[string]string{}
	b.must(filepath.WalkDir(b.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == b.logFile() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[path] = info.ModTime().String()
		return err
	}))
	return files
}

// Case 97. An orderly stop waits for no stream: each ends between two frames, one that does
// not read is cut, the process is gone soon and its address with it, what was written is
// there, and the runs were not cancelled by it.
func TestCase97ShutdownWaitsForNoStream(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules:
  - {contains: bulk, play: bulk}
  - {play: waits}
scenarios:
  bulk: [{repeat: {times: 30, steps: [{tool: {name: dump, respond_bytes: 400000}}]}}]
  waits: [{say: "Before. "}, {delay: 3s}, {say: After.}]
`)
	b.session("s1")
	b.session("bulk")
	b.awaitEnd("bulk", b.say("bulk", "bulk"))
	run := b.say("s1", "go")
	b.await("s1", "the first words", func(e narad.Authority) bool { return e.Type() == narad.TypeMessageTextDelta })
	head := b.head("s1")
	var readers sync.WaitGroup
	for range 50 {
		s := b.stream("s1", "?afterSessionSequence=0", "")
		s.factsTo(head)
		readers.Go(func() {
			for s.err == nil {
				s.next()
			}
			if !errors.Is(s.err, io.EOF) || errors.Is(s.err, io.ErrUnexpectedEOF) || !strings.HasSuffix(s.raw.String(), "}\n\n") {
				t.Errorf("a stream ended with %v, want an end between two frames", s.err)
			}
		})
	}
	stalled := b.send("GET", "/sessions/bulk/stream?afterSessionSequence=0", "") // 12 MB, and nobody reads
	defer reset(stalled)
	address := strings.TrimPrefix(b.url, "http://")
	events := b.facts("s1")

	began := time.Now()
	cmd := b.host
	b.host = nil
	b.must(cmd.Process.Signal(syscall.SIGTERM))
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err := <-exited:
		if err != nil {
			t.Errorf("the host ended with %v\n%s", err, b.log())
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		<-exited
		t.Fatal("the host waits for its streams")
	}
	took := time.Since(began)
	readers.Wait()
	t.Logf("the host was gone after %s", took)
	if took > 10*time.Second { // 2 s are owed on an idle machine
		t.Errorf("the host was gone after %s", took)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the address still answers")
	}
	if _, err := os.Stat(filepath.Join(b.home, "address")); err == nil {
		t.Error("the home still names the address")
	}
	if text, code := b.mahati("verify"); code != 0 {
		t.Errorf("verify after the stop: exit %d\n%s", code, text)
	}

	b.start()
	if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
		t.Errorf("the run ended as %s: a stop of the host is no stop of a run", end.Type())
	}
	after := b.facts("s1")
	if !equalFacts(after[:len(events)], events) {
		t.Error("what was read before the stop is not what is there after it")
	}
	if got := saidBy(b.state("s1"))[run]; got != "Before. After." {
		t.Errorf("the run said %q", got)
	}
}
