package field_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/client"
)

// sized is how much a load case does: little, or with MAHATI_FIELD_LOAD=1 as much as was
// reported.
func sized[N int | int64 | time.Duration](little, much N) N {
	if os.Getenv("MAHATI_FIELD_LOAD") != "" {
		return much
	}
	return little
}

// eventually polls until a condition holds.
func (b *bed) eventually(what string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.fatalf("not in %s: %s", patience, what)
		}
	}
}

// proc reads a file that the kernel has about the host.
func (b *bed) proc(name string) []byte {
	b.t.Helper()
	if runtime.GOOS != "linux" {
		b.t.Skip("needs /proc to look into a process")
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", b.host.Process.Pid, name))
	b.must(err)
	return text
}

// number is the value of one line of such a file, as "VmRSS:  123 kB".
func (b *bed) number(file, name string) int64 {
	b.t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + `:\s*(\d+)`).FindSubmatch(b.proc(file))
	if found == nil {
		b.t.Fatalf("no %s in /proc/PID/%s", name, file)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	b.must(err)
	return n
}

// resident is the host's memory in bytes.
func (b *bed) resident() int64 { b.t.Helper(); return b.number("status", "VmRSS") << 10 }

// hasRead is how many bytes the host has read since its start, from files and sockets.
func (b *bed) hasRead() int64 { b.t.Helper(); return b.number("io", "rchar") }

// descriptors is how many files and sockets the host has open.
func (b *bed) descriptors() int {
	b.t.Helper()
	b.proc("status")
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.host.Process.Pid))
	b.must(err)
	return len(list)
}

var createdBy = regexp.MustCompile(`(?m)^created by (\S+)`)

// goroutines ends the host with SIGQUIT and returns how many goroutines it had, by the
// function that started them.
func (b *bed) goroutines() map[string]int {
	b.t.Helper()
	before := len(b.log())
	b.must(b.host.Process.Signal(syscall.SIGQUIT))
	_ = b.host.Wait() // says that it was told to quit
	b.host = nil
	dump := b.log()[before:]
	started := map[string]int{}
	for _, line := range createdBy.FindAllStringSubmatch(dump, -1) {
		started[line[1]]++
	}
	if len(started) == 0 {
		b.t.Fatalf("the host left no dump of its goroutines:\n%s", dump)
	}
	return started
}

// dial opens a connection to the host whose reader's side holds little.
func (b *bed) dial() *net.TCPConn {
	b.t.Helper()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
		})
	}}
	conn, err := d.DialContext(b.t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	b.must(err)
	return conn.(*net.TCPConn)
}

// request is a request of HTTP/1.1 as bytes.
func (b *bed) request(method, path, body string) string {
	return fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		method, client.Prefix, path, b.token, len(body), body)
}

// send writes a request by hand on a connection of its own, and reads nothing.
func (b *bed) send(method, path, body string) *net.TCPConn {
	b.t.Helper()
	conn := b.dial()
	_, err := conn.Write([]byte(b.request(method, path, body)))
	b.must(err)
	return conn
}

// try is ask for goroutines: that there was no answer fails the test and does not end it.
func (b *bed) try(method, path string, body any) answer {
	b.t.Helper()
	a, err := b.do(b.url, method, path, body)
	if err != nil {
		b.t.Errorf("%s %s: %v", method, path, err)
	}
	return a
}

// mahati runs a command of the program on the home. What it printed comes as one text.
func (b *bed) mahati(args ...string) (text string, code int) {
	b.t.Helper()
	cmd := exec.CommandContext(b.context(), program, args...)
	cmd.Env = append(append(environment(), b.env...), "MAHATI_HOME="+b.home)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		b.fatalf("mahati %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// newToken makes a token of some roles.
func (b *bed) newToken(name, roles string) string {
	b.t.Helper()
	text, _ := b.mahati("token", "create", "--name", name, "--role", roles)
	secret := regexp.MustCompile(`mht_\S+`).FindString(text)
	if secret == "" {
		b.t.Fatalf("create a token: %s", text)
	}
	return secret
}

// copyOf returns a bed without a host whose home is a copy of this one's.
func (b *bed) copyOf(t *testing.T) *bed {
	b.t.Helper()
	other := *b
	other.t, other.host, other.home = t, nil, filepath.Join(t.TempDir(), "home")
	if err := os.Remove(b.socket()); !errors.Is(err, fs.ErrNotExist) { // a killed host left it, and it is no file to copy
		other.must(err)
	}
	other.must(os.CopyFS(other.home, os.DirFS(b.home)))
	other.must(filepath.WalkDir(other.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	}))
	return &other
}

// alive reports whether a process lives, zombies aside.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) || runtime.GOOS != "linux"
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(rest, []byte("Z"))
}

// pidIn reads a file that a command of a script wrote its number to.
func (b *bed) pidIn(path string) int {
	b.t.Helper()
	pid := 0
	b.eventually("a process that says its number in "+filepath.Base(path), func() bool {
		text, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

// metrics is what the host exposes.
func (b *bed) metrics() string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.context(), http.MethodGet, b.url+"/metrics", nil)
	b.must(err)
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.http.Do(req)
	b.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	b.must(err)
	return string(text)
}
