//go:build !linux

package journaltest

import "os"

// syncData makes what was written to a file durable.
func syncData(file *os.File) error { return file.Sync() }
