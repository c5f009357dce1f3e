// Package host owns the sessions that are alive: it finds, starts and ends their
// owners, and is the only way in for commands and readers.
//
// # What it promises
//
// [Host.Do] authorises a command first and hands it to the session's one owner, which
// decides, checks, numbers, appends and only then answers. [Host.Attach] answers an
// authorised reader. [Host.Start] repairs what a dead host left open before either is
// served; the owner of a session repairs what an owner before it has left open.
//
// # Invariants
//
// A session has one owner at a time, fenced by the journal's term. An owner's state may
// be ahead of the disk until its append returns, and nobody but the owner sees it; if
// the append fails the owner ends, its agent is ended with it, and the session is loaded
// anew by the next command, or by the host a second later. An owner that another one has
// fenced off ends in the same way, and hands its command on. The next owner begins when
// nothing of the one before runs any more, but for an agent that nothing can end. A value
// that no fact can hold refuses the command that brought it and changes nothing. A command
// id that was seen gets its first answer, before any check of state (R21). Agents react to
// facts that are durable, never to proposals. No more agents run than there are places,
// but for runs that go on after a restart.
//
// # Concurrency
//
// Methods of Host and View may be called by any number of goroutines. Every goroutine
// that the package starts is joined by [Host.Close], but for those of an agent that
// neither its context nor its Close can end: after twice the grace of a stop, in which its
// processes are killed, it is left behind, and Close says whose it is. Nothing that it
// tells then is recorded.
//
// # What it is not
//
// It knows no wire format and no route. What may be decided is in internal/decide.
package host
