package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"
)

// quietLogger takes what Pebble has to say. Its fatal errors, after which
// Pebble may not be written to, break the journal instead of ending the
// process: what is durable is still served, and Pebble is not closed, which
// then might hang.
type quietLogger struct {
	log   *slog.Logger
	fatal atomic.Pointer[error]
	// told has the damaged files that were told of.
	told sync.Map
	rest rest
	// broke is called with the first fatal error once it is set.
	broke atomic.Pointer[func(error) error]
	// full is told of a disk that is full while the store is being opened; nil else.
	full atomic.Pointer[chan error]
}

func (l *quietLogger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf("pebble: "+format, args...))
}

func (l *quietLogger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf("pebble: "+format, args...))
}

// Fatalf returns: where Pebble calls it for a failed write it goes on with an
// error return.
func (l *quietLogger) Fatalf(format string, args ...any) {
	l.lost(fmt.Errorf("pebble: "+format, args...))
}

// lost notes that Pebble cannot be trusted with writes, nor be closed.
func (l *quietLogger) lost(err error) {
	if l.fatal.CompareAndSwap(nil, &err) {
		if broke := l.broke.Load(); broke != nil {
			_ = (*broke)(err)
		}
	}
}

// failure is the first fatal error.
func (l *quietLogger) failure() error {
	if err := l.fatal.Load(); err != nil {
		return *err
	}
	return nil
}

// listener reports what an operator should know. Corruption is an error of the
// sessions it touches: without this function Pebble would take it for fatal.
func (l *quietLogger) listener() *lsm.EventListener {
	return &lsm.EventListener{
		BackgroundError: l.background,
		DataCorruption: func(info lsm.DataCorruptionInfo) {
			if _, told := l.told.LoadOrStore(info.Path, true); !told {
				l.log.Error("pebble: stored data is damaged: see mahati verify", "path", info.Path, "detail", info.Details)
			}
		},
		WriteStallBegin: func(info lsm.WriteStallBeginInfo) { l.log.Warn("pebble: writes wait", "reason", info.Reason) },
		WriteStallEnd:   func() { l.log.Info("pebble: writes go on") },
	}
}

// background reports what went wrong in the background. A table that cannot be read cannot be
// merged with others, and is tried again after a rest.
func (l *quietLogger) background(err error) {
	if full := l.full.Load(); full != nil && errors.Is(err, syscall.ENOSPC) {
		select {
		case *full <- err:
		default: // it is known; this is tried again at once, and for ever
			time.Sleep(fullPause)
		}
		return
	}
	if !lsm.IsCorruptionError(err) {
		l.log.Error("pebble: background work", "error", err)
		return
	}
	l.rest.begin()
	if _, told := l.told.LoadOrStore("", true); !told {
		l.log.Error("pebble: stored data is damaged and keeps tables from being merged: reading slows down as more is written, "+
			"and writes wait in the end. See docs/damage.md", "error", err)
	}
}
