package workbench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// The names of the tools, which are those of the protocol's methods.
const (
	ReadTextFile  = "fs/read_text_file"
	WriteTextFile = "fs/write_text_file"

	TerminalCreate  = "terminal/create"
	TerminalOutput  = "terminal/output"
	TerminalWait    = "terminal/wait_for_exit"
	TerminalKill    = "terminal/kill"
	TerminalRelease = "terminal/release"
)

// Bench is the files and terminals below one directory. Open makes one.
type Bench struct {
	root *os.Root
	dir  string // of the root, without links

	mu        sync.Mutex
	terminals map[string]*terminal // guarded by mu: by id
	closed    bool                 // guarded by mu
	work      sync.WaitGroup       // terminals that run
}

// Open opens a directory. Its Close must be called.
func Open(dir string) (*Bench, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, fmt.Errorf("open the root: %w", err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open the root: %w", err)
	}
	return &Bench{root: root, dir: abs, terminals: map[string]*terminal{}}, nil
}

// Tools are the tools by their names.
func (b *Bench) Tools() map[string]client.ToolFunc {
	return map[string]client.ToolFunc{
		ReadTextFile: b.read, WriteTextFile: b.write,
		TerminalCreate: b.create, TerminalOutput: b.output, TerminalWait: b.wait, TerminalKill: b.kill, TerminalRelease: b.release,
	}
}

// Close ends all terminals. It may be called twice.
func (b *Bench) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, t := range b.terminals {
		t.stop()
	}
	b.mu.Unlock()
	b.work.Wait()
	return b.root.Close()
}

// Codes of failures, for the host.
const (
	codeInvalid   = "invalid_arguments"
	codeOutside   = "outside_root"
	codeNotFound  = "not_found"
	codeDenied    = "permission_denied"
	codeNoFile    = "not_a_file"
	codeNoText    = "not_text"
	codeTooLarge  = "too_large"
	codeFailed    = "failed"
	codeNoCommand = "not_started"
	codeNoSuch    = "no_such_terminal"
	codeTooMany   = "too_many_terminals"
)

func refuse(code, message string) error { return &client.ToolError{Code: code, Message: message} }

// arguments reads the arguments of a call.
func arguments(call client.ToolCall, into any) error {
	if err := json.Unmarshal(call.Args, into); err != nil {
		return refuse(codeInvalid, "The arguments are not those of the tool.")
	}
	return nil
}

func response(v any) (narad.Raw, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return data, nil
}

// below returns a path relative to the root. One that is not absolute is meant so.
func (b *Bench) below(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", refuse(codeInvalid, "A path is required.")
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(rel) {
		var err error
		if rel, err = filepath.Rel(b.dir, rel); err != nil {
			return "", refuse(codeOutside, "The path is not below the root.")
		}
	}
	if !filepath.IsLocal(rel) {
		return "", refuse(codeOutside, "The path is not below the root.")
	}
	return rel, nil
}

// failed words what the file system refused. The error itself holds a path of this
// machine.
func failed(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(codeNotFound, "There is no such file or directory.")
	case errors.Is(err, fs.ErrPermission):
		return refuse(codeDenied, "The executor may not do that.")
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EEXIST):
		return refuse(codeNoFile, "It is no file.")
	}
	var path *fs.PathError
	if errors.As(err, &path) && !errors.As(path.Err, new(syscall.Errno)) {
		return refuse(codeOutside, "The path leads out of the root.") // os.Root refuses it so
	}
	return refuse(codeFailed, "The file system refused it.")
}
