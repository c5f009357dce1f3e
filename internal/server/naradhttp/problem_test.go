package naradhttp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// What the kernel refuses has one answer, to the byte.
func TestRefusalsOfTheKernel(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{host.ErrGone, `410  {"code":"session_deleted","detail":"the session was deleted","title":"Gone"}`},
		{host.ErrNotFound, `404  {"code":"not_found","detail":"no such session","title":"Not Found"}`},
		{host.ErrOverloaded, `503 1 {"code":"overloaded","detail":"too many commands wait for the session","title":"Service Unavailable"}`},
		{host.ErrRecovering, `503 1 {"code":"recovering","detail":"the host is recovering","title":"Service Unavailable"}`},
		{host.ErrClosed, `503 1 {"code":"draining","detail":"the host is shutting down","title":"Service Unavailable"}`},
		{host.ErrStorageFull, `507  {"code":"storage_full","detail":"too little space is left","title":"Insufficient Storage"}`},
		{host.ErrBroken, `500  {"code":"internal","title":"Internal Server Error"}`},
		{host.ErrDamaged, `500  {"code":"session_damaged","detail":"stored data of the session is damaged","title":"Internal Server Error"}`},
		{host.ErrContentDamaged, `500  {"code":"content_damaged","detail":"the stored bytes are damaged","title":"Internal Server Error"}`},
		{host.ErrContentMissing, `500  {"code":"content_damaged","detail":"the stored bytes are missing","title":"Internal Server Error"}`},
		{host.ErrWrongLease, `403  {"code":"wrong_lease","detail":"this is not the executor's lease: a newer attach has superseded it","title":"Forbidden"}`},
		{context.Canceled, `500  {"code":"canceled","detail":"the request ended before its answer","title":"Internal Server Error"}`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		server.WriteProblem(w, r, problemOf(fmt.Errorf("read: %w", c.err)))
		if got := fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Retry-After"), strings.TrimSpace(w.Body.String())); got != c.want {
			t.Errorf("%v: got\n%s\nwant\n%s", c.err, got, c.want)
		}
	}
}
