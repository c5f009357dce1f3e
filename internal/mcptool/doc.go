// Package mcptool makes tools of an executor of what a server of the Model Context Protocol
// offers on its standard input and output.
//
// # What it promises
//
// [Start] starts the server and lists its tools once; each is a tool of the executor. The
// result of a call is its response, with the bytes that it had. What the server marks as an
// error is an error of the tool. A call whose server ends or cannot be understood ends as
// outcome_unknown: nobody knows whether it took effect, and it is not made again. The next
// call starts the server anew.
//
// # Invariants
//
// A server is a process group of its own, without the executor's token in its environment,
// and is gone when Close returns. A call is sent to one server, once.
//
// # Concurrency
//
// The tools may be used by any number of goroutines; the server gets their calls at once.
//
// # What it is not
//
// It offers the server nothing: no roots, no sampling, no questions. It does not watch for
// tools that come and go.
package mcptool
