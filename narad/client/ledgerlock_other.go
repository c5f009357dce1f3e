//go:build !unix

package client

import "os"

// lock does nothing where files have no such locks: two processes must not use one
// ledger there.
func lock(*os.File) error { return nil }
