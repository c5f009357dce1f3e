package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// plain is what a host is compared with: net/http over bytes in memory, and nothing
// else.
type plain struct {
	log *journaltest.RawLog

	mu     sync.Mutex
	page   []byte        // guarded by mu
	round  [][]byte      // guarded by mu: the frames that a round adds
	frames [][]byte      // guarded by mu: what was added
	grown  chan struct{} // guarded by mu: closed when frames grow
}

// servePlain serves until standard input ends.
func servePlain() error {
	dir, err := os.MkdirTemp("", "mahati-bench-plain-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &plain{grown: make(chan struct{})}
	if p.log, err = journaltest.OpenRawLog(dir); err != nil {
		return err
	}
	defer p.log.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /page", p.putPage)
	mux.HandleFunc("GET /page", p.getPage)
	mux.HandleFunc("PUT /frames", p.putFrames)
	mux.HandleFunc("POST /frames", p.addFrames)
	mux.HandleFunc("GET /stream", p.stream)
	return serveUntilEnd(mux)
}

func (p *plain) putPage(w http.ResponseWriter, r *http.Request) {
	page, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.page = page
}

func (p *plain) getPage(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	page := p.page
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(page)
}

func (p *plain) putFrames(w http.ResponseWriter, r *http.Request) {
	all, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round = bytes.SplitAfter(bytes.TrimSuffix(all, []byte("\n\n")), []byte("\n\n"))
	p.round[len(p.round)-1] = append(bytes.Clone(p.round[len(p.round)-1]), "\n\n"...)
}

// addFrames is one round: each group of frames is durable before it is shown.
func (p *plain) addFrames(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	round := p.round
	p.mu.Unlock()
	for group := range slices.Chunk(round, groupFacts) {
		if err := p.log.Append(bytes.Join(group, nil)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		p.add(group)
	}
}

func (p *plain) add(group [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames = append(p.frames, group...)
	close(p.grown)
	p.grown = make(chan struct{})
}

// stream is the cursor loop: what waits is joined into one write.
func (p *plain) stream(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	p.mu.Lock()
	cursor := len(p.frames)
	p.mu.Unlock()
	var joined []byte
	for control.Flush() == nil {
		waiting := p.behind(r, cursor)
		if len(waiting) == 0 {
			return
		}
		cursor += len(waiting)
		joined = joined[:0]
		for _, frame := range waiting {
			joined = append(joined, frame...)
		}
		if _, err := w.Write(joined); err != nil {
			return
		}
	}
}

// behind gives the frames behind a cursor as soon as there are any, none when the
// client has left.
func (p *plain) behind(r *http.Request, cursor int) [][]byte {
	for {
		p.mu.Lock()
		waiting, grown := p.frames[cursor:], p.grown
		p.mu.Unlock()
		if len(waiting) > 0 {
			return waiting
		}
		select {
		case <-grown:
		case <-r.Context().Done():
			return nil
		}
	}
}
