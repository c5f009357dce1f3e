package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
)

// The format number stands in a small text file beside the engine's files, so
// that it can be read before the engine, which a newer store may have written
// in a way that this one cannot open. It is made durable before anything else.
const (
	formatName   = "mahati.format"
	formatPrefix = "mahati journal format "
)

// checkFormat refuses a store of a newer program and writes the number of a new
// store.
func checkFormat(files vfs.FS, dir string) error {
	name := files.PathJoin(dir, formatName)
	text, err := readFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFormat(files, dir, name)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	var format uint32
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, formatPrefix), "%d", &format); err != nil || !strings.HasPrefix(text, formatPrefix) {
		return &journal.DamagedError{Cause: fmt.Errorf("%s holds %.40q", name, text)}
	}
	if format > journal.FormatNumber {
		return fmt.Errorf("%s: %w: it has %d, this program knows %d", dir, journal.ErrNewerFormat, format, journal.FormatNumber)
	}
	return nil
}

func writeFormat(files vfs.FS, dir, name string) error {
	text := fmt.Sprintf("%s%d\n", formatPrefix, journal.FormatNumber)
	fresh := name + ".new"
	if err := writeFile(files, fresh, text); err != nil {
		return fmt.Errorf("write %s: %w", fresh, err)
	}
	if err := files.Rename(fresh, name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(files, dir)
}

func readFile(files vfs.FS, name string) (string, error) {
	file, err := files.Open(name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<10))
	return string(text), errors.Join(err, file.Close())
}

func writeFile(files vfs.FS, name, text string) error {
	file, err := files.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(text))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// makeDir makes a directory with its missing parents, and all their entries
// durable: a store that lost its own directory with the power would be taken
// for a new one.
func makeDir(files vfs.FS, dir string) error {
	var parents []string
	for missing := dir; ; {
		if _, err := files.Stat(missing); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make %s: %w", dir, err)
		}
		parent := files.PathDir(missing)
		if parent == missing {
			break
		}
		parents = append(parents, parent)
		missing = parent
	}
	if err := files.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	for _, parent := range parents {
		if err := syncDir(files, parent); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
