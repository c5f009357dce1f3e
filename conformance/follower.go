package conformance

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// follower reads an event stream line by line, since how a frame is spelled is a demand
// too (§10.1).
type follower struct {
	p      *probe
	asked  string
	header http.Header
	lines  *bufio.Reader
	body   io.Closer
	cancel context.CancelFunc
}

// frame is one frame of a stream.
type frame struct {
	id    string
	hasID bool
	kind  string // the type of its record
	data  narad.Raw
}

// follow opens a stream, which must begin.
func (p *probe) follow(path string, header map[string]string) *follower {
	response, cancel := p.open(http.MethodGet, path, header, nil)
	f := &follower{p, "GET " + path, response.Header, bufio.NewReaderSize(response.Body, 64<<10), response.Body, cancel}
	p.ends = append(p.ends, f.close)
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		if code := text(body, "code"); code == "not_offered" {
			p.skipf("the host does not offer this: %s", f.asked)
		}
		p.failf("%s answers %d %s, want a stream", f.asked, response.StatusCode, body)
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	p.want(kind == "text/event-stream", "%s: the content type is %q, want text/event-stream", f.asked, kind)
	return f
}

// session follows a session after a sequence.
func (p *probe) stream(session, query string, header map[string]string) *follower {
	return p.follow("/sessions/"+session+"/stream?"+query, header)
}

func (f *follower) close() {
	f.cancel()
	f.body.Close()
}

var errSilent = errors.New("nothing comes")

// read returns the next frame, or why there is none within a time.
func (f *follower) read(within time.Duration) (frame, error) {
	silent := time.AfterFunc(within, f.cancel)
	defer silent.Stop()
	var lines []string
	for {
		line, err := f.line()
		switch {
		case err != nil && f.p.ctx.Err() == nil && !silent.Stop():
			return frame{}, errSilent
		case err != nil:
			return frame{}, err
		case line != "":
			lines = append(lines, line)
		case len(lines) > 0:
			return f.frame(lines), nil
		}
	}
}

// line reads one line, of at most a frame's size and a little more.
func (f *follower) line() (string, error) {
	var line []byte
	for {
		part, err := f.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > narad.MaxFrameBytes+64 {
			f.p.failf("%s: a line is longer than a frame may be", f.asked)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimRight(string(line), "\r\n"), err
	}
}

// frame reads the lines of a frame: one record on one data line, and no event field.
func (f *follower) frame(lines []string) frame {
	var read frame
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "", "retry": // a comment
		case "id":
			read.id, read.hasID = value, true
		case "data":
			f.p.want(read.data == nil, "%s: a frame has several data lines", f.asked)
			read.data = narad.Raw(value)
		default:
			f.p.failf("%s: a frame has the field %q, which a browser's onmessage would not see or need", f.asked, short(name))
		}
	}
	read.kind = text(read.data, "type")
	return read
}

// next returns the next frame that carries a record.
func (f *follower) next() frame {
	for {
		read, err := f.read(Patience)
		if err != nil {
			f.p.failf("%s: no frame comes: %v", f.asked, err)
		}
		if read.data != nil {
			return read
		}
	}
}

// fact returns the next frame that is no heartbeat.
func (f *follower) fact() frame {
	for {
		if read := f.next(); read.kind != "server.heartbeat" {
			return read
		}
	}
}

// facts reads facts up to a sequence.
func (f *follower) facts(upTo int64) (read []frame) {
	for {
		next := f.fact()
		read = append(read, next)
		if number(next.data, "sessionSequence") >= upTo {
			return read
		}
	}
}
