// Package cli is the command line: one program that is the host, its client, and the
// tools around both.
//
// # What it promises
//
// [Main] performs one command and returns its exit code: 0 when it did what was asked,
// 1 when it failed or what it looked at is not sound, 2 when it was called wrongly or
// its input could not be read, 4 when the store of a host broke, 130 when a run or
// the demo was left with Ctrl-C. What a program may read is on standard output, everything that is
// said to a person besides is on standard error, and each error says what to do next.
//
// # Invariants
//
// Text of agents, hosts and files reaches a terminal only through [escape] or
// [oneLine]: no escape sequence, control character or change of writing direction gets
// through. Colour and prompts are for terminals alone. No token is printed but by
// "token create", once, alone on standard output.
//
// # Concurrency
//
// One command runs at a time. The few goroutines (a follower's updates, the keyboard, a
// child process of the demo) belong to the function that started them, which waits for
// them.
//
// # What it is not
//
// It decides nothing: a client command speaks to the host over HTTP, on the socket of its home too.
package cli
