package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
)

// checkCreate completes what a new session is made with, or says why it cannot be made.
// One that exists was checked when it was made.
func (h *Host) checkCreate(ctx context.Context, id string, c *decide.Create) (refused decide.Answer, err error) {
	if _, err := h.sessionRow(ctx, id); !errors.Is(err, journal.ErrNotFound) {
		return refused, err
	}
	if id == "" || strings.Contains(id, "~") { // R8: names of the host's own streams
		return refusal(decide.RefusedID, "a session cannot have that id"), nil
	}
	if alike, err := h.shownAlike(ctx, id); err != nil || alike {
		return refusal(decide.RefusedReused, "the id was given to another session"), err
	}
	c.Payload.Mappings = h.opt.Mappings
	if c.Payload.IntercomName, err = h.nameFor(ctx, id, c.Payload); err != nil {
		return decide.Answer{}, err
	}
	if c.Payload.Agent == "" {
		c.Payload.Agent = h.agents.Default()
	}
	if _, known := h.agents.Kind(c.Payload.Agent); !known {
		return refusal(decide.RefusedAgent, "no agent has that name"), nil
	}
	if c.Payload.Cwd == "" {
		return refused, h.ownDirectory(c)
	}
	if !filepath.IsAbs(c.Payload.Cwd) {
		return refusal(decide.RefusedDirectory, "the directory must be an absolute path"), nil
	}
	c.Payload.Cwd = filepath.Clean(c.Payload.Cwd)
	if h.opt.Roots == nil {
		return refused, nil
	}
	if detail := insideOf(h.opt.Roots, c.Payload.Cwd); detail != "" {
		return refusal(decide.RefusedDirectory, detail), nil
	}
	return refused, nil
}

// ownDirectory lets a session that names no directory work where the host does, if it may
// work there at all: Narya shows a directory for each session.
func (h *Host) ownDirectory(c *decide.Create) error {
	if h.opt.Mappings.Narya == 0 {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the host's directory: %w", err)
	}
	if h.opt.Roots == nil || insideOf(h.opt.Roots, dir) == "" {
		c.Payload.Cwd = dir
	}
	return nil
}

// insideOf says why a directory does not lie below one of the roots, wherever symbolic
// links lead.
func insideOf(roots []string, dir string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if info, statErr := os.Stat(dir); err != nil || statErr != nil || !info.IsDir() {
		return "no such directory is on this machine"
	}
	for _, root := range roots {
		root, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue // a root that is not there holds nothing
		}
		rel, err := filepath.Rel(root, dir)
		if err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return ""
		}
	}
	return "the directory lies in none of those that workspaces.roots names"
}
