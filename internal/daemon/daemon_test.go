package daemon_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/servertest"
)

func TestADaemonServesWhenStartReturns(t *testing.T) {
	bubble(t, daemon.Options{Version: "1.2.3"}, func(t *testing.T, r *rig) {
		r.want(200, "GET", "/healthz", "")
		r.want(200, "GET", "/readyz", "")
		caps := r.want(200, "GET", narad1+"/capabilities", "")
		if caps.field("epoch") != r.Epoch() || !strings.Contains(caps.field("host"), "1.2.3") {
			t.Errorf("capabilities: got %s, want epoch %s and the version", caps.body, r.Epoch())
		}
		if got := r.file(daemon.AddressFile); got != r.URL() {
			t.Errorf("address: got %q, want %q", got, r.URL())
		}
	})
}

// The home, the token and the address are the owner's alone, whatever the umask.
func TestTheHomeIsTheOwnersAlone(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		r.say("s1", "hello")
		seen := 0
		err := filepath.WalkDir(r.cfg.Home, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.Name() == "config.toml" {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			seen++
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is open to others: %v", path, info.Mode())
			}
			return nil
		})
		if err != nil || seen < 5 {
			t.Errorf("walked over %d files: %v", seen, err)
		}
	})
}

// The first token is made once; a start that finds tokens leaves them alone.
func TestTheFirstTokenIsMadeOnce(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, configured(t, home), daemon.Options{})
		first, epoch := r.token, r.Epoch()
		r.say("s1", "hello")
		r.close()
		if _, err := os.Stat(filepath.Join(home, daemon.AddressFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the address stays after the end: %v", err)
		}
		again := start(t, r.cfg, daemon.Options{})
		if again.token != first || again.Epoch() != epoch {
			t.Errorf("token or epoch changed with a restart: %s, want %s", again.Epoch(), epoch)
		}
		again.want(200, "GET", narad1+"/sessions/s1", "")
	})
}

// An end of the host ends streams between two frames, within two seconds, also those
// whose readers take nothing; and after it nothing is served.
func TestCloseDrains(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		r.say("s1", "hello")
		synctest.Wait()
		reads, stalls := r.follow("s1"), r.follow("s1")
		text := make(chan string, 1)
		go func() { text <- all(reads) }()
		synctest.Wait()
		begun := time.Now()
		r.close()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("Close took %v, want at most 2 s", took)
		}
		got := <-text
		if !strings.Contains(got, `"type":"run.started"`) || !strings.HasSuffix(got, "\n\n") {
			t.Errorf("the stream does not end after its last frame:\n%.300q", got)
		}
		if rest := all(stalls); strings.Contains(rest, "server.heartbeat") {
			t.Errorf("the stalled stream went on: %q", rest)
		}
		if _, err := r.http.Get("http://localhost/healthz"); err == nil {
			t.Error("requests are answered after Close")
		}
		r.close() // a second time is nothing
	})
}

// follow opens a stream of a session and reads nothing of it but the header.
func (r *rig) follow(session string) io.ReadCloser {
	r.t.Helper()
	response, err := r.http.Do(r.request(r.t.Context(), "GET", narad1+"/sessions/"+session+"/stream", ""))
	if err != nil || response.StatusCode != 200 {
		r.t.Fatalf("stream: %v %v", response, err)
	}
	r.t.Cleanup(func() { _ = response.Body.Close() })
	return response.Body
}

func all(body io.Reader) string {
	data, _ := io.ReadAll(body) // an end that is a cut is an end
	return string(data)
}

// A store that failed in writing is final: the daemon says why it cannot go on, streams
// end, and the next start has what was acknowledged and nothing else.
func TestAStoreThatBreaks(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		r := start(t, configured(t, home), daemon.Options{Store: func(o *journal.Options) {
			o.Fault = func(stage journal.Stage, _ journal.Group) error {
				if stage == journal.StageWritten && broken.Load() {
					return errors.New("the disk is gone")
				}
				return nil
			}
		}})
		r.want(201, "POST", narad1+"/sessions", `{"sessionId":"kept"}`)
		stream := r.follow("kept")
		broken.Store(true)
		got := r.do("POST", narad1+"/sessions", `{"sessionId":"lost"}`)
		if got.status != 500 || strings.Contains(got.body, "disk") {
			t.Errorf("got %d %s, want 500 without the cause", got.status, got.body)
		}
		<-r.Done()
		if err := r.Err(); !errors.Is(err, daemon.ErrBroken) {
			t.Errorf("Err: got %v, want ErrBroken", err)
		}
		if text := all(stream); !strings.HasSuffix(text, "\n\n") {
			t.Errorf("the stream ended inside a frame: %.300q", text)
		}
		if got := r.do("GET", "/readyz", ""); got.status != 503 || got.field("detail") != "store_broken" {
			t.Errorf("readyz: got %d %s, want 503 store_broken", got.status, got.body)
		}
		r.close()
		again := start(t, r.cfg, daemon.Options{})
		again.want(200, "GET", narad1+"/sessions/kept", "")
	})
}

// Below the reserve the host is not ready and refuses new work, and reads go on.
func TestBelowTheReserve(t *testing.T) {
	var free atomic.Uint64
	free.Store(8 << 30)
	bubble(t, daemon.Options{Store: func(o *journal.Options) {
		o.Free = func() (uint64, error) { return free.Load(), nil }
	}}, func(t *testing.T, r *rig) {
		r.say("s1", "hello")
		synctest.Wait()
		free.Store(1<<30 - 1)
		<-time.After(2 * time.Second) // space is looked at once a second
		if got := r.do("GET", "/readyz", ""); got.status != 503 || got.field("code") != "not_ready" || got.field("detail") != "storage_full" {
			t.Errorf("readyz: got %d %s, want 503 not_ready storage_full", got.status, got.body)
		}
		if got := r.do("POST", narad1+"/sessions", `{"sessionId":"s2"}`); got.status != 507 || got.field("code") != "storage_full" {
			t.Errorf("create: got %d %s, want 507 storage_full", got.status, got.body)
		}
		r.want(200, "GET", narad1+"/sessions/s1/events", "")
		r.want(200, "GET", "/healthz", "")
		free.Store(8 << 30)
		<-time.After(2 * time.Second)
		r.want(200, "GET", "/readyz", "")
		r.want(201, "POST", narad1+"/sessions", `{"sessionId":"s2"}`)
	})
}

// One host a home, whatever the home is called; the first does not notice the second.
func TestASecondHostIsRefused(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, configured(t, filepath.Join(dir, "home")), daemon.Options{})
		link := filepath.Join(dir, "link")
		if err := os.Symlink(r.cfg.Home, link); err != nil {
			t.Fatal(err)
		}
		for _, home := range []string{r.cfg.Home, link} {
			cfg := r.cfg
			cfg.Home = home
			second, err := daemon.Start(t.Context(), cfg, daemon.Options{Listener: servertest.NewListener()})
			if !errors.Is(err, journal.ErrLocked) {
				t.Errorf("a second host on %s: got %v, %v, want ErrLocked", filepath.Base(home), second, err)
			}
		}
		if got := r.file(daemon.AddressFile); got != r.URL() {
			t.Errorf("address: got %q, want that of the first host", got)
		}
		r.say("s1", "hello")
	})
}

// addressed is a listener that says it is elsewhere.
type addressed struct {
	*servertest.Listener
	at net.Addr
}

func (a addressed) Addr() net.Addr { return a.at }

// Beyond loopback nothing is said in clear, whatever the configuration believed.
func TestBeyondLoopback(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := configured(t, home)
		at := func(ip string) addressed {
			return addressed{servertest.NewListener(), &net.TCPAddr{IP: net.ParseIP(ip), Port: 7717}}
		}
		for _, ip := range []string{"0.0.0.0", "::", "192.0.2.1", "2001:db8::1"} {
			listener := at(ip)
			d, err := daemon.Start(t.Context(), cfg, daemon.Options{Listener: listener})
			if err == nil {
				t.Errorf("%s in clear is served", ip)
				_ = d.Close()
			}
			if _, err := listener.Dial(t.Context()); err == nil {
				t.Errorf("%s: the listener stays open", ip)
			}
		}
		for _, ip := range []string{"127.0.0.1", "127.8.8.8", "::1"} {
			start(t, cfg, daemon.Options{Listener: at(ip)}).close()
		}
		cfg.BehindProxy = true
		start(t, cfg, daemon.Options{Listener: at("0.0.0.0")}).close()
	})
}

// A client that sends its request in drops is cut off, and holds up nobody.
func TestSlowRequests(t *testing.T) {
	bubble(t, daemon.Options{}, func(t *testing.T, r *rig) {
		for name, sent := range map[string]string{
			"nothing":      "",
			"half a line":  "GET /api/narad/v1/capa",
			"half a head":  "GET /api/narad/v1/capabilities HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n",
			"half a body":  "POST /api/narad/v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + r.token + "\r\nContent-Length: 9\r\n\r\n{",
			"half a chunk": "POST /api/narad/v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + r.token + "\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{",
		} {
			conn, err := r.listener.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			begun, answer := time.Now(), make(chan string, 1)
			go func() { answer <- all(conn) }()
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.want(200, "GET", "/readyz", "") // nobody else waits
			got := <-answer
			if took := time.Since(begun); took > 45*time.Second {
				t.Errorf("%s: held for %v", name, took)
			}
			if strings.Contains(name, "body") && !strings.Contains(got, "408") {
				t.Errorf("%s: got %.200q, want 408", name, got)
			}
			_ = conn.Close()
		}
		if got := r.want(200, "GET", narad1+"/sessions", ""); !strings.Contains(got.body, `"items":[]`) {
			t.Errorf("half a request made a session: %s", got.body)
		}
	})
}

// While the host repairs itself it says so, and nobody is told that he may not (R17).
func TestWhileItRecovers(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := configured(t, home, "[agents.slow]", `kind = "script"`, `file = "slow.yaml"`)
		script := "script: 1\nsteps:\n  - tool: {name: work, delay: 1h}\n"
		if err := os.WriteFile(filepath.Join(home, "slow.yaml"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		r := start(t, cfg, daemon.Options{})
		r.want(201, "POST", narad1+"/sessions", `{"sessionId":"s1","agent":"slow"}`)
		r.want(202, "POST", narad1+"/commands/message", `{"sessionId":"s1","content":"go"}`)
		synctest.Wait()
		r.close()

		held, release := make(chan struct{}), make(chan struct{})
		var once atomic.Bool
		listener := servertest.NewListener()
		started := make(chan error, 1)
		var d *daemon.Daemon
		go func() {
			var err error
			d, err = daemon.Start(t.Context(), cfg, daemon.Options{Listener: listener, Store: func(o *journal.Options) {
				o.Fault = func(journal.Stage, journal.Group) error {
					if once.CompareAndSwap(false, true) {
						close(held)
						<-release
					}
					return nil
				}
			}})
			started <- err
		}()
		<-held
		client := listener.Client()
		defer client.CloseIdleConnections()
		for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 503, narad1 + "/sessions": 503, "/nothing": 503} {
			response, err := client.Get("http://localhost" + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want || want == 503 && response.Header.Get("Retry-After") == "" {
				t.Errorf("%s: got %d %v, want %d", path, response.StatusCode, response.Header, want)
			}
		}
		close(release)
		if err := <-started; err != nil {
			t.Fatal(err)
		}
		client.CloseIdleConnections()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A start that is given up leaves nothing open: the home can be used at once.
func TestAStartThatFailsLeavesNothing(t *testing.T) {
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cfg := configured(t, home)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		start(t, cfg, daemon.Options{}).close()
		bad := cfg
		bad.TLS.Cert, bad.TLS.Key = filepath.Join(home, "none.pem"), filepath.Join(home, "none.key")
		listener := servertest.NewListener()
		if d, err := daemon.Start(t.Context(), bad, daemon.Options{Listener: listener}); err == nil {
			t.Errorf("a certificate that is not there: got %v", d)
		}
		if d, err := daemon.Start(ended, cfg, daemon.Options{Listener: servertest.NewListener()}); err == nil {
			_ = d.Close() // there was nothing to recover: it may have started
		}
		start(t, cfg, daemon.Options{})
	})
}
