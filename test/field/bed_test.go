package field_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// patience is how long anything may take that is owed. It is no measure of speed.
const patience = 30 * time.Second

// program is the binary under test. MAHATI_FIELD_BUILD holds flags for building it, such
// as -race.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mahati-field-")
	if err == nil {
		program = filepath.Join(dir, "mahati")
		args := append([]string{"build", "-o", program}, strings.Fields(os.Getenv("MAHATI_FIELD_BUILD"))...)
		build := exec.Command("go", append(args, "github.com/mahati-host/mahati/cmd/mahati")...)
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := errors.Join(goleak.Find(), os.RemoveAll(dir)); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bed is a home and the host that runs on it, in a process of its own.
type bed struct {
	t      *testing.T
	home   string
	script string   // path of the script
	env    []string // settings, as MAHATI_STREAMS_HEARTBEAT=1s
	listen string   // where the next host listens
	url    string   // of the host that runs now
	token  string
	host   *exec.Cmd // nil while none runs
	http   *http.Client
	// proxies stand before the host, wherever it runs.
	proxies []*proxy
}

// newBed starts a host that plays a script (docs/script.md). Settings are lines of the
// environment. The host ends with the test, and must then end in order.
func newBed(t *testing.T, script string, settings ...string) *bed {
	t.Helper()
	b := &bed{t: t, home: t.TempDir(), env: settings, listen: "127.0.0.1:0", http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	b.script = filepath.Join(b.home, "script.yaml")
	b.write(b.script, script)
	b.start()
	t.Cleanup(func() {
		if b.host != nil {
			b.stop()
		}
		if log := b.log(); strings.Contains(log, "DATA RACE") {
			t.Errorf("a race in the host:\n%s", log)
		}
	})
	return b
}

func (b *bed) write(path, content string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// start starts a host on the home and waits until it serves.
func (b *bed) start() {
	b.t.Helper()
	log, err := os.OpenFile(b.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(program, "serve", "--home", b.home, "--listen", b.listen, "--script", b.script, "--json", "--with-parent")
	cmd.Env = append(append(environment(), "MAHATI_WORKSPACES_ROOTS=/"), b.env...)
	cmd.Stdout, cmd.Stderr = childOut, log
	_, err = cmd.StdinPipe() // the host ends with this process, however that ends
	b.must(err)
	err = cmd.Start()
	childOut.Close()
	if err != nil {
		b.t.Fatalf("start the host: %v", err)
	}
	b.host = cmd
	var line struct {
		URL string `json:"url"`
	}
	_ = out.SetReadDeadline(time.Now().Add(patience))
	text, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &line)
	}
	if err != nil {
		b.fatalf("the host did not say that it serves: %v", err)
	}
	token, err := os.ReadFile(filepath.Join(b.home, "token"))
	if err != nil {
		b.fatalf("read the token: %v", err)
	}
	b.url, b.token = line.URL, strings.TrimSpace(string(token))
	for _, p := range b.proxies {
		p.aim(b.url)
	}
}

func (b *bed) logFile() string { return filepath.Join(b.home, "host.log") }

// log is what the hosts on this home have written to standard error.
func (b *bed) log() string {
	text, _ := os.ReadFile(b.logFile())
	return string(text)
}

// fatalf ends the test, and shows the end of the host's log.
func (b *bed) fatalf(format string, args ...any) {
	b.t.Helper()
	log := b.log()
	b.t.Fatalf("%s\nthe host's log:\n%s", fmt.Sprintf(format, args...), log[max(0, len(log)-4000):])
}

// must ends the test if there is an error.
func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.fatalf("%v", err)
	}
}

// environment is that of the test without what configures a host.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAHATI_") {
			env = append(env, v)
		}
	}
	return env
}

// kill ends the host with kill -9.
func (b *bed) kill() {
	b.t.Helper()
	if err := b.host.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.t.Fatalf("kill the host: %v", err)
	}
	_ = b.host.Wait() // says that it was killed
	b.host = nil
}

// restart kills the host and starts the next one on the same home, at another address.
func (b *bed) restart() {
	b.t.Helper()
	b.kill()
	b.start()
}

// stop ends the host as its user would, and demands that it ends in order.
func (b *bed) stop() {
	b.t.Helper()
	cmd := b.host
	b.host = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Errorf("stop the host: %v", err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		b.t.Errorf("the host ended: %v\n%s", err, b.log())
	}
}

// run runs the program on the home and returns what it prints.
func (b *bed) run(args ...string) string {
	b.t.Helper()
	cmd := exec.Command(program, append(args, "--home", b.home)...)
	cmd.Env = environment()
	var out, diagnosis bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diagnosis
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("mahati %s: %v\n%s", strings.Join(args, " "), err, diagnosis.String())
	}
	return strings.TrimSpace(out.String())
}

// as is the same bed in the hands of somebody with another token, for requests.
func (b *bed) as(token string) *bed {
	other := *b
	other.token = token
	return &other
}

// context ends with the test, and after patience at the latest.
func (b *bed) context() context.Context {
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	b.t.Cleanup(cancel)
	return ctx
}

// client returns a client of the host that runs now. It sends everything once; what a
// case wants repeated, the case repeats.
func (b *bed) client() *client.Client { return b.clientAt(b.url) }

// clientAt returns a client of an address, such as that of a proxy.
func (b *bed) clientAt(url string) *client.Client {
	b.t.Helper()
	c, err := client.New(url, client.Options{Token: client.Token(b.token), Attempts: 1})
	b.must(err)
	b.t.Cleanup(c.Close)
	return c
}

// answer is what came back for one request, as bytes.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// field is a member of the answer's JSON object as text; "" if there is none.
func (a answer) field(name string) string {
	raw := narad.Raw(a.body).Field(name)
	if text, ok := raw.IsString(); ok {
		return text
	}
	return string(raw)
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// do sends one request below the prefix of the Narad binding to the host at an address.
func (b *bed) do(url, method, path string, body any) (answer, error) {
	return b.exchange(method, url+client.Prefix+path, body)
}

// exchange sends one request to an address, over a connection of its own. A body that is no
// string is sent as JSON.
func (b *bed) exchange(method, address string, body any) (answer, error) {
	text, ok := body.(string)
	if !ok && body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		text = string(encoded)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(resp.Body)
	return a, err
}

// get and post send one request to the host and end the test if there is no answer.
func (b *bed) get(path string) answer { b.t.Helper(); return b.ask(http.MethodGet, path, nil) }
func (b *bed) post(path string, body any) answer {
	b.t.Helper()
	return b.ask(http.MethodPost, path, body)
}

func (b *bed) ask(method, path string, body any) answer {
	b.t.Helper()
	a, err := b.do(b.url, method, path, body)
	if err != nil {
		b.fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// object is a JSON object.
type object map[string]any

// session creates a session whose commands run in a directory of its own, and returns
// both.
func (b *bed) session(id string) (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	if a := b.post("/sessions", object{"sessionId": id, "cwd": dir}); a.status != http.StatusCreated {
		b.fatalf("create session: got %v, want 201", a)
	}
	return dir
}

// say sends a message and returns the run that takes it.
func (b *bed) say(sessionID, content string) (runID string) {
	b.t.Helper()
	a := b.post("/commands/message", object{"sessionId": sessionID, "content": content})
	if a.status != http.StatusAccepted || a.field("runId") == "" {
		b.fatalf("message: got %v, want 202 with a run", a)
	}
	return a.field("runId")
}

// resolve decides an interrupt with a command id of its own; empty is left out.
func (b *bed) resolve(interruptID, decision, commandID string) answer {
	b.t.Helper()
	body := object{"interruptId": interruptID, "decision": decision}
	if commandID != "" {
		body["commandId"] = commandID
	}
	return b.post("/commands/resolve-interrupt", body)
}

// facts returns all facts of a session through history, page by page, as they are stored.
func (b *bed) facts(sessionID string) []narad.Raw {
	b.t.Helper()
	var facts []narad.Raw
	for raw, err := range b.client().Events(b.context(), sessionID, client.HistoryQuery{}) {
		b.must(err)
		facts = append(facts, bytes.Clone(raw))
	}
	return facts
}

// wantFacts compares facts byte by byte.
func wantFacts(t *testing.T, what string, got, want []narad.Raw) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b narad.Raw) bool { return bytes.Equal(a, b) }) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// decode reads facts as strictly as a host writes them.
func decode(t *testing.T, facts []narad.Raw) []narad.Authority {
	t.Helper()
	events := make([]narad.Authority, len(facts))
	for i, raw := range facts {
		record, err := narad.DecodeStrict(raw)
		event, ok := record.(narad.Authority)
		if err != nil || !ok {
			t.Fatalf("fact %d: got %T, %v, want an authority event\n%s", i+1, record, err, raw)
		}
		events[i] = event
	}
	return events
}

// reduce makes the state of a whole session, and demands of each fact what a host must
// demand before it appends it.
func reduce(t *testing.T, facts []narad.Raw) *session.State {
	t.Helper()
	state := session.New(session.Options{Remember: session.RememberAll})
	for i, event := range decode(t, facts) {
		if got := state.Admit(event); got.Kind != session.Applied || got.Code != "" {
			t.Fatalf("fact %d: got %+v, want applied\n%s", i+1, got, facts[i])
		}
	}
	return state
}

// state is that of the session now, strictly reduced from its history.
func (b *bed) state(sessionID string) *session.State {
	b.t.Helper()
	return reduce(b.t, b.facts(sessionID))
}

// only returns the facts of one type.
func only[T narad.Authority](events []narad.Authority) []T {
	var list []T
	for _, event := range events {
		if one, ok := event.(T); ok {
			list = append(list, one)
		}
	}
	return list
}

// await follows a session from its first fact until a condition holds, and returns the
// fact with which it does.
func (b *bed) await(sessionID, what string, holds func(narad.Authority) bool) narad.Authority {
	b.t.Helper()
	s := b.stream(sessionID, "?afterSessionSequence=0", "")
	defer s.close()
	late := time.AfterFunc(patience, s.close) // heartbeats come for ever
	defer late.Stop()
	for {
		event, ok := s.next().record.(narad.Authority)
		if ok && holds(event) {
			return event
		}
		if s.err != nil {
			b.fatalf("the stream ended before %s: %v\n%s", what, s.err, s.lately())
		}
	}
}

// awaitEnd waits for the terminal of a run.
func (b *bed) awaitEnd(sessionID, runID string) narad.Authority {
	b.t.Helper()
	return b.await(sessionID, "the end of run "+runID, func(e narad.Authority) bool {
		return e.Envelope().RunID == runID && terminal(e)
	})
}

// awaitAsk waits for a session's n-th interrupt, counted from 1.
func (b *bed) awaitAsk(sessionID string, n int) *narad.InterruptRequested {
	b.t.Helper()
	seen := 0
	return b.await(sessionID, fmt.Sprintf("interrupt %d", n), func(e narad.Authority) bool {
		if _, ok := e.(*narad.InterruptRequested); ok {
			seen++
		}
		return seen == n
	}).(*narad.InterruptRequested)
}

func terminal(e narad.Authority) bool {
	switch e.Type() {
	case narad.TypeRunFinished, narad.TypeRunError, narad.TypeRunCancelled:
		return true
	}
	return false
}

// open is the ids of the interrupts that the inbox lists for a session, in its order.
func (b *bed) open(sessionID string) []string {
	b.t.Helper()
	ids := []string{}
	for i, err := range b.client().Interrupts(b.context(), client.InboxQuery{}) {
		b.must(err)
		if i.SessionID == sessionID {
			ids = append(ids, i.InterruptID)
		}
	}
	return ids
}

// head is the sequence of the session's last fact, as its summary tells it.
func (b *bed) head(sessionID string) int64 {
	b.t.Helper()
	s, err := b.client().Session(b.context(), sessionID)
	b.must(err)
	return s.CurrentSessionSequence
}
