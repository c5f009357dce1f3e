package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Kinds of agents.
const (
	KindACP    = "acp"    // a subprocess that speaks the Agent Client Protocol
	KindScript = "script" // a file of steps, without a model
)

// An Agent is one that sessions can name.
type Agent struct {
	Kind    string
	Command []string // acp: program and arguments
	File    string   // script: absolute path
	Env     []string // acp: variables passed on besides the usual few
	CWD     string   // acp: absolute; empty: the directory of the session
	// AuthMethod is, for acp, the agent's id of the way to sign in that is used when it
	// asks for one; empty: such a run fails.
	AuthMethod string
	// Models are, for acp, those on which the agent can run, as "provider/model", the default
	// first; none: those of which it tells. Variants are the presets of each of them.
	Models   []string
	Variants []string
	// MCP are, for acp, the servers that the agent is told of, by name.
	MCP map[string]MCPServer
	// Executors say which executor runs a tool, by the tool's name, or its beginning and *.
	Executors map[string]string
}

const (
	maxArguments  = 256
	maxAuthMethod = 256
	agentRule     = "must be a lower-case letter or digit, then up to 63 of these, - or _"
)

var (
	agentName    = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// AddAgent adds an agent that a flag defines, relative paths made absolute by
// the caller. An agent of the same name in the file gives way to it.
func (c *Config) AddAgent(name string, a Agent) error {
	if !agentName.MatchString(name) {
		return &Error{Source: "agent", Key: name, Rule: agentRule}
	}
	if key, rule := a.check(); rule != "" {
		return &Error{Source: "agent " + name, Key: key, Rule: rule}
	}
	named := maps.Clone(c.Agents.Named)
	if named == nil {
		named = make(map[string]Agent)
	}
	named[name] = a
	c.Agents.Named = named
	return nil
}

// agent reads one [agents.NAME].
func (l *loader) agent(doc document, name string, values map[string]any) {
	prefix := join("agents", name)
	if !agentName.MatchString(name) {
		l.fail(doc.source(prefix), prefix, "", "the name of an agent "+agentRule)
		return
	}
	before := len(l.errs)
	var a Agent
	for _, field := range slices.Sorted(maps.Keys(values)) {
		key, raw := join(prefix, field), values[field]
		if field == "mcp" {
			a.MCP = l.mcp(doc, key, raw)
			continue
		}
		if field == "executors" {
			a.Executors = l.assignments(doc, key, raw)
			continue
		}
		if err := a.set(field, raw); err != nil {
			shown := show(raw)
			if errors.Is(err, errNoSuchKey) {
				shown = ""
			}
			l.fail(doc.source(key), key, shown, err.Error())
		}
	}
	if len(l.errs) > before {
		return
	}
	a.File, a.CWD = l.absolute(a.File), l.absolute(a.CWD)
	if field, rule := a.check(); rule != "" {
		l.fail(doc.source(join(prefix, field)), join(prefix, field), "", rule)
		return
	}
	if l.config.Agents.Named == nil {
		l.config.Agents.Named = make(map[string]Agent)
	}
	l.config.Agents.Named[name] = a
}

var errNoSuchKey = errors.New("there is no such setting")

func (a *Agent) set(field string, raw any) error {
	one, isText := raw.(string)
	needText := func(at *string) error {
		if !isText {
			return errors.New("must be a string")
		}
		*at = one
		return nil
	}
	switch field {
	case "kind":
		return needText(&a.Kind)
	case "file":
		return needText(&a.File)
	case "cwd":
		return needText(&a.CWD)
	case "models", "variants":
		words, ok := stringsOf(raw)
		if !ok {
			return errors.New("must be a list of strings")
		}
		if field == "models" {
			a.Models = words
		} else {
			a.Variants = words
		}
		return nil
	case "env":
		names, ok := stringsOf(raw)
		if !ok {
			return errors.New("must be a list of names of variables")
		}
		a.Env = names
		return nil
	case "auth_method":
		return needText(&a.AuthMethod)
	case "command":
		words, err := commandOf(raw)
		a.Command = words
		return err
	}
	return errNoSuchKey
}

// commandOf reads a command: one line of it, or its words.
func commandOf(raw any) ([]string, error) {
	if line, isText := raw.(string); isText {
		return SplitCommand(line)
	}
	words, ok := stringsOf(raw)
	if !ok {
		return nil, errors.New("must be a command line, or a list of its words")
	}
	return words, nil
}

// check returns the field that is wrong and the rule that it breaks.
func (a Agent) check() (field, rule string) {
	switch a.Kind {
	case KindACP:
		return a.checkACP()
	case KindScript:
		return a.checkScript()
	}
	return "kind", `must be "acp" or "script"`
}

func (a Agent) checkACP() (field, rule string) {
	switch {
	case len(a.Command) == 0 || a.Command[0] == "":
		return "command", "an acp agent needs the command that starts it"
	case a.File != "":
		return "file", "only script agents have a file"
	case a.CWD != "" && !filepath.IsAbs(a.CWD):
		return "cwd", "must be an absolute path"
	case len(a.Env) > maxListed:
		return "env", fmt.Sprintf("must have at most %d entries", maxListed)
	case !variables(a.Env):
		return "env", notNames
	case len(a.AuthMethod) > maxAuthMethod || strings.ContainsFunc(a.AuthMethod, unicode.IsControl):
		return "auth_method", fmt.Sprintf("must be at most %d bytes without control characters", maxAuthMethod)
	}
	if rule := checkWords(a.Command); rule != "" {
		return "command", rule
	}
	return checkModels(a.Models, a.Variants)
}

const notNames = "must hold names of variables alone, not values"

// variables reports whether each is the name of a variable. What is none must not be
// shown: whoever writes NAME=VALUE writes a secret.
func variables(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !variableName.MatchString(name) })
}

// checkWords returns the rule that a command breaks, "" for none.
func checkWords(command []string) string {
	switch {
	case command[0] == "":
		return "must name a program"
	case len(command) > maxArguments:
		return fmt.Sprintf("must have at most %d words", maxArguments)
	case strings.ContainsRune(strings.Join(command, ""), 0):
		return "must not hold NUL"
	}
	return ""
}

func (a Agent) checkScript() (field, rule string) {
	switch {
	case a.File == "":
		return "file", "a script agent needs a file"
	case !filepath.IsAbs(a.File):
		return "file", "must be an absolute path"
	case len(a.Command) > 0:
		return "command", "only acp agents have a command"
	case len(a.Env) > 0:
		return "env", "only acp agents have an environment"
	case a.CWD != "":
		return "cwd", "only acp agents have a directory"
	case a.AuthMethod != "":
		return "auth_method", "only acp agents sign in"
	case len(a.Models) > 0, len(a.Variants) > 0:
		return "models", "of a script stand in its file"
	case len(a.MCP) > 0:
		return "mcp", "only acp agents are told of servers"
	}
	return "", ""
}

// SplitCommand splits a command line into words, with the quotes and backslashes
// of a shell and nothing else of it: no variables, no patterns.
func SplitCommand(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	runes := []rune(line)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == '\\' && quote != '\'':
			if i++; i == len(runes) {
				return nil, errors.New("must not end with a backslash")
			}
			// Inside double quotes a backslash stands for itself before other letters.
			if quote == '"' && runes[i] != '"' && runes[i] != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(runes[i])
			inWord = true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("has a quote without its end")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
