package mcptool_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/mcptool"
	"github.com/mahati-host/mahati/internal/mcptool/mcptest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	goleak.VerifyTestMain(m)
}

// stage is a server that runs.
type stage struct {
	t      *testing.T
	server *mcptool.Server
	ran    string // a file
}

func start(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, ran: filepath.Join(t.TempDir(), "ran")}
	var err error
	if s.server, err = mcptool.Start(t.Context(), mcptest.Command(s.ran), mcptool.Options{Log: t.Output()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := s.server.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *stage) call(ctx context.Context, id, tool, args string) (narad.Raw, error) {
	s.t.Helper()
	return s.server.Tools()[tool](ctx, client.ToolCall{ToolCallID: id, ToolName: tool, Args: narad.Raw(args)})
}

// code makes a call that must fail.
func (s *stage) code(tool, args string) (code, message string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	r, err := s.call(ctx, "c", tool, args)
	var failed *client.ToolError
	if !errors.As(err, &failed) {
		s.t.Fatalf("%s: got %s, %v, want it failed", tool, r, err)
	}
	return failed.Code, failed.Message
}

func (s *stage) runs() []string {
	s.t.Helper()
	text, err := os.ReadFile(s.ran)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestToolsAreTheServers(t *testing.T) {
	s := start(t)
	got := strings.Join(slices.Sorted(maps.Keys(s.server.Tools())), " ")
	if want := "dies echo fails hangs refuses token"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A result is the response with its bytes, also of many calls at once.
func TestResultsKeepTheirBytes(t *testing.T) {
	t.Setenv("MAHATI_TOKEN", "mht_secret")
	s := start(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			args := `{"n":1.10,"big":123456789012345678901234567890,"i":` + string(rune('a'+i)) + `}`
			args = strings.Replace(args, `"i":`+string(rune('a'+i)), `"i":"`+string(rune('a'+i))+`"`, 1)
			r, err := s.call(t.Context(), "call-"+string(rune('a'+i)), "echo", args)
			if err != nil || string(r.Field("structuredContent")) != args {
				t.Errorf("got %s, %v; want the structured content %s", r, err, args)
			}
		})
	}
	all.Wait()
	r, err := s.call(t.Context(), "t", "token", `{}`)
	if err != nil || !strings.Contains(string(r), `"token="`) {
		t.Errorf("the server sees a token, or nothing: %s, %v", r, err)
	}
}

func TestFailures(t *testing.T) {
	s := start(t)
	if code, message := s.code("fails", `{}`); code != "tool_error" || message != "no luck" {
		t.Errorf("an error of the tool is %s %q", code, message)
	}
	if code, _ := s.code("refuses", `{}`); code != "mcp_refused" {
		t.Errorf("a refusal is %s", code)
	}
	if code, _ := s.code("echo", `[1]`); code != "mcp_refused" {
		t.Errorf("arguments that are no object are %s", code)
	}
}

// A server that ends while a tool runs leaves an outcome that nobody knows. The tool is not
// run again, and the next call starts another server.
func TestServerEndsInACall(t *testing.T) {
	s := start(t)
	if code, _ := s.code("dies", `{}`); code != string(client.CodeOutcomeUnknown) {
		t.Errorf("it ended with %s, want outcome_unknown", code)
	}
	if r, err := s.call(t.Context(), "next", "echo", `{}`); err != nil {
		t.Errorf("the next call: %s, %v", r, err)
	}
	runs := s.runs()
	if len(runs) != 2 || !strings.HasPrefix(runs[0], "dies ") || !strings.HasPrefix(runs[1], "echo ") || runs[0][5:] == runs[1][5:] {
		t.Errorf("ran %q, want each once, in two processes", runs)
	}
}

// A call ends with its context, and its server goes on.
func TestCallEndsWithItsContext(t *testing.T) {
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.call(ctx, "h", "hangs", `{}`)
		ended <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, err := os.Stat(s.ran); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the tool does not run")
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := s.call(t.Context(), "e", "echo", `{}`); err != nil {
		t.Error(err)
	}
}

func TestStartRefuses(t *testing.T) {
	for name, command := range map[string][]string{
		"nothing": nil, "no program": {"/no/such/program"}, "one that ends": {"/bin/sh", "-c", "exit 3"},
		"one that speaks otherwise": {"/bin/sh", "-c", "echo hello; cat >/dev/null"},
	} {
		s, err := mcptool.Start(t.Context(), command, mcptool.Options{StartTimeout: 2 * time.Second})
		if err == nil {
			t.Errorf("%s: it started", name)
			_ = s.Close()
		}
	}
}
