package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

func (versionCommand) Help() string { return "Example: mahati version --json" }

type versionLine struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitzero"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol string `json:"protocol"`
}

func (c versionCommand) Run(a *app) error {
	line := versionLine{
		Version: a.version(), Revision: revision(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: narad.Version,
	}
	if c.JSON {
		return a.printJSON(line)
	}
	_, err := fmt.Fprintf(a.out, "mahati %s (%s, %s, %s)\n", line.Version, line.Protocol, line.Go, line.Platform)
	return err
}

// version is what the program calls itself: as it was told when it was linked, or as
// the module was fetched, or "devel".
func (a *app) version() string {
	fetched := ""
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		fetched = info.Main.Version
	}
	return cmp.Or(a.Version, fetched, "devel")
}

// revision is the commit that the program was built from, if the build knows.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// printJSON writes one value as one line.
func (a *app) printJSON(v any) error {
	data, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return a.printLine(data)
}

// printLine writes bytes as they are, and the end of the line.
func (a *app) printLine(data []byte) error {
	if _, err := a.out.Write(append(data[:len(data):len(data)], '\n')); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
