package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/config"
)

type configCommands struct {
	Check   configCheckCommand   `cmd:"" help:"Say what is wrong with the configuration of a home, all at once."`
	Example configExampleCommand `cmd:"" help:"Print the documented configuration file."`
}

func (configCommands) Help() string { return "Example: mahati config example" }

type configExampleCommand struct{}

func (configExampleCommand) Help() string {
	return "Example: mahati config example > ~/.local/state/mahati/config.toml"
}

func (configExampleCommand) Run(a *app) error {
	_, err := io.WriteString(a.out, config.Example())
	return err
}

type configCheckCommand struct {
	homeFlag
	JSON bool `name:"json" help:"Print each problem as one JSON object, or the summary as one."`
}

func (configCheckCommand) Help() string {
	return `Reads the file, the environment and the scripts that agents name, as the host will. The exit code is
1 when something is wrong.

Example: mahati config check --home ./home`
}

// configLine is a sound configuration, for programs.
type configLine struct {
	Home   string   `json:"home"`
	Listen string   `json:"listen"`
	Agents []string `json:"agents"`
}

// problemLine is something that is wrong with one. What has no place in a file, the
// environment or a flag has only a rule.
type problemLine struct {
	Source string `json:"source,omitzero"`
	Key    string `json:"key,omitzero"`
	Value  string `json:"value,omitzero"`
	Rule   string `json:"rule"`
}

func (c configCheckCommand) Run(a *app) error {
	cfg, err := c.read(a)
	if err == nil {
		err = checkScripts(cfg)
	}
	switch {
	case err != nil && c.JSON:
		return a.printProblems(err)
	case err != nil:
		return a.each(err)
	}
	agents := slices.Sorted(maps.Keys(cfg.Agents.Named))
	if c.JSON {
		return a.printJSON(configLine{cfg.Home, cfg.Listen, append([]string{}, agents...)})
	}
	_, err = fmt.Fprintf(a.out, "ok: home %s, listens on %s, agents: %s\n",
		oneLine(cfg.Home), cfg.Listen, orWord(strings.Join(agents, ", "), "none but the built-in scripts"))
	return err
}

// printProblems prints the parts of a joined error, and returns what is left to say.
func (a *app) printProblems(err error) error {
	for _, part := range partsOf(err) {
		line := problemLine{Rule: part.Error()}
		var setting *config.Error
		if errors.As(part, &setting) {
			line = problemLine{setting.Source, setting.Key, setting.Value, setting.Rule}
		}
		if err := a.printJSON(line); err != nil {
			return err
		}
	}
	return &fault{code: exitFailed}
}

// load reads the configuration of the home, and tells each error on a line of its own.
func (h homeFlag) load(a *app, overrides ...config.Override) (config.Config, error) {
	cfg, err := h.read(a, overrides...)
	return cfg, a.each(err)
}

func (h homeFlag) read(a *app, overrides ...config.Override) (config.Config, error) {
	home, err := h.dir(a)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(home, a.Getenv, overrides...)
}

// partsOf takes a joined error apart.
func partsOf(err error) []error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return several.Unwrap()
	}
	return []error{err}
}

// each tells the parts of a joined error one by one, and leaves the last to the caller.
func (a *app) each(err error) error {
	if err == nil {
		return nil
	}
	parts := partsOf(err)
	for _, part := range parts[:len(parts)-1] {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.err.red("mahati:"), oneLine(part.Error()))
	}
	return parts[len(parts)-1]
}

// checkScripts reads the scripts that agents name, as the host will.
func checkScripts(cfg config.Config) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents.Named)) {
		agent := cfg.Agents.Named[name]
		if agent.Kind != config.KindScript {
			continue
		}
		file, err := os.ReadFile(agent.File)
		if err == nil {
			_, err = script.New(file, script.Options{Name: agent.File})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("agent %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
