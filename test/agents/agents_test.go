package agents_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// public is an agent of the npm registry.
type public struct {
	name    string // of its directory
	program string // of its package
	args    []string
	env     func(home, url string) []string
	// files are written before it starts: below its home, or below its work.
	home, work func(url string) map[string]string
}

func none(string) map[string]string { return nil }

var publics = []public{
	{
		name: "opencode-ai", program: "opencode", args: []string{"acp"}, home: none,
		env: func(string, string) []string {
			return []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}
		},
		work: func(url string) map[string]string {
			return map[string]string{"opencode.json": string(encode(object{
				"autoupdate": false, "share": "disabled", "model": "local/scripted", "small_model": "local/scripted",
				"permission": object{"bash": "ask", "edit": "ask"},
				"provider": object{"local": object{
					"npm": "@ai-sdk/openai-compatible", "name": "Local",
					"options": object{"baseURL": url + "/v1", "apiKey": "none"},
					"models":  object{"scripted": object{"name": "Scripted", "tool_call": true}},
				}},
			}))}
		},
	},
	{
		name: "@qwen-code/qwen-code", program: "qwen", args: []string{"--acp"}, work: none,
		env: func(_, url string) []string {
			return []string{"OPENAI_API_KEY=none-needed", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_MODEL=scripted", "QWEN_TELEMETRY_ENABLED=false"}
		},
		home: func(string) map[string]string {
			return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`}
		},
	},
	{
		name: "@google/gemini-cli", program: "gemini", args: []string{"--acp"}, work: none,
		env: func(_, url string) []string {
			return []string{"GEMINI_API_KEY=none-needed", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_TELEMETRY_ENABLED=false"}
		},
		home: func(string) map[string]string {
			return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false}}`}
		},
	},
	{
		name: "@agentclientprotocol/claude-agent-acp", program: "claude-agent-acp", home: none, work: none,
		env: func(_, url string) []string {
			return []string{"ANTHROPIC_API_KEY=none-needed", "ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1"}
		},
	},
	{
		name: "@agentclientprotocol/codex-acp", program: "codex-acp", work: none,
		env: func(_, _ string) []string {
			return []string{"OPENAI_API_KEY=none-needed", "NO_BROWSER=1", "INITIAL_AGENT_MODE=read-only"}
		},
		home: func(url string) map[string]string {
			return map[string]string{".codex/config.toml": fmt.Sprintf(`
model = "scripted"
model_provider = "local"
approval_policy = "on-request"
sandbox_mode = "read-only"
[model_providers.local]
name = "Local"
base_url = %q
wire_api = "responses"
env_key = "OPENAI_API_KEY"
[analytics]
enabled = false
`, url+"/v1")}
		},
	},
}

// TestPublicAgents needs the directory that test/agents/run makes.
func TestPublicAgents(t *testing.T) {
	dir := os.Getenv("MAHATI_AGENTS")
	if dir == "" {
		t.Skip("make agents runs this test")
	}
	ran := 0
	for _, p := range publics {
		program := filepath.Join(dir, p.name, "node_modules", ".bin", p.program)
		if _, err := os.Stat(program); err != nil {
			t.Logf("%s is not installed", p.name)
			continue
		}
		ran++
		t.Run(strings.ReplaceAll(p.name, "/", "."), func(t *testing.T) { p.play(t, program) })
	}
	if ran < 2 {
		t.Errorf("got %d agents, want at least two", ran)
	}
}

func (p *public) play(t *testing.T, program string) {
	t.Run("approved", func(t *testing.T) { p.permission(t, program, "approve", true) })
	t.Run("denied", func(t *testing.T) { p.permission(t, program, "deny", false) })
	t.Run("stopped", func(t *testing.T) { p.stopped(t, program) })
	t.Run("loaded", func(t *testing.T) { p.loaded(t, program) })
}

// scene is an agent in a session, with a model to itself.
type scene struct {
	*agenttest.Session
	kind  agent.Kind
	agent agent.Agent
	cwd   string
	model *model
}

const made = "made-by-the-agent.txt"

func (p *public) scene(t *testing.T, program string, answer func(session.Interrupt) (agenttest.Decision, bool)) *scene {
	t.Helper()
	s := &scene{cwd: t.TempDir(), model: newModel(t, "echo made > "+made+" && cat "+made)}
	home := t.TempDir()
	write(t, home, p.home(s.model.URL))
	write(t, s.cwd, p.work(s.model.URL))
	env := append(p.env(home, s.model.URL), "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_DATA_HOME="+home+"/.data",
		"XDG_STATE_HOME="+home+"/.state", "XDG_CACHE_HOME="+home+"/.cache")
	level := slog.LevelWarn
	if os.Getenv("MAHATI_AGENTS_LOG") != "" {
		level = slog.LevelDebug
	}
	var err error
	s.kind, err = acp.New(acp.Options{
		Name: p.name, Command: append([]string{program}, p.args...), Env: env,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Session = agenttest.New(t, agenttest.Options{Cwd: s.cwd, Answer: answer})
	s.agent = s.Open(s.kind)
	t.Cleanup(func() { s.leave(t) })
	return s
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// leave closes the agent, tells what was seen and looks that nothing is left.
func (s *scene) leave(t *testing.T) {
	owned := s.Owned()
	began := time.Now()
	if err := s.agent.Close(); err != nil {
		t.Errorf("close the agent: %v", err)
	}
	for _, id := range owned {
		if process.Same(id) {
			t.Errorf("process %d is still there", id.PID)
		}
	}
	t.Logf("closed in %v; facts:\n%s", time.Since(began).Round(time.Millisecond), s.Story())
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	t.Logf("asked of the model: %s", strings.Join(slices.Compact(s.model.requests), ", "))
	if refused := s.Refused(); len(refused) > 0 {
		t.Errorf("refused records: %q", refused)
	}
}

// wait returns how a run ended.
func wait(t *testing.T, r *agenttest.Run) agent.Ending {
	t.Helper()
	select {
	case <-r.Done():
		return r.Wait()
	case <-time.After(3 * time.Minute):
		t.Fatal("the run does not end")
		return agent.Ending{}
	}
}

func (s *scene) exists() bool {
	_, err := os.Stat(filepath.Join(s.cwd, made))
	return err == nil
}

func (p *public) permission(t *testing.T, program, decision string, exists bool) {
	asked := 0
	s := p.scene(t, program, func(session.Interrupt) (agenttest.Decision, bool) {
		asked++
		return agenttest.Decision{Decision: decision}, true
	})
	e := wait(t, s.Start(s.agent, "Make the file."))
	t.Logf("ending: %+v", e)
	if e.Outcome == agent.Failed || asked == 0 || s.exists() != exists {
		t.Errorf("got %+v after %d questions, and a file: %t; want an end, a question, and a file: %t", e, asked, s.exists(), exists)
	}
	for _, rec := range s.Facts() {
		if f, ok := rec.(*narad.ToolCallFinished); ok && (f.Outcome == narad.OutcomeSuccess) != exists {
			t.Errorf("got a call that ended with %s (%s)", f.Outcome, f.Code)
		}
	}
}

func (p *public) stopped(t *testing.T, program string) {
	s := p.scene(t, program, nil)
	s.model.hang = make(chan struct{})
	t.Cleanup(func() { close(s.model.hang) })
	r := s.Start(s.agent, "Make the file.")
	for n := 0; !strings.Contains(s.said(), strings.TrimSpace(firstWords)); n = s.Batches() {
		if !s.Reach(n+1, r.Done()) {
			t.Fatalf("the run is over: %+v", r.Wait())
		}
	}
	began := time.Now()
	r.Stop()
	e := wait(t, r)
	t.Logf("stopped after %v: %+v", time.Since(began).Round(time.Millisecond), e)
	if e.Outcome != agent.Cancelled {
		t.Errorf("got %+v, want a run that is cancelled", e)
	}
}

func (s *scene) said() string {
	var text strings.Builder
	for _, rec := range s.Facts() {
		if d, ok := rec.(*narad.MessageTextDelta); ok {
			text.WriteString(d.Delta)
		}
	}
	return text.String()
}

// loaded ends the process between two runs.
func (p *public) loaded(t *testing.T, program string) {
	s := p.scene(t, program, func(session.Interrupt) (agenttest.Decision, bool) {
		return agenttest.Decision{Decision: "approve"}, true
	})
	wait(t, s.Start(s.agent, "Make the file."))
	if err := s.agent.Close(); err != nil {
		t.Fatal(err)
	}
	ref := s.Remembered()
	s.agent = s.Open(s.kind)
	told := strings.Count(s.said(), lastWords)
	e := wait(t, s.Start(s.agent, "And again."))
	if got := strings.Count(s.said(), lastWords) - told; got > 1 {
		t.Errorf("the second run says its last words %d times: the history is told as its own", got)
	}
	t.Logf("loaded the session: %t; ending: %+v", s.Remembered() == ref, e)
	if e.Outcome == agent.Failed {
		t.Errorf("got %+v, want the next run to work", e)
	}
}
