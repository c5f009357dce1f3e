package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"os"
	"sync"
	"time"
)

// Why a connection ends.
var (
	errEnd     = errors.New("the agent has closed its output")
	errGarbage = errors.New("the agent does not speak the protocol")
	errDeaf    = errors.New("the agent does not read its input")
)

// maxGarbage is how many lines in a row may be no messages: an agent may greet, but it
// must speak the protocol then.
const maxGarbage = 100

// class is what is wrong with a line. It is all that is told of it.
type class string

const (
	notJSON       class = "not_json"
	wrongShape    class = "wrong_shape"
	unknownAnswer class = "unknown_answer"
	wrongContent  class = "wrong_content"
	cutOff        class = "cut_off"
	tooLong       class = "too_long"
)

// message is one line in either direction.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *callError      `json:"error,omitempty"`
}

// callError is a refused request. The agent's words may hold anything: they stand at the end
// of the run that fails, without what looks like a secret, and in no log.
type callError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error tells the code alone.
func (e *callError) Error() string { return fmt.Sprintf("the agent reported error %d", e.Code) }

// Codes of errors.
const (
	codeNoMethod  = -32601
	codeBadParams = -32602
	codeSignIn    = -32000
	codeCancelled = -32800
)

// reply is the answer to a request, or why there is none.
type reply struct {
	result json.RawMessage
	err    error
}

// handler takes what the agent says of itself. It is called by one goroutine, and the
// next line is read when it has returned. An error says that the content is wrong.
type handler interface {
	notification(method string, params json.RawMessage) error
	request(id json.RawMessage, method string, params json.RawMessage) error
}

// deadlineWriter is the part of a pipe that is written to.
type deadlineWriter interface {
	io.Writer
	SetWriteDeadline(time.Time) error
}

// conn speaks JSON-RPC 2.0, a message a line.
type conn struct {
	handler handler
	lines   *lineReader
	out     deadlineWriter
	timeout time.Duration // of a write
	log     *slog.Logger
	outbox  chan []byte
	broken  chan struct{} // closed when it is of no more use
	ended   chan struct{} // closed when nothing is handled any more
	wrote   chan struct{} // closed when nothing is written any more

	garbage int           // lines in a row; the reader's alone
	counts  map[class]int // the reader's alone

	mu      sync.Mutex
	last    int64                 // guarded by mu: id of the last request
	waiting map[int64]func(reply) // guarded by mu: nil when it has ended
	fault   error                 // guarded by mu: why it is broken
}

// newConn returns a connection that is started by start. It ends when in ends; its owner
// sees to that once it is broken.
func newConn(h handler, in io.Reader, out deadlineWriter, timeout time.Duration, log *slog.Logger) *conn {
	return &conn{
		handler: h, lines: newLineReader(in, maxLine), out: out, timeout: timeout, log: log,
		outbox: make(chan []byte, 64), broken: make(chan struct{}), ended: make(chan struct{}),
		wrote: make(chan struct{}), counts: map[class]int{}, waiting: map[int64]func(reply){},
	}
}

func (c *conn) start() {
	go c.read()
	go c.write()
}

// read handles one line after the other.
func (c *conn) read() {
	defer close(c.ended)
	for {
		line, err := c.lines.next()
		if err != nil {
			c.finish(err)
			return
		}
		if len(line) == 0 {
			continue
		}
		if c.count(c.take(line)); c.garbage >= maxGarbage {
			c.finish(errGarbage)
			return
		}
	}
}

// take handles a line and returns what is wrong with it.
func (c *conn) take(line []byte) class {
	if !json.Valid(line) {
		return notJSON
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return wrongShape
	}
	var err error
	switch hasID := len(m.ID) > 0 && string(m.ID) != "null"; {
	case m.Method != "" && hasID:
		err = c.handler.request(m.ID, m.Method, m.Params)
	case m.Method != "":
		err = c.handler.notification(m.Method, m.Params)
	case hasID && (m.Error != nil || m.Result != nil):
		return c.settle(m)
	default:
		return wrongShape
	}
	if err != nil {
		return wrongContent
	}
	return ""
}

// settle hands an answer to who waits for it.
func (c *conn) settle(m message) class {
	var id int64
	if err := json.Unmarshal(m.ID, &id); err != nil {
		return unknownAnswer
	}
	c.mu.Lock()
	done := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if done == nil {
		return unknownAnswer
	}
	if m.Error != nil {
		done(reply{err: m.Error})
		return ""
	}
	done(reply{result: m.Result})
	return ""
}

// count keeps account of bad lines, and tells of them ever more rarely.
func (c *conn) count(bad class) {
	switch bad {
	case notJSON, wrongShape:
		c.garbage++
	default:
		c.garbage = 0
	}
	if bad == "" {
		return
	}
	c.counts[bad]++
	if n := c.counts[bad]; bits.OnesCount(uint(n)) == 1 {
		c.log.Warn("agent sent a line that cannot be used", "class", string(bad), "count", n)
	}
}

// finish is the reader's end: nobody gets an answer any more.
func (c *conn) finish(err error) {
	switch {
	case errors.Is(err, errLineTooLong):
		c.count(tooLong)
		err = errGarbage
	case errors.Is(err, errLineCut):
		c.count(cutOff)
		err = errEnd
	case !errors.Is(err, errGarbage):
		err = errEnd
	}
	c.fail(err)
	c.mu.Lock()
	waiting := c.waiting
	c.waiting = nil
	err = c.fault
	c.mu.Unlock()
	for _, done := range waiting {
		done(reply{err: err})
	}
}

// fail notes the first reason why the connection is of no more use.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
		close(c.broken)
	}
}

// why returns the reason why the connection is broken, nil if it is not.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// call sends a request. done is called once with its answer, by the reader and before
// it reads on; or an error is returned, and done is never called.
func (c *conn) call(method string, params any, done func(reply)) error {
	c.mu.Lock()
	if c.waiting == nil {
		defer c.mu.Unlock()
		return c.fault
	}
	c.last++
	id := c.last
	c.waiting[id] = done
	c.mu.Unlock()
	err := c.send(message{ID: fmt.Append(nil, id), Method: method}, params)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[id] == nil { // the reader has ended, and tells done
		return nil
	}
	delete(c.waiting, id)
	return err
}

// ask sends a request and waits for its answer.
func (c *conn) ask(ctx context.Context, method string, params, result any) error {
	answered := make(chan reply, 1)
	if err := c.call(method, params, func(r reply) { answered <- r }); err != nil {
		return err
	}
	select {
	case r := <-answered:
		if r.err != nil {
			return r.err
		}
		if err := json.Unmarshal(r.result, result); err != nil {
			return errGarbage
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// answer answers a request of the agent; refuse declines it.
func (c *conn) answer(id json.RawMessage, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	return c.send(message{ID: id, Result: data}, nil)
}

func (c *conn) refuse(id json.RawMessage, code int, text string) error {
	return c.send(message{ID: id, Error: &callError{code, text}}, nil)
}

// send queues a message, and gives the agent up if the queue does not move.
func (c *conn) send(m message, params any) error {
	m.JSONRPC = "2.0"
	if params != nil {
		data, err := json.Marshal(params)
		if err != nil {
			return fmt.Errorf("encode %s: %w", m.Method, err)
		}
		m.Params = data
	}
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Method, err)
	}
	if err := c.why(); err != nil {
		return err
	}
	late := time.NewTimer(c.timeout)
	defer late.Stop()
	select {
	case c.outbox <- append(line, '\n'):
		return nil
	case <-c.broken:
		return c.why()
	case <-late.C:
		c.fail(errDeaf)
		return errDeaf
	}
}

// write writes what is queued. What is left when the connection breaks is dropped.
func (c *conn) write() {
	defer close(c.wrote)
	for {
		select {
		case line := <-c.outbox:
			if err := c.put(line); err != nil {
				c.fail(err)
				return
			}
		case <-c.broken:
			return
		}
	}
}

func (c *conn) put(line []byte) error {
	if err := c.out.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return errEnd
	}
	_, err := c.out.Write(line)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errDeaf
	}
	return errEnd // a broken pipe: the reader will see the end, too
}
