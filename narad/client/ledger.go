package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// A Ledger is an executor's durable memory of the tokens that it has accepted, so that
// no tool runs twice, whenever the program is killed (specification §11.3 rule 5). It is
// a file that only its owner can read, since tokens are secrets, and that one process
// has open at a time. All methods may be called by any number of goroutines.
type Ledger struct {
	path string
	held *os.File // the file that keeps other processes out

	mu      sync.Mutex
	file    *os.File          // guarded by mu
	size    int64             // guarded by mu: of the file, in bytes
	large   int64             // guarded by mu: the size at which it is written anew
	least   int64             // guarded by mu: of that size
	entries map[string]*entry // guarded by mu: by token
	err     error             // guarded by mu: after a write that failed nothing is accepted
}

// entry is what the ledger holds of one token. Its JSON forms the lines of the file.
type entry struct {
	Token    string `json:"token"`
	Executor string `json:"executor"`
	Lease    string `json:"lease"`
	Call     string `json:"call"`
	Tool     string `json:"tool"`
	// Expires is when the token ends, in milliseconds since 1970.
	Expires int64 `json:"expires"`
	// Outcome and Response are how the call ended, once that is known.
	Outcome  narad.Outcome `json:"outcome,omitzero"`
	Response narad.Raw     `json:"response,omitzero"`
	// Told says that the host knows.
	Told bool `json:"told,omitzero"`
}

func (e *entry) expires() time.Time { return time.UnixMilli(e.Expires) }

// lateTelling is how long after the end of a token the host is still told how its call
// ended: clocks differ.
const lateTelling = time.Minute

// errLedgerInUse says that another process has the ledger open.
var errLedgerInUse = errors.New("another process uses the ledger")

// OpenLedger opens the ledger in a file, which is made if it is not there. A line that a
// crash has cut off is dropped: what it was to say had not happened yet. Damage elsewhere
// is an error. Its Close must be called.
func OpenLedger(path string) (*Ledger, error) {
	l := &Ledger{path: path, entries: map[string]*entry{}, least: largeLedger}
	if err := l.load(); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("open ledger %s: %w", path, err)
	}
	return l, nil
}

func (l *Ledger) load() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held, err = os.OpenFile(l.path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := lock(l.held); err != nil {
		return err
	}
	if err := l.readLocked(); err != nil {
		return err
	}
	return l.compactLocked()
}

// maxLine bounds a line of the file: a record of the protocol, and a little.
const maxLine = 1 << 20

// readLocked reads the entries of the file, if it is there.
func (l *Ledger) readLocked() error {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return err
	case info.Mode().Perm()&0o077 != 0:
		return errors.New("others than its owner may open it")
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	lines.Split(wholeLines)
	for n := 1; lines.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Token == "" {
			return fmt.Errorf("line %d is damaged", n)
		}
		l.entries[e.Token] = &e
	}
	return lines.Err()
}

// wholeLines splits into lines, and drops a last one that was cut off.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// forgetLocked drops what needs not be remembered any more: the host refuses an expired
// token, and one that it was not told of in time is told no more.
func (l *Ledger) forgetLocked(now time.Time) {
	for token, e := range l.entries {
		if expired := e.expires(); e.Told && now.After(expired) || now.After(expired.Add(lateTelling)) {
			delete(l.entries, token)
		}
	}
}

// compactLocked writes the file anew with what is worth keeping.
func (l *Ledger) compactLocked() error {
	l.forgetLocked(time.Now())
	var text []byte
	for _, e := range l.entries {
		line, err := json.Marshal(e, json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("encode a line: %w", err)
		}
		text = append(append(text, line...), '\n')
	}
	next, err := os.OpenFile(l.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := replace(next, text, l.path); err != nil {
		_ = next.Close()
		return err
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file, l.size = next, int64(len(text))
	l.large = max(l.least, 2*l.size)
	return nil
}

// replace gives a file its content, and then the name of another, durably. It is the
// owner's alone, also if somebody had made it.
func replace(file *os.File, content []byte, path string) error {
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// largeLedger is the least size, in bytes, at which the file is written anew.
const largeLedger = 4 << 20

// writeLocked appends an entry's present form, durably.
func (l *Ledger) writeLocked(e *entry) error {
	if l.err != nil {
		return l.err
	}
	line, err := json.Marshal(e, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode a line of the ledger: %w", err)
	}
	n, err := l.file.Write(append(line, '\n'))
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.err = fmt.Errorf("write ledger: %w", err)
	}
	l.size += int64(n)
	return l.err
}

// accept records that a call is accepted. It is false for a token that was known, whose
// entry is returned: its call is not run.
func (l *Ledger) accept(e *narad.ClientToolExecute, expires time.Time) (known entry, fresh bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.entries[e.ExecutionToken]; ok {
		return *old, false, nil
	}
	if l.err == nil && l.size > l.large {
		l.err = l.compactLocked()
	}
	n := &entry{
		Token: e.ExecutionToken, Executor: e.ClientExecutorID, Lease: e.LeaseID, Call: e.ToolCallID,
		Tool: e.ToolName, Expires: expires.UnixMilli(),
	}
	if err := l.writeLocked(n); err != nil {
		return entry{}, false, err
	}
	l.entries[n.Token] = n
	return *n, true, nil
}

// finish records how a call ended, before the host is told.
func (l *Ledger) finish(token string, o narad.Outcome, response narad.Raw) (entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[token]
	if e == nil {
		return entry{}, errors.New("the ledger does not know the token")
	}
	changed := *e
	changed.Outcome, changed.Response = o, response
	if err := l.writeLocked(&changed); err != nil {
		return entry{}, err
	}
	*e = changed
	return changed, nil
}

// told records that the host knows how a call ended.
func (l *Ledger) told(token string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[token]
	if e == nil || e.Told {
		return nil
	}
	e.Told, e.Response = true, nil
	return l.writeLocked(e)
}

// open returns the entries of an executor that the host was not told of.
func (l *Ledger) open(executor string) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []entry
	for _, e := range l.entries {
		if e.Executor == executor && !e.Told {
			out = append(out, *e)
		}
	}
	return out
}

// Close closes the ledger, for another process to open. It may be called twice.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.New("the ledger is closed")
	var errs []error
	for _, file := range []*os.File{l.file, l.held} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	l.file, l.held = nil, nil
	return errors.Join(errs...)
}

// syncDir makes a name in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
