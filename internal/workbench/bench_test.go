package workbench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/workbench"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a workbench with a directory beside its root that nobody may reach.
type bench struct {
	t             *testing.T
	root, outside string
	tools         map[string]client.ToolFunc
	close         func() error
}

func open(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	for _, d := range []string{b.root, b.outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.put(filepath.Join(b.outside, "secret"), "outside-secret")
	w, err := workbench.Open(b.root)
	if err != nil {
		t.Fatal(err)
	}
	b.tools, b.close = w.Tools(), w.Close
	t.Cleanup(func() { _ = w.Close() })
	return b
}

func (b *bench) put(path, text string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a tool; said is its response, or the code of its refusal.
func (b *bench) call(tool, args string) (said string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	r, err := b.tools[tool](ctx, client.ToolCall{ToolName: tool, Args: narad.Raw(args)})
	var refused *client.ToolError
	switch {
	case errors.As(err, &refused):
		if strings.Contains(refused.Message, b.root) || strings.Contains(refused.Message, "secret") {
			b.t.Errorf("%s %s: the refusal tells %q", tool, args, refused.Message)
		}
		return refused.Code
	case err != nil:
		b.t.Fatalf("%s %s: %v", tool, args, err)
	}
	return string(r)
}

func (b *bench) want(tool, args, want string) {
	b.t.Helper()
	if got := b.call(tool, args); got != want {
		b.t.Errorf("%s %s: got %.200s, want %.200s", tool, args, got, want)
	}
}

func TestFiles(t *testing.T) {
	b := open(t)
	b.want(workbench.WriteTextFile, `{"path":"a/b/c.txt","content":"one\ntwo\nthr\u00e9e"}`, `{}`)
	b.want(workbench.ReadTextFile, `{"path":"a/b/c.txt"}`, `{"content":"one\ntwo\nthrée"}`)
	b.want(workbench.ReadTextFile, `{"path":`+quote(filepath.Join(b.root, "a/b/c.txt"))+`,"line":2,"limit":1}`, `{"content":"two\n"}`)
	b.want(workbench.ReadTextFile, `{"path":"a/../a/b/c.txt","line":3}`, `{"content":"thrée"}`)
	b.want(workbench.ReadTextFile, `{"path":"a/b/c.txt","line":9}`, `{"content":""}`)
	b.want(workbench.ReadTextFile, `{"path":"a/b/c.txt","limit":0}`, `{"content":""}`)
	b.want(workbench.ReadTextFile, `{"path":"none"}`, "not_found")
	b.want(workbench.ReadTextFile, `{"path":"a"}`, "not_a_file")
	b.want(workbench.WriteTextFile, `{"path":"a","content":""}`, "not_a_file")
	b.want(workbench.WriteTextFile, `{"path":"a/b/c.txt/d","content":""}`, "not_a_file")
	b.want(workbench.WriteTextFile, `{"path":"x"}`, "invalid_arguments")
	b.want(workbench.ReadTextFile, `{}`, "invalid_arguments")
	b.want(workbench.ReadTextFile, `{"path":"a\u0000"}`, "invalid_arguments")
	b.want(workbench.ReadTextFile, `[]`, "invalid_arguments")

	b.put(filepath.Join(b.root, "large"), strings.Repeat("0123456789abcde\n", 40_000))
	b.want(workbench.ReadTextFile, `{"path":"large"}`, "too_large")
	b.want(workbench.ReadTextFile, `{"path":"large","line":39999,"limit":1}`, `{"content":"0123456789abcde\n"}`)
	b.put(filepath.Join(b.root, "binary"), "\xff\xfe\x00")
	b.want(workbench.ReadTextFile, `{"path":"binary"}`, "not_text")
}

// A file is replaced whole, with its mode, and nothing else is left in its directory.
func TestWriteReplaces(t *testing.T) {
	b := open(t)
	path := filepath.Join(b.root, "run.sh")
	b.put(path, "old")
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			b.call(workbench.WriteTextFile, fmt.Sprintf(`{"path":"run.sh","content":%s}`, quote(strings.Repeat(string(rune('a'+i)), 100_000))))
		})
	}
	all.Wait()
	now, err := os.ReadFile(path)
	if err != nil || len(now) != 100_000 || strings.Trim(string(now), string(now[:1])) != "" {
		t.Errorf("the file is %d bytes of several writers, or %v", len(now), err)
	}
	old := make([]byte, 10)
	if n, _ := held.Read(old); string(old[:n]) != "old" {
		t.Errorf("who reads the old file sees %q", old[:n])
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("its mode is %v, want 0750", info.Mode())
	}
	left, err := os.ReadDir(b.root)
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// No path and no link leads out of the root.
func TestPathsStayBelowTheRoot(t *testing.T) {
	b := open(t)
	for name, to := range map[string]string{
		"link": "../outside/secret", "abs": filepath.Join(b.outside, "secret"), "dir": "../outside", "up": "..",
	} {
		if err := os.Symlink(to, filepath.Join(b.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.put(filepath.Join(b.root, "here"), "x")
	if err := os.Symlink("here", filepath.Join(b.root, "inside")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"../outside/secret", "/etc/passwd", filepath.Join(b.outside, "secret"), "link", "abs", "dir/secret", "up/outside/secret",
		"a/../../outside/secret", b.root + "/../outside/secret", b.root + "x", "..", "dir/new", "up/new",
	} {
		for tool, args := range map[string]string{
			workbench.ReadTextFile: `{"path":%s}`, workbench.WriteTextFile: `{"path":%s,"content":"overwritten"}`,
			workbench.TerminalCreate: `{"command":"pwd","cwd":%s}`,
		} {
			if got := b.call(tool, fmt.Sprintf(args, quote(path))); got != "outside_root" {
				t.Errorf("%s %s: got %s, want outside_root", tool, path, got)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.outside, "secret")); err != nil || string(text) != "outside-secret" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
	if left, _ := os.ReadDir(b.outside); len(left) != 1 {
		t.Errorf("outside are %v", left)
	}
	b.want(workbench.WriteTextFile, `{"path":"inside","content":"y"}`, `{}`)
	b.want(workbench.ReadTextFile, `{"path":"here"}`, `{"content":"y"}`)
	if info, err := os.Lstat(filepath.Join(b.root, "inside")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became a file: %v", err)
	}
}

// A named pipe holds nobody.
func TestPipesAreNoFiles(t *testing.T) {
	b := open(t)
	if err := syscall.Mkfifo(filepath.Join(b.root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(workbench.ReadTextFile, `{"path":"pipe"}`, "not_a_file")
	b.want(workbench.WriteTextFile, `{"path":"pipe","content":"x"}`, "not_a_file")
}

func (b *bench) terminal(args string) (id string) {
	b.t.Helper()
	said := narad.Raw(b.call(workbench.TerminalCreate, args))
	id, ok := said.Field("terminalId").IsString()
	if !ok {
		b.t.Fatalf("create %s: %s", args, said)
	}
	return `{"terminalId":` + quote(id) + `}`
}

func TestTerminals(t *testing.T) {
	t.Setenv("MAHATI_TOKEN", "mht_secret")
	b := open(t)
	if err := os.Mkdir(filepath.Join(b.root, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	id := b.terminal(`{"command":"sh","args":["-c","pwd; echo $X$MAHATI_TOKEN; echo err >&2; exit 3"],"cwd":"sub","env":[{"name":"X","value":"y"}]}`)
	b.want(workbench.TerminalWait, id, `{"exitCode":3,"signal":null}`)
	b.want(workbench.TerminalOutput, id, `{"output":`+quote(filepath.Join(b.root, "sub")+"\ny\nerr\n")+`,"truncated":false,"exitStatus":{"exitCode":3,"signal":null}}`)
	b.want(workbench.TerminalKill, id, `{}`)
	b.want(workbench.TerminalRelease, id, `{}`)
	b.want(workbench.TerminalOutput, id, "no_such_terminal")
	b.want(workbench.TerminalRelease, id, "no_such_terminal")

	line := b.terminal(`{"command":"echo a line | tr a b"}`)
	b.want(workbench.TerminalWait, line, `{"exitCode":0,"signal":null}`)
	b.want(workbench.TerminalOutput, line, `{"output":"b line\n","truncated":false,"exitStatus":{"exitCode":0,"signal":null}}`)

	b.want(workbench.TerminalCreate, `{"command":"/no/such/program"}`, "not_started")
	b.want(workbench.TerminalCreate, `{}`, "invalid_arguments")
	b.want(workbench.TerminalCreate, `{"command":"true","cwd":"none"}`, "not_found")
}

// What is kept of the output is its end, in whole characters.
func TestOutputIsBounded(t *testing.T) {
	b := open(t)
	id := b.terminal(`{"command":"sh","args":["-c","i=0; while [ $i -lt 300 ]; do printf 'é%d' $i; i=$((i+1)); done"],"outputByteLimit":10}`)
	b.want(workbench.TerminalWait, id, `{"exitCode":0,"signal":null}`)
	b.want(workbench.TerminalOutput, id, `{"output":"é298é299","truncated":true,"exitStatus":{"exitCode":0,"signal":null}}`)
	large := b.terminal(`{"command":"sh","args":["-c","yes | head -c 3000000"],"outputByteLimit":100000000}`)
	b.want(workbench.TerminalWait, large, `{"exitCode":0,"signal":null}`)
	if got := b.call(workbench.TerminalOutput, large); len(got) > 600_000 || !strings.Contains(got, `"truncated":true`) {
		t.Errorf("got %d bytes", len(got))
	}
}

// A killed terminal takes its whole group with it, and so does one that the bench's end
// finds.
func TestGroupsEnd(t *testing.T) {
	b := open(t)
	const nest = `{"command":"sh","args":["-c","sh -c 'echo $$; exec sleep 1000' & wait"]}`
	pid := func(id string) int {
		for {
			var n int
			out, _ := narad.Raw(b.call(workbench.TerminalOutput, id)).Field("output").IsString()
			if _, err := fmt.Sscanf(out, "%d\n", &n); err == nil {
				return n
			}
		}
	}
	gone := func(pid int) {
		t.Helper()
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) && !zombie(pid) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
	killed, left := b.terminal(nest), b.terminal(nest)
	first, second := pid(killed), pid(left)
	b.want(workbench.TerminalKill, killed, `{}`)
	gone(first)
	if got := b.call(workbench.TerminalOutput, killed); !strings.Contains(got, `"signal":"terminated"`) {
		t.Errorf("a killed terminal says %s", got)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
	gone(second)
	b.want(workbench.TerminalCreate, nest, "failed")
}

// zombie reports whether a process has ended and nobody has asked how.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

// A wait answers before its token ends, and says that the command runs.
func TestWaitIsShorterThanItsToken(t *testing.T) {
	b := open(t)
	id := b.terminal(`{"command":"sleep 1000"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r, err := b.tools[workbench.TerminalWait](ctx, client.ToolCall{Args: narad.Raw(id)})
	if err != nil || string(r) != `{"running":true}` || ctx.Err() != nil {
		t.Errorf("got %s, %v", r, err)
	}
}

func TestTooManyTerminals(t *testing.T) {
	b := open(t)
	for i := range 64 {
		if got := b.call(workbench.TerminalCreate, `{"command":"true"}`); !strings.Contains(got, "terminalId") {
			t.Fatalf("terminal %d: %s", i, got)
		}
	}
	b.want(workbench.TerminalCreate, `{"command":"true"}`, "too_many_terminals")
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}
