package sse_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mahati-host/mahati/internal/sse"
)

// readAll reads a stream to its end. A limit of 0 is the default.
func readAll(stream string, limit int) ([]sse.Frame, error) {
	reader := sse.NewReader(strings.NewReader(stream), sse.Options{MaxFrame: limit})
	var frames []sse.Frame
	for {
		frame, err := reader.Next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, frame)
	}
}

// data is a frame without anything but data.
func data(text string) sse.Frame { return sse.Frame{Data: []byte(text)} }

// own is a frame with an id line of its own.
func own(id, text string) sse.Frame {
	return sse.Frame{ID: id, HasID: true, LastEventID: id, Data: []byte(text)}
}

// stuck is a frame whose only id is one that stuck from an earlier block.
func stuck(id, text string) sse.Frame { return sse.Frame{LastEventID: id, Data: []byte(text)} }

func TestReaderFollowsTheFormat(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		want   []sse.Frame
		err    error // io.EOF if nil
	}{
		{"nothing", "", nil, nil},
		{"one frame", "data: a\n\n", []sse.Frame{data("a")}, nil},
		{"CR", "data: a\r\rdata: b\r\r", []sse.Frame{data("a"), data("b")}, nil},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []sse.Frame{data("a"), data("b")}, nil},
		{"line ends mixed", "data: a\r\ndata: b\rdata: c\n\r\n", []sse.Frame{data("a\nb\nc")}, nil},
		{"LF CR is two line ends", "data: a\n\rdata: b\n\n", []sse.Frame{data("a"), data("b")}, nil},
		{"CR then LF in a blank line is one", "data: a\n\r\ndata: b\n\n", []sse.Frame{data("a"), data("b")}, nil},

		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []sse.Frame{data("a")}, nil},
		{"byte order mark, then a blank line", "\xEF\xBB\xBF\ndata: a\n\n", []sse.Frame{data("a")}, nil},
		{"only one byte order mark", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", nil, nil},
		{"no byte order mark later", "\n\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []sse.Frame{data("b")}, nil},

		{"comment", ": c\ndata: a\n:\n\n", []sse.Frame{data("a")}, nil},
		{"comment alone", ": c\n\n", nil, nil},
		{"no colon is an empty value", "data\n\n", []sse.Frame{data("")}, nil},
		{"two empty data lines", "data\ndata\n\n", []sse.Frame{data("\n")}, nil},
		{"empty value", "data:\n\n", []sse.Frame{data("")}, nil},
		{"one space dropped", "data:  a \n\n", []sse.Frame{data(" a ")}, nil},
		{"no tab dropped", "data:\ta\n\n", []sse.Frame{data("\ta")}, nil},
		{"later colons stay", "data:a:b: c\n\n", []sse.Frame{data("a:b: c")}, nil},
		{"unknown field", "dat: a\ndataset: b\n data: c\nDATA: d\n\n", nil, nil},
		{"event", "event: x\ndata: a\n\ndata: b\n\n", []sse.Frame{{Event: "x", Data: []byte("a")}, data("b")}, nil},
		{"event without data", "event: x\n\ndata: a\n\n", []sse.Frame{data("a")}, nil},
		{"blank lines", "\n\n\ndata: a\n\n\n\n", []sse.Frame{data("a")}, nil},
		{"NUL in data stays", "data: a\x00b\n\n", []sse.Frame{data("a\x00b")}, nil},
		{"bytes that are not UTF-8 stay", "data: \xff\xc3\n\n", []sse.Frame{data("\xff\xc3")}, nil},

		{"own id", "id: 1\ndata: a\n\n", []sse.Frame{own("1", "a")}, nil},
		{"id sticks, and is not the frame's", "id: 1\ndata: a\n\ndata: b\n\n", []sse.Frame{own("1", "a"), stuck("1", "b")}, nil},
		{"id after data", "data: a\nid: 1\n\n", []sse.Frame{own("1", "a")}, nil},
		{"last id wins", "id: 1\nid: 2\ndata: a\n\n", []sse.Frame{own("2", "a")}, nil},
		{"id without data sticks", "id: 1\n\ndata: b\n\n", []sse.Frame{stuck("1", "b")}, nil},
		{"empty id unsticks", "id: 1\n\nid\ndata: b\n\n", []sse.Frame{own("", "b")}, nil},
		{"id with NUL is no id", "id: 1\n\nid: 2\x00\ndata: b\n\n", []sse.Frame{stuck("1", "b")}, nil},

		{"ends inside a frame", "data: a\n\ndata: b\n", []sse.Frame{data("a")}, io.ErrUnexpectedEOF},
		{"ends inside a line", "data: a\n\nda", []sse.Frame{data("a")}, io.ErrUnexpectedEOF},
		{"ends inside a block of an id", "id: 1\n", nil, io.ErrUnexpectedEOF},
		{"ends after CR", "data: a\r\n\r", []sse.Frame{data("a")}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(tt.stream, 0)
			if diff := cmp.Diff(tt.want, got, equateEmpty); diff != "" {
				t.Errorf("frames of %q (-want +got):\n%s", tt.stream, diff)
			}
			want := tt.err
			if want == nil {
				want = io.EOF
			}
			if !errors.Is(err, want) {
				t.Errorf("end of %q: %v, want %v", tt.stream, err, want)
			}
		})
	}
}

func TestUnfinishedIDDoesNotStick(t *testing.T) {
	reader := sse.NewReader(strings.NewReader("id: 1\ndata: a\n\nid: 2\n"), sse.Options{})
	for {
		if _, err := reader.Next(); err != nil {
			break
		}
	}
	if got := reader.LastEventID(); got != "1" {
		t.Errorf("LastEventID = %q, want the one of the last whole block, 1", got)
	}
}

func TestRetry(t *testing.T) {
	tests := []struct {
		line string
		want time.Duration
		ok   bool
	}{
		{"retry: 1500", 1500 * time.Millisecond, true},
		{"retry:0", 0, true},
		{"retry: 007", 7 * time.Millisecond, true},
		{"retry", 0, false},
		{"retry: -1", 0, false},
		{"retry: +1", 0, false},
		{"retry: 1s", 0, false},
		{"retry: 1.5", 0, false},
		{"retry: ٣", 0, false},
		{"retry: 9223372036854", 9223372036854 * time.Millisecond, true},
		{"retry: 9223372036855", 0, false},
		{"retry: 99999999999999999999999", 0, false},
	}
	for _, tt := range tests {
		reader := sse.NewReader(strings.NewReader(tt.line+"\ndata: x\n\n"), sse.Options{})
		if _, err := reader.Next(); err != nil {
			t.Fatalf("%q: %v", tt.line, err)
		}
		if got, ok := reader.Retry(); got != tt.want || ok != tt.ok {
			t.Errorf("%q: Retry = %v, %v; want %v, %v", tt.line, got, ok, tt.want, tt.ok)
		}
	}
}

func TestLimitIsTheJoinedData(t *testing.T) {
	const limit = 16
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		name   string
		stream string
		ok     bool
	}{
		{"at the limit", "data: " + x(16) + "\n\n", true},
		{"at the limit, after a byte order mark", "\xEF\xBB\xBFdata: " + x(16) + "\n\n", true},
		{"at the limit, with other fields", "id: " + x(16) + "\nevent: " + x(12) + "\ndata: " + x(16) + "\n\n", true},
		{"above it", "data: " + x(17) + "\n\n", false},
		{"above it, without the space", "data:" + x(17) + "\n\n", false},
		{"two lines at it", "data: " + x(8) + "\ndata: " + x(7) + "\n\n", true},
		{"two lines above it by the LF that joins", "data: " + x(8) + "\ndata: " + x(8) + "\n\n", false},
		{"empty lines at it", strings.Repeat("data\n", 17) + "\n", true},
		{"a name that begins with data", "data: " + x(16) + "\ndataset: 1\n\n", true},
		{"empty lines above it", strings.Repeat("data\n", 18) + "\n", false},
		{"each frame anew", "data: " + x(16) + "\n\n" + "data: " + x(16) + "\n\n", true},
		{"before the blank line", "data: " + x(17) + "\n", false},
		{"before the end of the line", "data: " + x(17), false},
		{"a line of another field", "other: " + x(40) + "\n", false},
		{"a comment without an end", ":" + x(40), false},
		{"a name without an end", x(40), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAll(tt.stream, limit)
			if got := !errors.Is(err, sse.ErrFrameTooLarge); got != tt.ok {
				t.Errorf("reading %q within %d: %v", tt.stream, limit, err)
			}
			_, err = parsePieces(singleBytes(tt.stream), limit)
			if got := !errors.Is(err, sse.ErrFrameTooLarge); got != tt.ok {
				t.Errorf("reading %q within %d, byte by byte: %v", tt.stream, limit, err)
			}
		})
	}
}

func TestTooLargeIsFinalAndKeepsEarlierFrames(t *testing.T) {
	reader := sse.NewReader(strings.NewReader("data: a\n\ndata: "+strings.Repeat("x", 40)+"\n\ndata: b\n\n"), sse.Options{MaxFrame: 16})
	if frame, err := reader.Next(); err != nil || string(frame.Data) != "a" {
		t.Fatalf("first frame: %q, %v", frame.Data, err)
	}
	for range 3 {
		if frame, err := reader.Next(); !errors.Is(err, sse.ErrFrameTooLarge) {
			t.Fatalf("after the limit: %q, %v", frame.Data, err)
		}
	}
}

func TestMemoryStaysBoundedWhileNothingEnds(t *testing.T) {
	const limit = 1 << 10
	for _, piece := range []string{"data: xxxx\n", "data\n", "x", ": c", "id: 7", "retry:1"} {
		endless := sse.NewReader(&repeated{piece: piece}, sse.Options{MaxFrame: limit})
		if _, err := endless.Next(); !errors.Is(err, sse.ErrFrameTooLarge) {
			t.Errorf("an endless %q: %v, want ErrFrameTooLarge", piece, err)
		}
	}
}

// repeated is a source that never ends.
type repeated struct {
	piece string
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.piece[r.at%len(r.piece)]
		r.at++
	}
	return len(p), nil
}

func TestReaderGivesFramesBeforeTheError(t *testing.T) {
	broken := errors.New("broken")
	reader := sse.NewReader(&scripted{text: "data: a\n\ndata: b\n\n", err: broken}, sse.Options{})
	for _, want := range []string{"a", "b"} {
		if frame, err := reader.Next(); err != nil || string(frame.Data) != want {
			t.Fatalf("frame %q, %v; want %q", frame.Data, err, want)
		}
	}
	for range 2 {
		if _, err := reader.Next(); !errors.Is(err, broken) {
			t.Fatalf("end: %v, want the error of the source", err)
		}
	}
}

func TestReaderGivesUpOnASourceWithoutProgress(t *testing.T) {
	reader := sse.NewReader(&scripted{}, sse.Options{})
	if _, err := reader.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that answers nothing: %v", err)
	}
}

// scripted answers its text once, together with its error.
type scripted struct {
	text string
	err  error
}

func (s *scripted) Read(p []byte) (int, error) {
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, s.err
}

func TestFrameDataIsTheReceivers(t *testing.T) {
	reader := sse.NewReader(strings.NewReader("data: first\n\ndata: other\n\n"), sse.Options{})
	first, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Next(); err != nil {
		t.Fatal(err)
	}
	if string(first.Data) != "first" {
		t.Errorf("data of the first frame became %q", first.Data)
	}
}

// E1 of the client's behaviours: a frame in two pieces.
func ExampleParser() {
	parser := sse.NewParser(sse.Options{})
	for _, piece := range []string{"id: evt-1\n", "data: {\"eventId\":\"evt-1\"}\n\n"} {
		_, frame, ok, err := parser.Next([]byte(piece))
		fmt.Printf("%v %v %q %q\n", ok, err, frame.ID, frame.Data)
	}
	// Output:
	// false <nil> "" ""
	// true <nil> "evt-1" "{\"eventId\":\"evt-1\"}"
}
