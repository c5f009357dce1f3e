// Package sse is the event-stream codec of Mahati: bytes in, frames out, and back.
//
// # What it promises
//
// AppendFrame and AppendComment write frames that every parser of the WHATWG
// event-stream format reads back as the same id and the same single data line;
// what cannot be written so is refused with an error and leaves the destination
// as it was. Parser and Reader read any stream of that format: lines ended by
// LF, CR or CRLF, one byte order mark at the start, comments, the fields id,
// event, data and retry, unknown fields ignored. The way the input is cut into
// chunks never changes what comes out.
//
// Beyond the format, each Frame says whether it had an id line of its own
// (Frame.HasID). A reader of authority needs that: the format lets an id stick
// to later frames, and a stuck id proves nothing about the frame in hand. The
// sticky value is Frame.LastEventID.
//
// # Invariants
//
// The joined data of a frame is at most the limit (MaxFrame by default), and is
// measured while it grows, not when the frame ends: a peer that never sends the
// blank line cannot fill the memory. A line is at most the limit and what may
// stand before the value of a data line, whatever field it holds, comments
// included. So a Parser holds at most a few times the limit (data, line, id,
// sticky id, event) and most of the time nothing. After ErrFrameTooLarge it
// answers nothing else: the rest of such a stream has no meaning.
//
// Bytes are never decoded. The format calls for U+FFFD in place of what is not
// UTF-8; this package hands such bytes on as they came, because a record that
// was silently repaired is no longer the record that was sent. JSON above it
// refuses them, in the open.
//
// # Concurrency
//
// A Parser or Reader belongs to one goroutine. The Append functions are pure.
// The data of a Frame belongs to whoever received it.
//
// # What it is not
//
// It knows no HTTP, no reconnecting, no JSON and no record types. That an
// authority frame's id equals its eventId is for narad/client to check.
package sse
