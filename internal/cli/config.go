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
}

func (configCheckCommand) Help() string { return "Example: mahati config check --home ./home" }

func (c configCheckCommand) Run(a *app) error {
	cfg, err := c.load(a)
	if err != nil {
		return err
	}
	if err := a.each(checkScripts(cfg)); err != nil {
		return err
	}
	agents := slices.Sorted(maps.Keys(cfg.Agents.Named))
	_, err = fmt.Fprintf(a.out, "ok: home %s, listens on %s, agents: %s\n",
		oneLine(cfg.Home), cfg.Listen, orWord(strings.Join(agents, ", "), "none but the built-in scripts"))
	return err
}

// load reads the configuration of the home, and tells each error on a line of its own.
func (h homeFlag) load(a *app, overrides ...config.Override) (config.Config, error) {
	home, err := h.dir(a)
	if err != nil {
		return config.Config{}, err
	}
	cfg, err := config.Load(home, a.Getenv, overrides...)
	return cfg, a.each(err)
}

// each tells the parts of a joined error one by one, and leaves the hint to the last.
func (a *app) each(err error) error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) {
		return err
	}
	parts := several.Unwrap()
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
