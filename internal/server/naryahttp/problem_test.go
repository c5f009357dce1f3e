package naryahttp

import (
	"context"
	"fmt"
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
		{host.ErrGone, `410 0s {"code":"NRY-0035","title":"Session deleted","message":"The session was deleted; its id is never given again."}`},
		{host.ErrNotFound, `404 0s {"code":"NRY-0002","title":"Session not found","message":"No session with that id is on this host, or it began before the host spoke this contract."}`},
		{host.ErrOverloaded, "503 1s {\"code\":\"NRY-0014\",\"title\":\"Host overloaded\",\"message\":\"Too much waits, of the session or of the caller; nothing was done, ask again after `Retry-After`.\"}"},
		{host.ErrRecovering, "503 1s {\"code\":\"NRY-0013\",\"title\":\"Host not ready\",\"message\":\"The host is starting, and closes what its predecessor left open, or it is ending; ask again after `Retry-After`.\"}"},
		{host.ErrClosed, "503 1s {\"code\":\"NRY-0013\",\"title\":\"Host not ready\",\"message\":\"The host is starting, and closes what its predecessor left open, or it is ending; ask again after `Retry-After`.\"}"},
		{host.ErrStorageFull, `500 0s {"code":"NRY-0012","title":"The store refuses writes","message":"The disk is as good as full: reading, decisions and stops go on. Or a write has failed, and the host is about to end."}`},
		{host.ErrBroken, `500 0s {"code":"NRY-0012","title":"The store refuses writes","message":"The disk is as good as full: reading, decisions and stops go on. Or a write has failed, and the host is about to end."}`},
		{host.ErrDamaged, `500 0s {"code":"NRY-0011","title":"Internal error","message":"The host failed; nothing was done."}`},
		{host.ErrContentDamaged, `500 0s {"code":"NRY-0011","title":"Internal error","message":"The host failed; nothing was done."}`},
		{host.ErrContentMissing, `500 0s {"code":"NRY-0011","title":"Internal error","message":"The host failed; nothing was done."}`},
		{host.ErrWrongLease, `500 0s {"code":"NRY-0011","title":"Internal error","message":"The host failed; nothing was done."}`},
		{context.Canceled, `500 0s {"code":"NRY-0011","title":"Internal error","message":"the request ended before its answer"}`},
	} {
		p := server.ProblemOf(problemOf(fmt.Errorf("read: %w", c.err)))
		status, _, body := envelope(p)
		if got := fmt.Sprintf("%d %v %s", status, p.RetryAfter, strings.TrimSpace(string(body))); got != c.want {
			t.Errorf("%v: got\n%s\nwant\n%s", c.err, got, c.want)
		}
	}
}
