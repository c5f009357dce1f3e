package journaltest

import (
	"fmt"
	"os"
	"path/filepath"
)

// RawLog is the least that a durable log can do: a file with group commit, one write
// and one sync for what waits. Benchmarks compare a journal with it.
type RawLog struct {
	file  *os.File
	queue chan rawWrite
	done  chan struct{}
}

type rawWrite struct {
	bytes  []byte
	answer chan error
}

// maxRawGroup is how many writes share a sync, as many as in a journal.
const maxRawGroup = 512

// OpenRawLog makes a log in a directory.
func OpenRawLog(dir string) (*RawLog, error) {
	file, err := os.Create(filepath.Join(dir, "raw.log"))
	if err != nil {
		return nil, fmt.Errorf("make a raw log: %w", err)
	}
	l := &RawLog{file: file, queue: make(chan rawWrite, 1_024), done: make(chan struct{})}
	go l.run()
	return l, nil
}

// Append returns when the bytes are durable. Any number of goroutines may call it.
func (l *RawLog) Append(bytes []byte) error {
	answer := make(chan error, 1)
	l.queue <- rawWrite{bytes, answer}
	return <-answer
}

// AppendAlone is a write and a sync, with nothing around them. Nothing else may use
// the log meanwhile.
func (l *RawLog) AppendAlone(bytes []byte) error {
	if _, err := l.file.Write(bytes); err != nil {
		return err
	}
	return syncData(l.file)
}

// Close ends the log, which nothing may use any more.
func (l *RawLog) Close() error {
	close(l.queue)
	<-l.done
	return l.file.Close()
}

func (l *RawLog) run() {
	defer close(l.done)
	for first := range l.queue {
		group := l.gather(first)
		var joined []byte
		for _, w := range group {
			joined = append(joined, w.bytes...)
		}
		err := l.AppendAlone(joined)
		for _, w := range group {
			w.answer <- err
		}
	}
}

func (l *RawLog) gather(first rawWrite) []rawWrite {
	group := []rawWrite{first}
	for len(group) < maxRawGroup {
		select {
		case w, open := <-l.queue:
			if !open {
				return group
			}
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}
