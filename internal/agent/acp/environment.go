package acp

import (
	"os"
	"slices"
	"strings"
)

// usual are the variables that every agent gets of the host's environment; those that
// begin with XDG_ come in addition. None of them holds a secret.
var usual = []string{"PATH", "HOME", "USER", "SHELL", "TERM", "LANG", "TMPDIR"}

// environment returns what an agent sees.
func (o *Options) environment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(usual, name) || strings.HasPrefix(name, "XDG_") || slices.Contains(o.PassEnv, name) {
			env = append(env, v)
		}
	}
	return append(env, o.Env...)
}

// secrets returns the values that must not be seen in a log: those of variables and
// servers that are configured, and the arguments of the command.
func (o *Options) secrets() []string {
	const shortest = 6 // what is shorter says nothing, and stands in too much else
	var list []string
	add := func(value string) {
		if len(value) >= shortest {
			list = append(list, value)
		}
	}
	for _, name := range o.PassEnv {
		add(os.Getenv(name))
	}
	for _, v := range o.Env {
		_, value, _ := strings.Cut(v, "=")
		add(value)
	}
	for _, m := range o.MCPServers {
		for _, value := range secretsOf(m) {
			add(value)
		}
	}
	for _, word := range o.Command[1:] {
		_, value, _ := strings.Cut(word, "=")
		add(word)
		add(value)
	}
	slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) }) // the whole before its part
	return list
}
