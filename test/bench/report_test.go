package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// pieces reads at most so many bytes at once.
type pieces struct {
	from *strings.Reader
	size int
}

func (p pieces) Read(to []byte) (int, error) { return p.from.Read(to[:min(len(to), p.size)]) }

func readerOf(from io.Reader) *reader { return &reader{body: bufio.NewReader(from)} }

func TestTable(t *testing.T) {
	var out strings.Builder
	err := writeTable(&out, []line{
		atLeast("fan-out", 0.9, 0.8, "a | b", "c\nd"),
		atMost("attach", 2.5, 2, "small", "disk"),
		notMeasured("idle", "< 1 GiB", "no descriptors"),
	})
	want := `
| what    | figure | goal    |              | compared with | limited by     |
| ---     | ---    | ---     | ---          | ---           | ---            |
| fan-out | 0.90   | >= 0.80 | met          | a / b         | c d            |
| attach  | 2.50   | <= 2.00 | not met      | small         | disk           |
| idle    | -      | < 1 GiB | not measured |               | no descriptors |
`
	if got := "\n" + out.String(); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestMetrics(t *testing.T) {
	got := metricsOf([]byte("goos: linux\nBenchmarkAppend-2   \t  100\t  208971 ns/op\t  0.5114 of-raw-log\t  14194 raw-groups/s\nPASS\n"))
	if got["of-raw-log"] != 0.5114 || got["raw-groups/s"] != 14194 || len(got) != 3 {
		t.Errorf("got %v, want the three metrics of the line", got)
	}
}

// Frames are counted wherever a read cuts them.
func TestCount(t *testing.T) {
	const stream = "id: 1.a\ndata: x\n\ndata: beat\n\nid: 2.a\ndata: y\n\n"
	for size := 1; size <= len(stream); size++ {
		r := readerOf(pieces{strings.NewReader(stream), size})
		got := 0
		err := r.count(func(frames int) { got += frames })
		if err == nil || got != 3 {
			t.Errorf("in pieces of %d: got %d frames, %v; want 3 and the end", size, got, err)
		}
	}
}

func TestNext(t *testing.T) {
	r := readerOf(strings.NewReader("data: beat\n\nid: 7.a\ndata: x\n\nid: 8.a\ndata: y\n\n"))
	for want := uint64(7); want <= 8; want++ {
		got, data, err := r.next()
		if err != nil || got != want || len(data) != 2 {
			t.Errorf("got %d %q %v, want sequence %d", got, data, err, want)
		}
	}
}
