// Package process starts process groups for sessions, tells them apart across restarts of
// host and machine, and ends them.
//
// # What it promises
//
// [Start] starts a program in a group of its own, and [Group.End] ends it with everything
// in that group. [Identify] names a process so that another one with the same number is not mistaken
// for it, and [Same] compares. [KillGroup] ends the group that such a process leads,
// also when the leader is gone and has left others behind, and returns when nothing of
// the group runs any more.
//
// # Invariants
//
// What cannot be shown to be the group that was recorded is left alone: a reused number,
// another boot, the host's own group, and a group without its leader unless one of its
// members carries [Mark] in its environment.
//
// # Concurrency
//
// Functions keep no state. A Group reaps its process; whoever starts one otherwise must
// also reap it. KillGroup takes a process that has ended but is not reaped yet as gone.
//
// # What it is not
//
// It does not follow processes that leave their group.
package process
