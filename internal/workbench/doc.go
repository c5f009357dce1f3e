// Package workbench is the files and terminals of an executor: the tools that an agent of
// the Agent Client Protocol may ask of its client, below one directory.
//
// # What it promises
//
// The tools are those of [Bench.Tools], with the arguments and responses of the protocol's
// methods. A path is below the root, whatever links stand there: it is opened through
// os.Root. A file is replaced whole or not at all. A terminal is a process group of its
// own, which is gone when it is released, and when Close returns.
//
// # Invariants
//
// What is read, kept of a terminal's output, and open at once is bounded. Errors are of a
// closed set of codes, and hold no content of a file. A terminal does not get the
// executor's own token.
//
// # Concurrency
//
// All methods and tools may be used by any number of goroutines. Two writes of one file
// leave the whole content of one of them.
//
// # What it is not
//
// It is no sandbox: a terminal runs what it is told to, with the rights of the executor.
// The root holds paths, not programs. Terminals do not outlive the executor.
package workbench
