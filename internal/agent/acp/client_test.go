package acp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/workbench"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// remote is a session whose executor is a workbench in another directory than the agent's.
func remote(t *testing.T, how acp.Options) (s *stage, root string) {
	t.Helper()
	root = t.TempDir()
	bench, err := workbench.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bench.Close() })
	tools := bench.Tools()
	opt := agenttest.Options{Client: func(ctx context.Context, id, name string) (agent.ToolResult, error) {
		for _, f := range s.Facts() {
			start, ok := f.(*narad.ToolCallStarted)
			if !ok || start.ToolCallID != id {
				continue
			}
			response, err := tools[name](ctx, client.ToolCall{ToolCallID: id, ToolName: name, Args: start.Args})
			var refused *client.ToolError
			switch {
			case errors.As(err, &refused):
				return agent.ToolResult{Outcome: narad.OutcomeError, Response: narad.Raw(`{"code":"` + refused.Code + `","message":"` + refused.Message + `"}`)}, nil
			case err != nil:
				return agent.ToolResult{}, err
			}
			return agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: response}, nil
		}
		return agent.ToolResult{}, errors.New("the call has no start")
	}}
	how.Command = acptest.Command()
	return setWith(t, opt, how), root
}

// A file that the agent asks for is a tool call of the executor. A path in the agent's
// directory is one below the executor's root.
func TestFilesOfTheExecutor(t *testing.T) {
	s, root := remote(t, acp.Options{ReadFiles: true, WriteFiles: true})
	path := filepath.Join(s.cwd, "src", "a.txt")
	e := s.tells(lines(
		`say before`,
		`call w fs/write_text_file {"sessionId":"SESSION","path":"`+path+`","content":"one\ntwo \u00e9\n"}`,
		`wait w`,
		`call r fs/read_text_file {"sessionId":"SESSION","path":"`+path+`","line":2,"limit":1}`,
		`wait r`,
		`call n fs/read_text_file {"sessionId":"SESSION","path":"none"}`,
		`wait n`,
		`call o fs/read_text_file {"sessionId":"SESSION","path":"/etc/passwd"}`,
		`wait o`,
	), `
		say "before"
		start  fs/write_text_file edit {"path":"src/a.txt","content":"one\ntwo \u00e9\n"}
		finish  success {}
		say "[w: {}]"
		start  fs/read_text_file read {"path":"src/a.txt","line":2,"limit":1}
		finish  success {"content":"two é\n"}
		say "[r: {\"content\":\"two é\\n\"}]"
		start  fs/read_text_file read {"path":"none"}
		finish  error {"code":"not_found","message":"There is no such file or directory."}
		say "[n: -32002 not_found: There is no such file or directory.]"
		start  fs/read_text_file read {"path":"/etc/passwd"}
		finish  error {"code":"outside_root","message":"The path is not below the root."}
		say "[o: -32603 outside_root: The path is not below the root.]"`)
	if e.Outcome != agent.Finished {
		t.Errorf("the run ended as %+v", e)
	}
	if text, err := os.ReadFile(filepath.Join(root, "src", "a.txt")); err != nil || string(text) != "one\ntwo é\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
	for _, f := range s.Facts() {
		if start, ok := f.(*narad.ToolCallStarted); ok && start.Executor != narad.ExecutorClient {
			t.Errorf("%s is executed by %s", start.ToolName, start.Executor)
		}
	}
}

func TestTerminalsOfTheExecutor(t *testing.T) {
	s, root := remote(t, acp.Options{Terminals: true})
	s.Do(s.agent, lines(
		`call c terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","pwd; exit 4"],"cwd":"`+s.cwd+`"}`,
		`wait c`,
		`call x terminal/wait_for_exit {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait x`,
		`call o terminal/output {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait o`,
		`call k terminal/kill {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait k`,
		`call r terminal/release {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait r`,
		`call z terminal/output {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait z`,
	))
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	got := s.says()
	for _, want := range []string{
		`[x: {"exitCode":4,"signal":null}]`, `[o: {"output":"` + real + `\n","truncated":false,"exitStatus":{"exitCode":4,"signal":null}}]`,
		`[k: {}]`, `[r: {}]`, `[z: -32603 no_such_terminal: `,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the agent was told\n%s\nand not\n%s", got, want)
		}
	}
}

// What is not offered is refused, and no fact; the agent is told what is.
func TestOnlyWhatIsOffered(t *testing.T) {
	for _, tt := range []struct {
		how     acp.Options
		offered string
	}{
		{acp.Options{}, `"fs":{},`},
		{acp.Options{ReadFiles: true}, `"fs":{"readTextFile":true}`},
		{acp.Options{WriteFiles: true, Terminals: true}, `"fs":{"writeTextFile":true},"terminal":true`},
	} {
		s, _ := remote(t, tt.how)
		s.Do(s.agent, lines(
			`offered`,
			`call r fs/read_text_file {"sessionId":"SESSION","path":"x"}`,
			`wait r`,
			`call c terminal/create {"sessionId":"SESSION","command":"true"}`,
			`wait c`,
			`call m fs/mount {"sessionId":"SESSION"}`,
			`wait m`,
		))
		got := s.says()
		if !strings.Contains(got, strings.TrimSuffix(tt.offered, ",")) || !tt.how.Terminals && strings.Contains(got, `"terminal":true`) {
			t.Errorf("%+v is offered as %s", tt.how, got)
		}
		for call, offered := range map[string]bool{"r": tt.how.ReadFiles, "c": tt.how.Terminals, "m": false} {
			if strings.Contains(got, "["+call+": -32601 ") == offered {
				t.Errorf("%s is offered: %v, and the agent was told %s", call, offered, got)
			}
		}
	}
}

// What cannot be read is refused, and what is of another session, too; nothing of it is a
// fact.
func TestBadRequestsForFiles(t *testing.T) {
	s, _ := remote(t, acp.Options{ReadFiles: true})
	s.tells(lines(
		`call a fs/read_text_file {"sessionId":"other","path":"x"}`, `wait a`,
		`call b fs/read_text_file {"path":"x"}`, `wait b`,
		`call c fs/read_text_file {"sessionId":"SESSION","path":1}`, `wait c`,
		`call d fs/read_text_file []`, `wait d`,
	), `say "[a: -32603 there is no turn that this could belong to][b: -32602 invalid params][c: -32602 invalid params][d: -32602 invalid params]"`)
}

// A stop ends a call that hangs: the run ends, and the call is the host's to end.
func TestStopEndsACallOfTheExecutor(t *testing.T) {
	s, _ := remote(t, acp.Options{Terminals: true})
	r := s.Start(s.agent, lines(
		`call c terminal/create {"sessionId":"SESSION","command":"sleep 1000"}`,
		`wait c`,
		`call x terminal/wait_for_exit {"sessionId":"SESSION","terminalId":"@c@"}`,
		`wait x`,
		`cancelled`,
	))
	s.until(r, func() bool { return strings.Count(s.Story(), "tool.call.started") == 2 })
	r.Stop()
	if e := s.bounded(r); e.Outcome != agent.Cancelled {
		t.Errorf("the run ended as %+v, want cancelled", e)
	}
	if got := s.says(); !strings.Contains(got, "[x: -32603 the run is being stopped]") {
		t.Errorf("the agent was told %s", got)
	}
}
