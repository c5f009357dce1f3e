package server

import (
	"net/http"
	"strconv"
	"time"
)

// pieceSize is what a client must take within one write timeout to count as
// alive.
const pieceSize = 32 << 10

// A response writes in pieces, each with a deadline of its own: a client is cut
// off when it takes nothing, not when it is slow.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	status  int // 0: nothing is written yet
	bytes   int64
}

func newResponse(w http.ResponseWriter, timeout time.Duration) *response {
	return &response{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the status.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.extend()
	r.ResponseWriter.WriteHeader(status)
}

// Write writes everything, as long as each piece makes progress.
func (r *response) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	total := 0
	for first := true; first || len(p) > 0; first = false {
		piece := p[:min(len(p), pieceSize)]
		r.extend()
		n, err := r.ResponseWriter.Write(piece)
		total += n
		r.bytes += int64(n)
		if err != nil {
			return total, err
		}
		p = p[n:]
	}
	return total, nil
}

// WriteJSON answers with a document that is encoded already, a line.
func WriteJSON(w http.ResponseWriter, status int, line []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(line)))
	w.WriteHeader(status)
	_, _ = w.Write(line) // the client may have left
}

// extend gives the next write its time. Every connection of net/http has
// deadlines; a test's recorder has none and needs none.
func (r *response) extend() { _ = r.control.SetWriteDeadline(time.Now().Add(r.timeout)) }
