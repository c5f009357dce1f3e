package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// reader is a client of an event stream, on a connection of its own.
type reader struct {
	conn net.Conn
	body *bufio.Reader
}

// open begins to read a stream. A receive buffer of 0 bytes is the system's own. Headers are
// whole lines.
func (b *bench) open(address string, buffer int, headers ...string) (*reader, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, 30*time.Second)
	if err != nil {
		return nil, err
	}
	if buffer > 0 {
		if err := conn.(*net.TCPConn).SetReadBuffer(buffer); err != nil {
			return nil, err
		}
	}
	r := &reader{conn: conn, body: bufio.NewReaderSize(conn, 4<<10)}
	if err := r.ask(u, append([]string{"Authorization: Bearer " + b.token}, headers...)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return r, nil
}

func (r *reader) ask(u *url.URL, headers []string) error {
	_, err := fmt.Fprintf(r.conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", u.RequestURI(), u.Host, strings.Join(headers, "\r\n"))
	if err != nil {
		return err
	}
	answer, err := http.ReadResponse(r.body, nil)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 300))
		return fmt.Errorf("status %d: %s", answer.StatusCode, why)
	}
	r.body = bufio.NewReaderSize(answer.Body, 64<<10)
	return nil
}

// idle gives back the buffers: nobody reads on.
func (r *reader) idle() *reader {
	r.body = nil
	return r
}

func (r *reader) close() { _ = r.conn.Close() }

// count reads on until the end, and tells how many frames came in each piece.
func (r *reader) count(tell func(frames int)) error {
	half := false // the first of the two line ends of a frame came with the piece before
	for {
		if _, err := r.body.Peek(1); err != nil {
			return err
		}
		piece, _ := r.body.Peek(r.body.Buffered())
		frames, rest := 0, piece
		if half && piece[0] == '\n' {
			frames, rest = 1, piece[1:]
		}
		frames += bytes.Count(rest, []byte("\n\n"))
		half = bytes.HasSuffix(rest, []byte("\n")) && !bytes.HasSuffix(rest, []byte("\n\n"))
		if _, err := r.body.Discard(len(piece)); err != nil {
			return err
		}
		if frames > 0 {
			tell(frames)
		}
	}
}

// next reads one fact, past the heartbeats: its sequence, and its line of data, which
// is good until the next call.
func (r *reader) next() (sequence uint64, data []byte, err error) {
	for {
		text, err := r.body.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if id, ok := bytes.CutPrefix(text, []byte("id: ")); ok {
			digits, _, _ := bytes.Cut(bytes.TrimSpace(id), []byte(".")) // an event of Narya has a number alone
			if sequence, err = strconv.ParseUint(string(digits), 10, 64); err != nil {
				return 0, nil, fmt.Errorf("id %q: %w", id, err)
			}
			continue
		}
		if data, ok := bytes.CutPrefix(text, []byte("data: ")); ok && sequence > 0 {
			return sequence, data, nil
		}
	}
}

// streamOf is the address of a session's stream after a sequence.
func (b *bench) streamOf(session string, after uint64) string {
	return fmt.Sprintf("%s%s/sessions/%s/stream?afterSessionSequence=%d", b.host.url, api, session, after)
}

// say sends a message, which begins a run.
func (b *bench) say(session string) error {
	return b.command("/commands/message", map[string]string{"sessionId": session, "content": "Go."})
}

// quit stops the run of a session.
func (b *bench) quit(session string) error {
	return b.command("/commands/stop-active-root", map[string]string{"sessionId": session})
}
