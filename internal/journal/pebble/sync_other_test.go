//go:build !linux

package pebble_test

import "os"

func syncData(file *os.File) error { return file.Sync() }
