package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestKeyboardReadsLines(t *testing.T) {
	in, typed := pipe(t)
	k, err := newKeyboard(in)
	if err != nil {
		t.Fatal(err)
	}
	defer k.close()
	wrote := make(chan error)
	go func() { // more than a pipe holds
		_, err := typed.WriteString("one\ntwo\n" + strings.Repeat("x", maxTyped*2) + "\nlast")
		wrote <- errors.Join(err, typed.Close())
	}()
	var got []string
	for line := range k.lines {
		got = append(got, line[:min(len(line), 8)])
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if want := "one two xxxxxxxx last"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKeyboardCloseEndsAWaitingRead: nobody types, and close returns all the same, with
// a line on the way too.
func TestKeyboardCloseEndsAWaitingRead(t *testing.T) {
	for _, typedAhead := range []string{"", "nobody takes this\n"} {
		in, typed := pipe(t)
		k, err := newKeyboard(in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := typed.WriteString(typedAhead); err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		go func() { k.close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(30 * time.Second):
			t.Fatalf("close still waits, with %q typed", typedAhead)
		}
	}
}

func TestLineReader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		most     int
		want     []string
	}{
		{"nothing", "", 10, nil},
		{"an end alone", "\n", 10, []string{""}},
		{"with and without an end", "a\nb", 10, []string{"a", "b"}},
		{"blank lines", "a\n\n\nb\n", 10, []string{"a", "", "", "b"}},
		{"as long as may be", "12345\n1\n", 5, []string{"12345", "1"}},
		{"longer", "123456789\n1\n", 5, []string{"123456", "1"}},
		{"longer than the buffer", strings.Repeat("x", 100) + "\n1", 50, []string{strings.Repeat("x", 51), "1"}},
	} {
		r := lineReader{in: bufio.NewReaderSize(strings.NewReader(c.in), 16), most: c.most}
		var got []string
		for {
			line, err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			got = append(got, string(line))
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
