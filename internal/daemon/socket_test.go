package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
)

// homeOf makes the configuration of a home with a short path, which a socket needs.
func homeOf(t *testing.T) (config.Config, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mahati")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := configured(t, filepath.Join(dir, "home"), `listen = "127.0.0.1:0"`)
	return cfg, filepath.Join(cfg.Home, daemon.SocketFile)
}

// serve starts a daemon on real listeners, that ends with the test or with Close.
func serve(t *testing.T, cfg config.Config) *daemon.Daemon {
	t.Helper()
	d, err := daemon.Start(t.Context(), cfg, daemon.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// over is a client all of whose requests go to a socket.
func over(t *testing.T, path string) *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// ask returns the status of a GET, -1 for no answer.
func ask(c *http.Client, url string, header ...string) int {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return -1
	}
	if len(header) == 2 {
		request.Header.Set(header[0], header[1])
	}
	response, err := c.Do(request)
	if err != nil {
		return -1
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// The socket is the owner's and wants no token, TCP wants one; a token that is shown counts
// on both, so that one that is not known is not the owner's after all.
func TestTheSocketIsTheOwners(t *testing.T) {
	cfg, path := homeOf(t)
	d := serve(t, cfg)
	if d.Socket() != path {
		t.Errorf("Socket: got %s, want %s", d.Socket(), path)
	}
	tcp := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(tcp.CloseIdleConnections)
	const sessions = narad1 + "/sessions"
	for what, got := range map[string][2]int{
		"socket":                    {ask(over(t, path), "http://localhost"+sessions), 200},
		"socket, any host":          {ask(over(t, path), "http://mahati.example"+sessions), 200},
		"socket, the headless log":  {ask(over(t, path), "http://localhost/api/harness/v1/contract"), 200},
		"socket, a token not known": {ask(over(t, path), "http://localhost"+sessions, "Authorization", "Bearer nobody"), 401},
		"TCP":                       {ask(tcp, d.URL()+sessions), 401},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: got %d, want %d", what, got[0], got[1])
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays after the end: %v", err)
	}
}

// leave leaves a socket as a host does that is killed.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Case 91: what a dead host left does not keep the next from starting.
func TestASocketThatWasLeftIsReplaced(t *testing.T) {
	cfg, path := homeOf(t)
	leave(t, path)
	serve(t, cfg)
	if got := ask(over(t, path), "http://localhost/readyz"); got != 200 {
		t.Errorf("readyz over the socket: got %d, want 200", got)
	}
}

// Case 91: of a host that was killed the system may take the lock before the socket: the next one waits
// for the rest of that end, and does not take it for somebody else's host.
func TestASocketOfAHostThatDiesIsWaitedFor(t *testing.T) {
	cfg, path := homeOf(t)
	dying, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dying.SetUnlinkOnClose(false)
	gone := make(chan error, 1)
	go func() {
		for range 3 { // it is asked before it is gone
			conn, err := dying.Accept()
			if err != nil {
				gone <- err
				return
			}
			_ = conn.Close()
		}
		gone <- dying.Close()
	}()
	serve(t, cfg)
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if got := ask(over(t, path), "http://localhost/readyz"); got != 200 {
		t.Errorf("readyz over the socket: got %d, want 200", got)
	}
}

// Case 91: anything else at its path is left alone, and the home is free for the next start.
func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	alive := func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return err
	}
	for name, put := range map[string]func(path string) error{
		"a file":          func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"a link to a socket": func(path string) error {
			leave(t, path+"2")
			return os.Symlink(path+"2", path)
		},
		"a socket that somebody serves": alive,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, path := homeOf(t)
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			d, err := daemon.Start(t.Context(), cfg, daemon.Options{})
			if err == nil {
				_ = d.Close()
			}
			if !errors.Is(err, daemon.ErrSocketTaken) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want ErrSocketTaken with the path", err)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
				t.Errorf("it was touched: %v, %v, want %v", after, err, before)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			serve(t, cfg)
		})
	}
}

// A path that the system would cut or refuse is refused with its limit, and one byte less serves;
// a short link to the home is a way out.
func TestAPathTooLong(t *testing.T) {
	cfg, path := homeOf(t)
	limit := len(syscall.RawSockaddrUnix{}.Path) - 1
	dir := filepath.Dir(cfg.Home)
	cfg.Home = filepath.Join(dir, strings.Repeat("h", limit-len(path)+len("home")))
	if d := serve(t, cfg); len(d.Socket()) != limit || ask(over(t, d.Socket()), "http://localhost/readyz") != 200 {
		t.Errorf("a path of %d bytes is not served, the limit is %d", len(d.Socket()), limit)
	}
	cfg.Home += "h"
	d, err := daemon.Start(t.Context(), cfg, daemon.Options{})
	if err == nil {
		_ = d.Close()
	}
	if !errors.Is(err, daemon.ErrSocketPath) || !strings.Contains(err.Error(), cfg.Home) || !strings.Contains(err.Error(), strconv.Itoa(limit)) {
		t.Errorf("one byte more: got %v, want ErrSocketPath with the path and %d", err, limit)
	}
	if _, err := os.Lstat(cfg.Home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home that was refused was made: %v", err)
	}
	if err := os.Mkdir(cfg.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(cfg.Home, link); err != nil {
		t.Fatal(err)
	}
	cfg.Home = link
	serve(t, cfg)
}

// A socket that took the place of the daemon's own is not the daemon's to remove.
func TestOnlyTheOwnSocketIsRemoved(t *testing.T) {
	cfg, path := homeOf(t)
	d := serve(t, cfg)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	leave(t, path)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("the other socket is gone: %v, %v", info, err)
	}
}

// Case 94: whatever the umask, and whatever the home was before, nobody else reaches the socket
// at any moment: it is looked at all the time, while hosts come and go.
func TestOthersNeverReachTheSocket(t *testing.T) {
	cfg, path := homeOf(t)
	defer syscall.Umask(syscall.Umask(0))
	if err := os.Chmod(filepath.Dir(cfg.Home), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cfg.Home, 0o777); err != nil {
		t.Fatal(err)
	}
	seen, open := make(chan int), make(chan struct{})
	go func() {
		n := 0
		defer func() { seen <- n }()
		for {
			select {
			case <-open:
				return
			default:
			}
			file, err := os.Lstat(path)
			if err != nil {
				continue
			}
			n++
			home, err := os.Lstat(cfg.Home)
			if err != nil || home.Mode().Perm() != 0o700 && file.Mode().Perm() != 0o600 {
				t.Errorf("others reach it: home %v, socket %v, %v", home.Mode(), file.Mode(), err)
				return
			}
		}
	}()
	for range 3 {
		d := serve(t, cfg)
		if file, err := os.Lstat(path); err != nil || file.Mode().Perm() != 0o600 {
			t.Errorf("the socket: got %v, %v, want mode 0600", file, err)
		}
		anotherUser(t, path)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	close(open)
	if n := <-seen; n == 0 {
		t.Error("the socket was never seen")
	}
}

// anotherUser has somebody else connect, where this process may become somebody else.
func anotherUser(t *testing.T, path string) {
	if os.Geteuid() != 0 || runtime.GOOS != "linux" {
		t.Log("nobody can be somebody else here: the modes alone tell that nobody else connects")
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestConnectAsAnother$", "-test.v")
	cmd.Env = append(os.Environ(), "CONNECT_TO="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "refused: permission denied") {
		t.Errorf("another user connects: %v %s", err, out)
	}
}

// TestConnectAsAnother is the other user of TestOthersNeverReachTheSocket, in a process of its own.
func TestConnectAsAnother(t *testing.T) {
	path := os.Getenv("CONNECT_TO")
	if path == "" {
		return
	}
	conn, err := net.Dial("unix", path)
	if errors.Is(err, fs.ErrPermission) {
		t.Log("refused: permission denied")
		return
	}
	t.Errorf("got %v, %v, want a refusal", conn, err)
}

// Case 97: the end waits for no stream of the socket, those who read and those who do not, and
// each ends behind a whole frame.
func TestTheEndWaitsForNoStreamOfTheSocket(t *testing.T) {
	cfg, path := homeOf(t)
	d := serve(t, cfg)
	client := over(t, path)
	response, err := client.Post("http://localhost"+narad1+"/sessions", "application/json", strings.NewReader(`{"sessionId":"s1"}`))
	if err != nil || response.StatusCode != 201 {
		t.Fatalf("create: %v %v", response, err)
	}
	_ = response.Body.Close()
	var streams []*bufio.Reader
	for range 50 {
		response, err := client.Get("http://localhost" + narad1 + "/sessions/s1/stream")
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("stream: %v %v", response, err)
		}
		t.Cleanup(func() { _ = response.Body.Close() })
		stream := bufio.NewReader(response.Body)
		for line := "-"; line != "\n"; {
			if line, err = stream.ReadString('\n'); err != nil {
				t.Fatalf("the first frame: %v", err)
			}
		}
		streams = append(streams, stream)
	}
	stalled, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	if _, err := io.WriteString(stalled, "GET "+narad1+"/sessions/s1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begun); took > 10*time.Second { // 2 s are promised; a loaded machine takes its own time
		t.Errorf("the end took %v", took)
	}
	for i, stream := range streams {
		rest, err := io.ReadAll(stream)
		if err != nil || len(rest) > 0 && !strings.HasSuffix(string(rest), "\n\n") {
			t.Errorf("stream %d ended inside a frame or with a cut: %.200q, %v", i, rest, err)
		}
	}
}
