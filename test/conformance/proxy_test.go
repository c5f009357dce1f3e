package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"testing"
)

// spoiler is what stands between the kit and the host. What is nil changes nothing.
type spoiler struct {
	// serve may do something around a request.
	serve func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc)
	// ask changes a request and its body.
	ask func(r *http.Request, body string) string
	// say changes an answer that is no stream.
	say func(r *http.Request, a *said)
	// frame changes a frame of a stream, without its blank line: none, one or several.
	frame func(r *http.Request, frame string) []string
}

// said is an answer.
type said struct {
	status int
	header http.Header
	body   string
}

// front puts a spoiler before the host and returns its address.
func front(t *testing.T, s spoiler) string {
	t.Helper()
	through := &httputil.ReverseProxy{
		FlushInterval:  -1,
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(running.url); r.Out.Host = running.url.Host },
		ModifyResponse: func(a *http.Response) error { return s.answer(a) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway) // the kit has left
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ask != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			text := s.ask(r, string(body))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
		if s.serve != nil {
			s.serve(w, r, through.ServeHTTP)
			return
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (s spoiler) answer(a *http.Response) error {
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		if s.frame != nil {
			a.Body = &frames{body: a.Body, in: bufio.NewReader(a.Body), change: func(f string) []string { return s.frame(a.Request, f) }}
		}
		return nil
	}
	if s.say == nil {
		return nil
	}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	told := said{a.StatusCode, a.Header, string(body)}
	s.say(a.Request, &told)
	a.StatusCode, a.Body, a.ContentLength = told.status, io.NopCloser(strings.NewReader(told.body)), int64(len(told.body))
	a.Header.Set("Content-Length", strconv.Itoa(len(told.body)))
	return nil
}

// frames is the body of a stream whose frames are changed.
type frames struct {
	body   io.Closer
	in     *bufio.Reader
	change func(string) []string
	ready  bytes.Buffer
	frame  strings.Builder
}

func (f *frames) Close() error { return f.body.Close() }

func (f *frames) Read(p []byte) (int, error) {
	for f.ready.Len() == 0 {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line != "\n" {
			f.frame.WriteString(line)
			continue
		}
		for _, changed := range f.change(strings.TrimSuffix(f.frame.String(), "\n")) {
			f.ready.WriteString(changed + "\n\n")
		}
		f.frame.Reset()
	}
	return f.ready.Read(p)
}

// object changes an answer that is a JSON object.
func (a *said) object(change func(o map[string]any)) {
	var o map[string]any
	if json.Unmarshal([]byte(a.body), &o) != nil {
		return
	}
	change(o)
	out, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	a.body = string(out)
}

// facts changes the facts of a page of history, given as their text.
func (a *said) facts(change func(fact string) string) {
	var page struct {
		Events              []json.RawMessage `json:"events"`
		NextSessionSequence *int64            `json:"nextSessionSequence"`
	}
	if json.Unmarshal([]byte(a.body), &page) != nil || page.Events == nil {
		return
	}
	var out []string
	for _, fact := range page.Events {
		if changed := change(string(fact)); changed != "" {
			out = append(out, changed)
		}
	}
	next, _ := json.Marshal(page.NextSessionSequence)
	a.body = `{"events":[` + strings.Join(out, ",") + `],"nextSessionSequence":` + string(next) + "}"
}
