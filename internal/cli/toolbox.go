package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/mcptool"
	"github.com/mahati-host/mahati/internal/workbench"
	"github.com/mahati-host/mahati/narad/client"
)

// toolbox is the tools of an executor, and what they hold.
type toolbox struct {
	tools map[string]client.ToolFunc
	parts []func() error
}

// close ends what the tools hold.
func (b *toolbox) close() error {
	var errs []error
	for _, part := range slices.Backward(b.parts) {
		errs = append(errs, part())
	}
	return errors.Join(errs...)
}

// toolbox makes the tools that the flags name.
func (c executorCommand) toolbox(ctx context.Context, a *app) (_ *toolbox, err error) {
	if strings.ContainsAny(c.ID, `/\`) {
		return nil, usage("mahati executor --help", "an executor id has no slash")
	}
	if len(c.Tool) == 0 && c.Root == "" && len(c.MCP) == 0 {
		return nil, usage("mahati executor --help", "no tools are given: --tool, --root or --mcp")
	}
	b := &toolbox{tools: map[string]client.ToolFunc{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	for _, text := range c.Tool {
		name, line, ok := strings.Cut(text, "=")
		if !ok || name == "" || line == "" {
			return nil, usage("mahati executor --help", "a tool is NAME=COMMAND")
		}
		if err := b.add(map[string]client.ToolFunc{name: shellTool{line, a.Stderr}.run}); err != nil {
			return nil, err
		}
	}
	if c.Root != "" {
		bench, err := workbench.Open(c.Root)
		if err != nil {
			return nil, err
		}
		b.parts = append(b.parts, bench.Close)
		if err := b.add(bench.Tools()); err != nil {
			return nil, err
		}
	}
	for _, line := range c.MCP {
		command, err := config.SplitCommand(line)
		if err != nil {
			return nil, usage("mahati executor --help", "--mcp %w", err)
		}
		server, err := mcptool.Start(ctx, command, mcptool.Options{Log: a.Stderr, Version: a.version()})
		if err != nil {
			return nil, err
		}
		b.parts = append(b.parts, server.Close)
		if err := b.add(server.Tools()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// add takes tools up. Two of one name are refused: nobody could say which one runs.
func (b *toolbox) add(tools map[string]client.ToolFunc) error {
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if b.tools[name] != nil {
			return usage("mahati executor --help", "tool %s is given twice", oneLine(name))
		}
		b.tools[name] = tools[name]
	}
	return nil
}
