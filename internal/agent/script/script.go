package script

import (
	"context"
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
)

// Options are what may be chosen of an agent. The zero value is what users have.
type Options struct {
	// Name is how the file is called in errors; empty means "script".
	Name string
	// Agent is what the agent is called by: its rounds name it where no model is chosen.
	// Empty tells of no such rounds.
	Agent string
	// Crash is what a crash step calls: it should end the host at once. Nil refuses
	// files with such a step.
	Crash func()
	// NoCommands refuses files with a tool that runs a command: for files that come from
	// somebody who may not do so.
	NoCommands bool
	// Env is the environment of commands; nil passes PATH, HOME, TMPDIR, LANG and USER
	// of the host and nothing else.
	Env []string
}

// New reads a file. An error is an [*Error].
func New(file []byte, opt Options) (agent.Kind, error) {
	if opt.Name == "" {
		opt.Name = "script"
	}
	if opt.Env == nil {
		opt.Env = ordinaryEnv()
	}
	s, err := load(file, opt)
	if err != nil {
		return nil, err
	}
	return &kind{s, opt}, nil
}

//go:embed builtin/*.yaml
var builtins embed.FS

// Builtin returns one of the scripts that are always there: "demo", a session of a
// coding agent in small, or "echo", which answers with what it was told.
func Builtin(name string) (agent.Kind, error) {
	file, err := builtins.ReadFile("builtin/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("find the built-in script %q: %w", name, err)
	}
	return New(file, Options{Name: name, Agent: name})
}

// kind is a script as a configured agent.
type kind struct {
	script *script
	opt    Options
}

// Open returns an agent for a session. It starts nothing.
func (k *kind) Open(_ context.Context, s agent.Session) (agent.Agent, error) {
	return newPlayer(k.script, k.opt, s), nil
}

// Resumes reports true: a run goes on after a restart.
func (k *kind) Resumes() bool { return true }

// Steers reports whether a scenario has a step that takes messages. The agent refuses
// them while it plays another one.
func (k *kind) Steers() bool {
	for _, s := range k.script.scenarios {
		if s.steerable {
			return true
		}
	}
	return false
}

// script is what a file says.
type script struct {
	rules     []rule
	scenarios map[string]*scenario
	models    []agent.Model
	counts    bool // whether anything asks for the number of the turn
}

// rule picks a scenario. Its zero conditions hold of everything.
type rule struct {
	contains string
	matches  *regexp.Regexp
	turn     int
	play     string
}

func (r *rule) holds(prompt string, turn int) bool {
	return (r.turn == 0 || r.turn == turn) &&
		strings.Contains(strings.ToLower(prompt), r.contains) &&
		(r.matches == nil || r.matches.MatchString(prompt))
}

// pick returns the scenario of the first rule that holds, nil for none.
func (s *script) pick(prompt string, turn int) *scenario {
	i := slices.IndexFunc(s.rules, func(r rule) bool { return r.holds(prompt, turn) })
	if i < 0 {
		return nil
	}
	return s.scenarios[s.rules[i].play]
}

// scenario is what the agent does for a prompt.
type scenario struct {
	steps sequence
	// steerable says that a step takes messages to the run under way.
	steerable bool
}

// manner is how text is streamed: in chunks of so many bytes, with so much time
// between them. No chunk size means all at once.
type manner struct {
	chunk int
	pace  time.Duration
	// whole keeps characters whole: another branch may record something between two
	// chunks, and then nothing puts the halves together.
	whole bool
}
