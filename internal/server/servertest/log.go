package servertest

import (
	"bytes"
	"sync"
)

// A Log is what was logged, and may be written and read at once. The zero value is empty.
type Log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}
