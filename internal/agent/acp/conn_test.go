package acp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a handler that keeps what it is given, and waits for leave to go on.
type recorder struct {
	got   []string
	leave chan struct{} // nil: always
}

func (r *recorder) notification(method string, params json.RawMessage) error {
	r.got = append(r.got, method+string(params))
	if r.leave != nil {
		<-r.leave
	}
	return nil
}

func (r *recorder) request(id json.RawMessage, method string, _ json.RawMessage) error {
	return r.notification(method, id)
}

// dial returns a connection and the agent's end of it. The caller closes that.
func dial(h handler) (*conn, net.Conn) {
	ours, theirs := net.Pipe()
	c := newConn(h, ours, ours, time.Second, slog.New(slog.NewTextHandler(io.Discard, nil)))
	c.start()
	return c, theirs
}

func write(t *testing.T, w io.Writer, lines ...string) {
	t.Helper()
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatalf("write %.100q: %v", lines, err)
	}
}

// end closes the agent's end and joins the connection.
func end(c *conn, theirs net.Conn) {
	theirs.Close()
	<-c.ended
	<-c.wrote
}

func TestOneLineAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &recorder{leave: make(chan struct{})}
		c, theirs := dial(h)
		write(t, theirs, `{"method":"a"}`, `{"method":"b","id":"7"}`, `{"method":"c"}`)
		for i, want := range []string{"a", `b"7"`, "c"} {
			synctest.Wait()
			if len(h.got) != i+1 || h.got[i] != want {
				t.Fatalf("got %q, want %q as the last", h.got, want)
			}
			h.leave <- struct{}{}
		}
		end(c, theirs)
	})
}

func TestAnswersAreMatchedByID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, theirs := dial(&recorder{})
		go io.Copy(io.Discard, theirs)
		got := map[string]string{}
		for _, name := range []string{"one", "two", "three"} {
			err := c.call(name, nil, func(r reply) { got[name] = fmt.Sprint(string(r.result), r.err) })
			if err != nil {
				t.Fatal(err)
			}
		}
		write(t, theirs, `{"id":3,"result":"c"}`, `{"id":1,"error":{"code":-1,"message":"MARKER"}}`, `{"id":3,"result":"again"}`)
		synctest.Wait()
		want := map[string]string{"three": `"c"<nil>`, "one": "the agent reported error -1"}
		if len(got) != len(want) || got["three"] != want["three"] || got["one"] != want["one"] {
			t.Errorf("got %q, want %q", got, want)
		}
		if c.counts[unknownAnswer] != 1 {
			t.Errorf("got %v, want the second answer to be counted", c.counts)
		}
		end(c, theirs)
		if want := "the agent has closed its output"; got["two"] != want {
			t.Errorf("got %q for a request without an answer, want %q", got["two"], want)
		}
		if err := c.call("late", nil, nil); !errors.Is(err, errEnd) {
			t.Errorf("got %v for a late request, want %v", err, errEnd)
		}
	})
}

func TestDeafAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, theirs := dial(&recorder{})
		began := time.Now()
		if err := c.notify("a", nil); err != nil {
			t.Fatal(err)
		}
		<-c.broken
		if took := time.Since(began); !errors.Is(c.why(), errDeaf) || took != c.timeout {
			t.Errorf("got %v after %v, want %v after %v", c.why(), took, errDeaf, c.timeout)
		}
		if err := c.notify("b", nil); !errors.Is(err, errDeaf) {
			t.Errorf("got %v, want %v", err, errDeaf)
		}
		end(c, theirs)
	})
}

// TestSendIsBounded: nobody waits for ever for a place in the queue.
func TestSendIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConn(nil, nil, nil, time.Minute, nil) // nobody writes
		for range cap(c.outbox) {
			if err := c.notify("a", nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.notify("a", nil); !errors.Is(err, errDeaf) {
			t.Errorf("got %v, want %v", err, errDeaf)
		}
	})
}

func TestLinesAreBounded(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		err  error
	}{
		{"a\n\nb\r\n", []string{"a", "", "b"}, io.EOF},
		{"1234567\n", []string{"1234567"}, io.EOF},
		{"12345678\n", []string{"12345678"}, io.EOF},
		{"123456789\n", nil, errLineTooLong},
		{"a\nb", []string{"a"}, errLineCut},
		{"", nil, io.EOF},
	} {
		l := &lineReader{r: bufio.NewReaderSize(strings.NewReader(c.in), 16), most: 8}
		var got []string
		line, err := l.next()
		for ; err == nil; line, err = l.next() {
			got = append(got, string(line))
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") || !errors.Is(err, c.err) {
			t.Errorf("%q: got %q, %v; want %q, %v", c.in, got, err, c.want, c.err)
		}
	}
}

// FuzzConn gives the reader anything. It must come to an end and hand on nothing that is
// no message.
func FuzzConn(f *testing.F) {
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan"}}}`))
	f.Add([]byte("{\"id\":1,\"result\":{}}\n[]\n{\"id\":null,\"error\":{}}\n\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &recorder{}
		c := newConn(h, strings.NewReader(string(data)), nil, time.Second, slog.New(slog.NewTextHandler(io.Discard, nil)))
		c.read()
		if c.why() == nil {
			t.Error("a connection that has ended is not broken")
		}
		for _, got := range h.got {
			if got == "" {
				t.Error("a message without a method was handed on")
			}
		}
	})
}
