package sse_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	other "github.com/tmaxmax/go-sse"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/internal/sse"
)

// parsePieces feeds the pieces one after the other and collects the frames.
func parsePieces(pieces []string, limit int) ([]sse.Frame, error) {
	parser := sse.NewParser(sse.Options{MaxFrame: limit})
	var frames []sse.Frame
	for _, piece := range pieces {
		rest := []byte(piece)
		for len(rest) > 0 {
			n, frame, ok, err := parser.Next(rest)
			if err != nil {
				return frames, err
			}
			if ok {
				frames = append(frames, frame)
			}
			rest = rest[n:]
		}
	}
	return frames, nil
}

// streams generates input in which what matters is likely: line ends of all
// kinds, field names, their prefixes, byte order marks, NUL, bytes that are not
// UTF-8.
func streams() *rapid.Generator[string] {
	pieces := []string{
		"\n", "\n", "\r", "\r\n", "data: ", "data:", "data", "da", "id: ", "id", "event: ", "retry: ", ":", " ",
		"\xEF\xBB\xBF", "\x00", "\xff", "é", "7", "abcdefgh", "data: x\n\n", "id: 1\ndata: y\r\n\r\n",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
	})
}

func TestNoSplitChangesTheFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := streams().Draw(t, "stream")
		limit := rapid.SampledFrom([]int{8, 20, 0}).Draw(t, "limit")
		want, wantErr := parsePieces([]string{stream}, limit)
		same := func(how string, pieces []string) {
			got, err := parsePieces(pieces, limit)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q, %s (-whole +split):\n%s", stream, how, diff)
			}
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%q, %s: %v, whole: %v", stream, how, err, wantErr)
			}
		}
		for at := range len(stream) {
			same("cut in two", []string{stream[:at], stream[at:]})
		}
		same("byte by byte", strings.Split(stream, ""))
		same("bytes", singleBytes(stream))
	})
}

func singleBytes(s string) []string {
	pieces := make([]string, 0, len(s))
	for i := range len(s) {
		pieces = append(pieces, s[i:i+1])
	}
	return pieces
}

// The naive model works on the whole text at once, as the standard words it.
func naiveFrames(stream string) []sse.Frame {
	stream = strings.TrimPrefix(stream, "\xEF\xBB\xBF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var frames []sse.Frame
	var lastID string
	var frame sse.Frame
	var joined []string
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if frame.HasID {
				lastID = frame.ID
			}
			if joined != nil {
				frame.LastEventID, frame.Data = lastID, []byte(strings.Join(joined, "\n"))
				frames = append(frames, frame)
			}
			frame, joined = sse.Frame{}, nil
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "data":
			joined = append(joined, value)
		case name == "event":
			frame.Event = value
		case name == "id" && !strings.Contains(value, "\x00"):
			frame.ID, frame.HasID = value, true
		}
	}
	return frames
}

// equateEmpty takes nil and empty data for the same.
var equateEmpty = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) })

func TestAgreesWithTheNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := streams().Draw(t, "stream")
		got, _ := readAll(stream, 0)
		if diff := cmp.Diff(naiveFrames(stream), got, equateEmpty); diff != "" {
			t.Fatalf("%q (-naive +ours):\n%s", stream, diff)
		}
	})
}

// A second opinion by another implementation. It dispatches blocks without data
// where the standard does not, so frames with empty data are left out on both
// sides; and it drops a byte order mark at the start of later blocks too, so there
// is none but at the start of the stream.
func TestAgreesWithAnotherImplementation(t *testing.T) {
	type event struct{ LastEventID, Type, Data string }
	rapid.Check(t, func(t *rapid.T) {
		stream := streams().Draw(t, "stream")
		if strings.LastIndex(stream, "\xEF\xBB\xBF") > 0 {
			stream = strings.ReplaceAll(stream, "\xEF\xBB\xBF", "")
		}
		var want, got []event
		for e, err := range other.Read(strings.NewReader(stream), nil) {
			if err != nil {
				t.Fatalf("%q: the other implementation: %v", stream, err)
			}
			if e.Data != "" {
				want = append(want, event{e.LastEventID, e.Type, e.Data})
			}
		}
		frames, _ := readAll(stream, 0)
		for _, f := range frames {
			if len(f.Data) > 0 {
				got = append(got, event{f.LastEventID, f.Event, string(f.Data)})
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-other +ours):\n%s", stream, diff)
		}
	})
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct{ ID, Data string }
		var want, got []pair
		var stream []byte
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			p := pair{rapid.String().Draw(t, "id"), string(rapid.SliceOf(rapid.Byte()).Draw(t, "data"))}
			next, err := sse.AppendFrame(stream, p.ID, []byte(p.Data))
			if unsafe := strings.ContainsAny(p.ID+p.Data, "\r\n\x00"); unsafe != (err != nil) {
				t.Fatalf("AppendFrame(%q, %q): %v", p.ID, p.Data, err)
			}
			if err == nil {
				want = append(want, p)
			}
			stream = next
		}
		frames, _ := readAll(string(stream), 0)
		for _, f := range frames {
			if f.HasID != (f.ID != "") {
				t.Fatalf("frame %+v of %q", f, stream)
			}
			got = append(got, pair{f.ID, string(f.Data)})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-written +read):\n%s", stream, diff)
		}
	})
}

func FuzzParser(f *testing.F) {
	f.Add("id: 1\ndata: a\n\n", 3, 0)
	f.Add("\xEF\xBB\xBFdata\r\rdata: b\r\n\r\n", 1, 8)
	f.Fuzz(func(t *testing.T, stream string, cut, limit int) {
		cut = min(max(cut, 0), len(stream))
		want, wantErr := parsePieces([]string{stream}, limit)
		got, err := parsePieces([]string{stream[:cut], stream[cut:]}, limit)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q cut at %d (-whole +split):\n%s", stream, cut, diff)
		}
		if errors.Is(err, sse.ErrFrameTooLarge) != errors.Is(wantErr, sse.ErrFrameTooLarge) {
			t.Fatalf("%q cut at %d: %v, whole: %v", stream, cut, err, wantErr)
		}
		if wantErr == nil {
			if diff := cmp.Diff(naiveFrames(stream), want, equateEmpty); diff != "" {
				t.Fatalf("%q (-naive +ours):\n%s", stream, diff)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	var stream []byte
	for range 1000 {
		stream, _ = sse.AppendFrame(stream, "123.abcdefgh", bytes.Repeat([]byte("x"), 400))
	}
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		reader := sse.NewReader(bytes.NewReader(stream), sse.Options{})
		for {
			if _, err := reader.Next(); err != nil {
				break
			}
		}
	}
}
