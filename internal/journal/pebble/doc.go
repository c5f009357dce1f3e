// Package pebble is the journal's embedded engine, on Pebble.
//
// # What it promises
//
// All of the port ([journal.Journal]), durable on one disk: a batch is one
// key, a commit group one or two more, index rows are written only when they
// change. Files are 0600 and directories 0700 whatever the umask; a directory
// is open in one process at a time; a store of a newer program is refused by
// name before its files are touched.
//
// # Invariants
//
//   - Every read goes through the published view, a snapshot taken after the
//     sync of the group before it became visible. Nothing reads the database
//     itself, which shows batches before their sync and after a failed one.
//   - A stored batch carries a checksum, its own place, and the hash of the
//     batch before it in its session. A batch that fails its checks is a
//     journal.DamagedError of its session; others go on. So do lists behind a row
//     that cannot be read, and behind a block (hole.go); a key of a list leads to a row
//     that has that key.
//   - Marks and rows are in the same atomic write as the facts they are about.
//     Marks follow from the facts alone (spans.go), so verify can make them
//     again.
//   - A write that fails inside of Pebble breaks the journal for good, and
//     Pebble is then not closed: it can hang. The process is expected to end.
//
// # Concurrency
//
// As the port says. One goroutine of ours, the committer, owns the staged
// group and the tails of sessions. Views are counted; Close waits for those
// in use, then flushes, so that the next open has no log to replay.
//
// # What it is not
//
// It does not repair: a damaged store is reported, by session, and a row is
// whole again when a batch writes it. It shares its directory with nobody.
package pebble
