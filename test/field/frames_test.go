package field_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// frame is one block of an event stream.
type frame struct {
	raw     string // its bytes, with the blank line
	id      string
	hasID   bool
	data    string
	comment bool         // it has nothing but comments
	record  narad.Record // what the data says; nil for a comment
}

// parseFrame reads one block as the WHATWG format says, and is stricter where the host
// promises more (docs/http.md): lines end with LF, the field names id and data alone
// occur, each at most once, written with one space, and the data is one strict record.
func parseFrame(raw string) (f frame, err error) {
	f = frame{raw: raw, comment: true}
	lines := strings.Split(strings.TrimSuffix(raw, "\n\n"), "\n")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		if strings.ContainsAny(line, "\r\x00") {
			return f, fmt.Errorf("a line with CR or NUL: %q", line)
		}
		if name == "" {
			continue
		}
		f.comment = false
		value, spaced := strings.CutPrefix(value, " ")
		switch {
		case !spaced:
			return f, fmt.Errorf("a field without its space: %q", line)
		case name == "id" && !f.hasID:
			f.id, f.hasID = value, true
		case name == "data" && f.data == "":
			f.data = value
		default:
			return f, fmt.Errorf("a line that is not owed: %q", line)
		}
	}
	if f.comment {
		return f, nil
	}
	if f.record, err = narad.DecodeStrict([]byte(f.data)); err != nil {
		return f, fmt.Errorf("the data is no record: %w: %q", err, raw)
	}
	return f, nil
}

// stream is an open event stream that keeps the bytes it read.
type stream struct {
	b      *bed
	header http.Header
	raw    bytes.Buffer // all that was read
	err    error        // why it ended; io.EOF for an end between two frames
	body   *bufio.Reader
	close  func()
}

// openStream opens a session's stream at an address. The query begins with a question
// mark, or is empty; so may be the Last-Event-ID. An answer other than a stream is
// returned as such.
func (b *bed) openStream(url, sessionID, query, lastEventID string) (*stream, answer) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+client.Prefix+"/sessions/"+sessionID+"/stream"+query, nil)
	b.must(err)
	req.Header.Set("Authorization", "Bearer "+b.token)
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	late := time.AfterFunc(patience, cancel)
	resp, err := b.http.Do(req)
	late.Stop()
	if err != nil {
		cancel()
		b.fatalf("open the stream: %v", err)
	}
	shut := func() { cancel(); resp.Body.Close() }
	if resp.StatusCode != http.StatusOK {
		defer shut()
		a := answer{status: resp.StatusCode, header: resp.Header}
		a.body, err = io.ReadAll(resp.Body)
		b.must(err)
		return nil, a
	}
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		shut()
		b.fatalf("a stream of type %q, want text/event-stream", kind)
	}
	s := &stream{b: b, header: resp.Header, close: shut}
	s.body = bufio.NewReaderSize(io.TeeReader(resp.Body, &s.raw), 64<<10)
	b.t.Cleanup(shut)
	return s, answer{status: resp.StatusCode, header: resp.Header}
}

// stream opens a session's stream on the host that runs now.
func (b *bed) stream(sessionID, query, lastEventID string) *stream {
	b.t.Helper()
	s, a := b.openStream(b.url, sessionID, query, lastEventID)
	if s == nil {
		b.fatalf("stream of %s%s: got %v, want 200", sessionID, query, a)
	}
	return s
}

// next reads the next frame, comments included. At the end, and after patience, the
// frame is empty and err says why. A frame that is not as owed ends the test.
func (s *stream) next() frame {
	s.b.t.Helper()
	late := time.AfterFunc(patience, s.close)
	defer late.Stop()
	var block strings.Builder
	for s.err == nil {
		line, err := s.body.ReadString('\n')
		block.WriteString(line)
		switch {
		case err != nil && block.Len() > 0:
			s.err = fmt.Errorf("inside a frame: %w: %.300q", errors.Join(io.ErrUnexpectedEOF, err), block.String())
		case err != nil:
			s.err = err
		case line == "\n":
			f, err := parseFrame(block.String())
			if err != nil {
				s.b.t.Fatalf("a frame that is not as owed: %v", err)
			}
			return f
		}
	}
	return frame{}
}

// fact reads on to the next authority event, and ends the test if there is none.
func (s *stream) fact() (frame, narad.Authority) {
	s.b.t.Helper()
	late := time.AfterFunc(patience, s.close) // heartbeats come for ever
	defer late.Stop()
	for {
		f := s.next()
		if event, ok := f.record.(narad.Authority); ok {
			if !f.hasID || f.id != event.Envelope().EventID {
				s.b.t.Fatalf("a fact whose frame has the id %q, want %q", f.id, event.Envelope().EventID)
			}
			return f, event
		}
		if s.err != nil {
			s.b.fatalf("the stream ended, a fact was due: %v", s.err)
		}
	}
}

// factsTo reads the facts up to a sequence, as bytes.
func (s *stream) factsTo(sequence int64) []narad.Raw {
	s.b.t.Helper()
	var facts []narad.Raw
	for {
		f, event := s.fact()
		facts = append(facts, narad.Raw(f.data))
		if at := event.Envelope().SessionSequence; at >= sequence {
			return facts
		}
	}
}

// lately is the end of what was read, for a failure.
func (s *stream) lately() string {
	const enough = 4 << 10
	raw := s.raw.Bytes()
	return string(raw[max(0, len(raw)-enough):])
}
