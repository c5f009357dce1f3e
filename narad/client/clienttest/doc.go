// Package clienttest is a small Narad host in memory, for tests of what follows one.
//
// It promises the routes, forms and orders of the Narad binding as far as a client
// can tell: attach, history with all cursors, streams that are cursors, sessions,
// inbox, commands remembered by their id. It judges each fact it is given as a host
// must, unless it is told to serve bytes as they are. Its faults are those of a
// network and of a bad host: answers dropped, refused, delayed; streams cut, or
// silent.
//
// A Host may be used by many goroutines. It works inside a testing/synctest bubble
// and ends with the test. It decides nothing, keeps nothing, and checks no rights but
// the one token.
package clienttest
