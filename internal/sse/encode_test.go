package sse_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mahati-host/mahati/internal/sse"
)

func TestAppendFrameWritesOneIDAndOneDataLine(t *testing.T) {
	tests := []struct{ id, data, want string }{
		{"7.abc", `{"a":1}`, "id: 7.abc\ndata: {\"a\":1}\n\n"},
		{"", `{"a":1}`, "data: {\"a\":1}\n\n"},
		{"", "", "data: \n\n"},
		{" led", "  two", "id:  led\ndata:   two\n\n"},
		{"", "é: \x1b\t\xff", "data: é: \x1b\t\xff\n\n"},
	}
	for _, tt := range tests {
		got, err := sse.AppendFrame([]byte("before|"), tt.id, []byte(tt.data))
		if err != nil || string(got) != "before|"+tt.want {
			t.Errorf("AppendFrame(%q, %q) = %q, %v; want %q", tt.id, tt.data, got, err, tt.want)
		}
	}
}

func TestAppendRefusesWhatWouldEndALine(t *testing.T) {
	frame := func(id, data string) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return sse.AppendFrame(dst, id, []byte(data)) }
	}
	comment := func(text string) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return sse.AppendComment(dst, text) }
	}
	tests := []struct {
		name  string
		write func([]byte) ([]byte, error)
		want  sse.UnsafeByteError
	}{
		{"LF in id", frame("a\nb", "x"), sse.UnsafeByteError{Field: "id", Offset: 1, Byte: '\n'}},
		{"CR in id", frame("ab\r", "x"), sse.UnsafeByteError{Field: "id", Offset: 2, Byte: '\r'}},
		{"NUL in id", frame("\x00", "x"), sse.UnsafeByteError{Field: "id", Offset: 0, Byte: 0}},
		{"LF in data", frame("a", "x\ny"), sse.UnsafeByteError{Field: "data", Offset: 1, Byte: '\n'}},
		{"CR in data", frame("", "\rx"), sse.UnsafeByteError{Field: "data", Offset: 0, Byte: '\r'}},
		{"NUL in data", frame("", "xy\x00"), sse.UnsafeByteError{Field: "data", Offset: 2, Byte: 0}},
		{"LF in comment", comment("a\n\ndata: forged"), sse.UnsafeByteError{Field: "comment", Offset: 1, Byte: '\n'}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.write([]byte("before"))
			var unsafe *sse.UnsafeByteError
			if !errors.As(err, &unsafe) || *unsafe != tt.want {
				t.Errorf("error = %v, want %v", err, &tt.want)
			}
			if string(got) != "before" {
				t.Errorf("destination became %q", got)
			}
		})
	}
}

func TestAppendHoldsTheWholeFrameToTheLimit(t *testing.T) {
	const id = "1.abcdefgh"
	room := sse.MaxFrame - len("id: \ndata: \n\n") - len(id)
	fits := bytes.Repeat([]byte("x"), room)

	frame, err := sse.AppendFrame(nil, id, fits)
	if err != nil || len(frame) != sse.MaxFrame {
		t.Fatalf("a frame at the limit: %d bytes, %v", len(frame), err)
	}
	got, err := sse.NewReader(bytes.NewReader(frame), sse.Options{}).Next()
	if err != nil || got.ID != id || !bytes.Equal(got.Data, fits) {
		t.Errorf("reading a frame at the limit: id %q, %d bytes, %v", got.ID, len(got.Data), err)
	}

	dst, err := sse.AppendFrame([]byte("before"), id, append(fits, 'x'))
	if !errors.Is(err, sse.ErrFrameTooLarge) || string(dst) != "before" {
		t.Errorf("a frame above the limit: %d bytes, %v", len(dst), err)
	}
	if _, err := sse.AppendComment(nil, strings.Repeat("x", sse.MaxFrame)); !errors.Is(err, sse.ErrFrameTooLarge) {
		t.Errorf("a comment above the limit: %v", err)
	}
}

func TestCommentsAreNotFrames(t *testing.T) {
	stream, err := sse.AppendComment(nil, "data: not this")
	if err != nil {
		t.Fatal(err)
	}
	stream, err = sse.AppendFrame(stream, "1", []byte("this"))
	if err != nil {
		t.Fatal(err)
	}
	want := []sse.Frame{{ID: "1", HasID: true, LastEventID: "1", Data: []byte("this")}}
	got, _ := readAll(string(stream), 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames of %q (-want +got):\n%s", stream, diff)
	}
}
