package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/narad/client"
)

// positions remembers where this user left each session, one small file a session, so
// that several terminals do not disturb each other.
type positions struct{ dir string }

func positionsOf(home string) positions { return positions{filepath.Join(home, "left")} }

// maxPositions is how many sessions are remembered; the oldest go first.
const maxPositions = 200

// position is where a session was left.
type position struct {
	SessionID string `json:"sessionId"`
	Sequence  int64  `json:"sequence"`
	Epoch     string `json:"epoch"`
}

func (p positions) file(session string) string { return filepath.Join(p.dir, session+".json") }

// find returns where a session was left; the zero position if it never was.
func (p positions) find(session string) position {
	var at position
	data, err := os.ReadFile(p.file(session))
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil || at.SessionID != session {
		return position{} // it is only a convenience: from the beginning, then
	}
	return at
}

// last returns the session that was left last, "" if none was.
func (p positions) last() string {
	newest := p.newestFirst()
	if len(newest) == 0 {
		return ""
	}
	return newest[0][:len(newest[0])-len(".json")]
}

// newestFirst returns the names of the files.
func (p positions) newestFirst() []string {
	entries, _ := os.ReadDir(p.dir)
	type aged struct {
		name string
		at   int64
	}
	var files []aged
	for _, e := range entries {
		if info, err := e.Info(); err == nil && filepath.Ext(e.Name()) == ".json" {
			files = append(files, aged{e.Name(), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(files, func(a, b aged) int { return int(min(max(b.at-a.at, -1), 1)) })
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names
}

// keep remembers where a session was left.
func (p positions) keep(at client.Position) error {
	if at.SessionID == "" || filepath.Base(at.SessionID) != at.SessionID {
		return nil // no id that a host of ours gives or takes
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("remember where you left: %w", err)
	}
	data, err := json.Marshal(position{at.SessionID, at.Sequence, at.Epoch})
	if err != nil {
		return fmt.Errorf("remember where you left: %w", err)
	}
	draft := fmt.Sprintf("%s.%d", p.file(at.SessionID), os.Getpid())
	err = os.WriteFile(draft, data, 0o600)
	if err == nil {
		err = os.Rename(draft, p.file(at.SessionID))
	}
	if err != nil {
		return fmt.Errorf("remember where you left: %w", errors.Join(err, ignoreMissing(os.Remove(draft))))
	}
	names := p.newestFirst()
	for _, name := range names[min(maxPositions, len(names)):] {
		err = errors.Join(err, ignoreMissing(os.Remove(filepath.Join(p.dir, name))))
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
