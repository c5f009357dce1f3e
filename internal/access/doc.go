// Package access says who somebody is and what they may ask of the host.
//
// # What it promises
//
// Store keeps access tokens in an owner-only file of the home, hashed: a token
// is shown once, when it is made. Authenticate turns a token into a Principal;
// Authorize says whether a principal may do one Action in one workspace, from
// one table. Cookies holds the sign-ins of browsers, each bound to a token (R30).
// Owner is who comes in by the host's Unix socket.
//
// # Invariants
//
// No token and no cookie appears in an error, a log line or a String method:
// they travel as Secret, which prints as a placeholder, and Reveal is the one
// way to the text. Tokens and cookies are 256 random bits, so a plain SHA-256 is
// a safe way to keep them, and hashes are compared in constant time.
//
// A token that another process made or revoked counts from the next request on:
// the file is looked at (not read) at every use. It is replaced whole, under a
// lock between processes, and a change is on disk before Create or Revoke
// returns. A damaged file authenticates nobody and says so with ErrDamaged;
// a missing one holds no tokens.
//
// Whatever is not allowed by name is forbidden: the zero Principal, an unknown
// Action, a workspace that was not given.
//
// # Concurrency
//
// A Store and a Cookies may be used by any number of goroutines, and several
// processes may use one home. Principal is a value. Time is always an argument.
//
// # What it is not
//
// It knows no HTTP and no sessions. It decides; that nothing goes ahead without
// asking it is for host.Do and host.Attach, which ask first.
package access
