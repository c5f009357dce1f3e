package workbench

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// maxText bounds what is read of a file: quoted as JSON it must fit into a fact (R7). What
// is quoted to more is refused by the client.
const maxText = 450_000

// read is fs/read_text_file.
func (b *Bench) read(_ context.Context, call client.ToolCall) (narad.Raw, error) {
	var a struct {
		Path  string `json:"path"`
		Line  *int64 `json:"line"`
		Limit *int64 `json:"limit"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	rel, err := b.below(a.Path)
	if err != nil {
		return nil, err
	}
	// A named pipe must not hold the call.
	file, err := b.root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, failed(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, failed(err)
	case !info.Mode().IsRegular():
		return nil, refuse(codeNoFile, "It is no file.")
	}
	first, most := int64(1), int64(1)<<62
	if a.Line != nil {
		first = max(1, *a.Line)
	}
	if a.Limit != nil {
		most = max(0, *a.Limit)
	}
	content, err := lines(file, first, most)
	if err != nil {
		return nil, err
	}
	return response(struct {
		Content string `json:"content"`
	}{content})
}

// lines reads some lines of a text, the first being 1.
func lines(r io.Reader, first, most int64) (string, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var out []byte
	for n, ended := int64(1), false; !ended && n-first < most; {
		part, err := in.ReadSlice('\n')
		if n >= first {
			if len(out)+len(part) > maxText {
				return "", refuse(codeTooLarge, "The text is too large. Read a part of it, with line and limit.")
			}
			out = append(out, part...)
		}
		switch {
		case err == nil:
			n++
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			ended = true
		default:
			return "", failed(err)
		}
	}
	if !utf8.Valid(out) {
		return "", refuse(codeNoText, "The file is no text.")
	}
	return string(out), nil
}

// write is fs/write_text_file. Directories that are missing are made.
func (b *Bench) write(_ context.Context, call client.ToolCall) (narad.Raw, error) {
	var a struct {
		Path    string  `json:"path"`
		Content *string `json:"content"`
	}
	if err := arguments(call, &a); err != nil {
		return nil, err
	}
	if a.Content == nil {
		return nil, refuse(codeInvalid, "The content is required.")
	}
	rel, err := b.below(a.Path)
	if err != nil {
		return nil, err
	}
	if dir := filepath.Dir(rel); dir != "." {
		if err := b.root.MkdirAll(dir, 0o777); err != nil {
			return nil, failed(err)
		}
	}
	if err := b.replace(rel, *a.Content); err != nil {
		return nil, failed(err)
	}
	return narad.Raw("{}"), nil
}

// replace gives a file its content: another file takes its name once it is whole. What a
// link names is written in place, so that the link stays.
func (b *Bench) replace(rel, content string) error {
	mode := fs.FileMode(0o666)
	info, err := b.root.Lstat(rel)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return b.fill(rel, content, os.O_TRUNC|os.O_CREATE, mode)
	case err == nil && !info.Mode().IsRegular():
		return syscall.EISDIR
	case err == nil:
		mode = info.Mode().Perm()
	}
	next := filepath.Join(filepath.Dir(rel), ".mahati-"+rand.Text())
	if err := b.fill(next, content, os.O_CREATE|os.O_EXCL, mode); err != nil {
		return errors.Join(err, b.removed(next))
	}
	if err := b.root.Rename(next, rel); err != nil {
		return errors.Join(err, b.removed(next))
	}
	return nil
}

func (b *Bench) removed(rel string) error {
	if err := b.root.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (b *Bench) fill(rel, content string, flags int, mode fs.FileMode) error {
	file, err := b.root.OpenFile(rel, os.O_WRONLY|syscall.O_NONBLOCK|flags, mode)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Sync(), file.Close())
}
