package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// An MCPServer is a server of the Model Context Protocol that an agent is told to connect
// to: a command that the agent starts, or a URL. No secret stands in it, only names of
// the host's variables that hold them.
type MCPServer struct {
	Command []string // program and arguments; empty for a URL
	Env     []string // with a command: names of variables that the server gets
	URL     string   // http or https; empty for a command
	// HeaderEnv is, with a URL, for the name of a header the name of the variable that
	// holds its value.
	HeaderEnv map[string]string
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}$`)

// mcp reads the [agents.NAME.mcp.SERVER] tables of an agent.
func (l *loader) mcp(doc document, prefix string, raw any) map[string]MCPServer {
	tables, ok := raw.(map[string]any)
	if !ok {
		l.fail(doc.source(prefix), prefix, show(raw), "must be tables, ["+prefix+".NAME]")
		return nil
	}
	if len(tables) > maxListed {
		l.fail(doc.source(prefix), prefix, "", fmt.Sprintf("must be at most %d servers", maxListed))
		return nil
	}
	servers := make(map[string]MCPServer, len(tables))
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if s, ok := l.mcpServer(doc, join(prefix, name), name, tables[name]); ok {
			servers[name] = s
		}
	}
	return servers
}

func (l *loader) mcpServer(doc document, prefix, name string, raw any) (s MCPServer, ok bool) {
	values, isTable := raw.(map[string]any)
	switch {
	case !agentName.MatchString(name):
		l.fail(doc.source(prefix), prefix, "", "the name of a server "+agentRule)
		return s, false
	case !isTable:
		l.fail(doc.source(prefix), prefix, show(raw), "must be a table")
		return s, false
	}
	before := len(l.errs)
	for _, field := range slices.Sorted(maps.Keys(values)) {
		if err := s.set(field, values[field]); err != nil {
			// No value is shown: whoever misunderstands these keys writes a secret.
			l.fail(doc.source(join(prefix, field)), join(prefix, field), "", err.Error())
		}
	}
	if field, rule := s.check(); rule != "" && len(l.errs) == before {
		l.fail(doc.source(join(prefix, field)), join(prefix, field), "", rule)
	}
	return s, len(l.errs) == before
}

func (s *MCPServer) set(field string, raw any) (err error) {
	switch field {
	case "command":
		s.Command, err = commandOf(raw)
	case "env":
		var ok bool
		if s.Env, ok = stringsOf(raw); !ok {
			err = errors.New("must be a list of names of variables")
		}
	case "url":
		var ok bool
		if s.URL, ok = raw.(string); !ok {
			err = errors.New("must be a string")
		}
	case "header_env":
		s.HeaderEnv, err = headersOf(raw)
	default:
		err = errNoSuchKey
	}
	return err
}

func headersOf(raw any) (map[string]string, error) {
	rule := errors.New("must be a table of names of headers, each with the name of the variable that holds its value")
	table, ok := raw.(map[string]any)
	if !ok {
		return nil, rule
	}
	headers := make(map[string]string, len(table))
	for name, value := range table {
		variable, ok := value.(string)
		if !ok {
			return nil, rule
		}
		headers[name] = variable
	}
	return headers, nil
}

// check returns the field that is wrong and the rule that it breaks.
func (s MCPServer) check() (field, rule string) {
	switch {
	case (len(s.Command) == 0) == (s.URL == ""):
		return "command", "a server has a command or a url"
	case s.URL != "" && len(s.Env) > 0:
		return "env", "only a server with a command has an environment"
	case s.URL == "" && len(s.HeaderEnv) > 0:
		return "header_env", "only a server with a url has headers"
	case len(s.Env) > maxListed:
		return "env", fmt.Sprintf("must have at most %d entries", maxListed)
	case len(s.HeaderEnv) > maxListed:
		return "header_env", fmt.Sprintf("must have at most %d entries", maxListed)
	case !variables(s.Env):
		return "env", notNames
	}
	if s.URL != "" {
		return s.checkURL()
	}
	return "command", checkWords(s.Command)
}

func (s MCPServer) checkURL() (field, rule string) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.ContainsFunc(s.URL, unicode.IsControl) {
		return "url", "must be http(s)://host..., without a user or a password"
	}
	seen := make(map[string]bool)
	for name, variable := range s.HeaderEnv {
		if !headerName.MatchString(name) || seen[http.CanonicalHeaderKey(name)] {
			return "header_env", "must hold names of headers, each once"
		}
		seen[http.CanonicalHeaderKey(name)] = true
		if !variables([]string{variable}) {
			return "header_env", notNames
		}
	}
	return "", ""
}
