package js

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

const patience = 30 * time.Second

// There is enough to be cut off in three times, then a decision, then a tool of the client.
const script = `
script: 1
steps:
  - repeat: {times: 120, steps: [{progress: {id: a, category: work, label: "one {{round}}"}}, {delay: 5ms}]}
  - say: {text: "The harbour is open. ⚓ It is 5 °C.", chunk: 3, pace: 5ms}
  - ask: {title: "May it?"}
  - client: {as: note, name: note.take, args: {text: "⚓ and so on", deep: {list: [1, null, "x"]}}}
  - say: "The note: {{note.outcome}}"
`

// TestClient runs the scenario with Node against the program.
func TestClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node is missing, and CI runs this test")
		}
		t.Skip("node is not on this machine")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	url, token, dir := startHost(t, ctx)

	cmd := exec.CommandContext(ctx, node, "scenario.mjs", url+client.Prefix, dir)
	cmd.Env = append(os.Environ(), "MAHATI_TOKEN="+token)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, said.String(), out.String())
	}
	var seen struct {
		Last, Applied               int64
		Cuts, Connections, Executed int
		Texts                       map[string]string
	}
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		t.Fatalf("node printed %s: %v", out.String(), err)
	}
	want := reduced(t, ctx, url, token)
	if seen.Last != want.Last() || seen.Applied != want.Last() {
		t.Errorf("got %d facts up to %d, want each of %d once", seen.Applied, seen.Last, want.Last())
	}
	if seen.Cuts != 3 || seen.Connections < 4 || seen.Executed != 1 {
		t.Errorf("got %d cuts, %d connections and %d executions, want 3, at least 4, and 1", seen.Cuts, seen.Connections, seen.Executed)
	}
	messages := 0
	for _, m := range want.Snapshot().Messages {
		if m.Role != "assistant" {
			continue
		}
		messages++
		if seen.Texts[m.MessageID] != m.Content {
			t.Errorf("message %s: got %q, want %q", m.MessageID, seen.Texts[m.MessageID], m.Content)
		}
	}
	if messages != 2 {
		t.Errorf("got %d messages of the agent, want 2", messages)
	}
	t.Logf("%s", out.String())
}

// reduced is the session as the Go client reduces it.
func reduced(t *testing.T, ctx context.Context, url, token string) *session.State {
	t.Helper()
	c, err := client.New(url, client.Options{Token: client.Token(token)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state := session.New(session.Options{SessionID: "js"})
	for raw, err := range c.Events(ctx, "js", client.HistoryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		record, err := narad.DecodeStrict(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := state.Admit(record); got.Kind != session.Applied {
			t.Fatalf("%v %s: %s", got.Kind, got.Code, raw)
		}
	}
	return state
}

// startHost builds the program and runs it on a home of its own until the test ends.
func startHost(t *testing.T, ctx context.Context) (url, token, dir string) {
	t.Helper()
	dir = t.TempDir()
	program := filepath.Join(dir, "mahati")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/mahati-host/mahati/cmd/mahati").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	cmd := exec.Command(program, "serve", "--home", home, "--listen", "127.0.0.1:0", "--script", agent, "--json", "--with-parent")
	cmd.Env = append(os.Environ(), "MAHATI_WORKSPACES_ROOTS="+dir, "MAHATI_STORAGE_RESERVE=64MiB", "MAHATI_STREAMS_HEARTBEAT=1s")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil { // the host ends with this process, however that ends
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host ended with %v\n%s", err, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct {
		URL string `json:"url"`
	}
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		t.Fatalf("the host did not say that it serves: %v\n%s", err, log.String())
	}
	text, err := os.ReadFile(filepath.Join(home, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return ready.URL, strings.TrimSpace(string(text)), dir
}
