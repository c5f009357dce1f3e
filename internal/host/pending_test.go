package host

import (
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"
)

// drain takes everything, as a handle does.
func (p *pending) drain() map[stream]string {
	got := map[stream]string{}
	for s, ok := p.next(); ok; s, ok = p.next() {
		got[s.stream] += s.text
		p.drop(s)
	}
	return got
}

// Whatever is added in whatever pieces, each stream comes out whole, in stretches that
// are text, and the order of streams is that in which their characters were completed.
func TestPendingKeepsEveryStream(t *testing.T) {
	source := "a é 日 🎵 " + strings.Repeat("𝄞", 3000)
	streams := []stream{{kind: streamText}, {kind: streamThought}, {streamOutput, "a"}, {streamOutput, "b"}}
	for seed := range int64(200) {
		rng := rand.New(rand.NewSource(seed))
		var p pending
		at := make([]int, len(streams))
		got := map[stream]string{}
		for {
			open := false
			i := rng.Intn(len(streams))
			n := min(rng.Intn(1+rng.Intn(3000)), len(source)-at[i])
			p.add(streams[i], source[at[i]:at[i]+n])
			at[i] += n
			if rng.Intn(3) == 0 {
				if s, ok := p.next(); ok {
					if len(s.text) > stretchMost || !utf8.ValidString(s.text) || strings.ContainsRune(s.text, utf8.RuneError) {
						t.Fatalf("seed %d: got a stretch of %d bytes, valid %v", seed, len(s.text), utf8.ValidString(s.text))
					}
					got[s.stream] += s.text
					p.add(s.stream, "") // more may come before it is dropped
					p.drop(s)
				}
			}
			for _, n := range at {
				open = open || n < len(source)
			}
			if !open {
				break
			}
		}
		for s, text := range p.drain() {
			got[s] += text
		}
		for _, s := range streams {
			if got[s] != source {
				t.Fatalf("seed %d: stream %v came out as %d bytes, want %d", seed, s, len(got[s]), len(source))
			}
		}
		if len(p.tails) != 0 {
			t.Fatalf("seed %d: left over %v", seed, p.tails)
		}
	}
}

func TestPendingGivesUpHalfCharacters(t *testing.T) {
	var p pending
	p.add(stream{kind: streamText}, "a\xf0\x9f")
	p.add(stream{kind: streamText}, "b")
	p.add(stream{streamOutput, "x"}, "\xe6\x97")
	if got := p.drain()[stream{kind: streamText}]; got != "a\uFFFD\uFFFDb" {
		t.Errorf("got %q: what is no text cannot wait for its rest", got)
	}
	p.endText()
	if len(p.drain()) != 0 {
		t.Error("the end of a message ended an output")
	}
	p.endAll()
	if got := p.drain()[stream{streamOutput, "x"}]; got != "\uFFFD\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestPendingIsLongEnough(t *testing.T) {
	var p pending
	if p.add(stream{kind: streamText}, strings.Repeat("x", textEnough-1)) || !p.add(stream{kind: streamText}, "x") {
		t.Error("text is recorded at 2 KiB")
	}
	if p.add(stream{streamOutput, "a"}, strings.Repeat("x", outputEnough-1)) || !p.add(stream{streamOutput, "a"}, "x") {
		t.Error("output is recorded at 8 KiB")
	}
}
