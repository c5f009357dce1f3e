package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// eventHost is a host that keeps some events, and sends of them what lies behind a cursor, one
// block a connection. After the last block it ends the test's patience.
type eventHost struct {
	epoch          string
	oldest, newest int
	blocks         []string // frames
	asked          []string // the cursors that were shown
	looked         int      // how often it was asked what it keeps
	status         int      // of the next stream, 0 for 200
	nobody         bool     // no session is there
	end            context.CancelFunc
}

func (h *eventHost) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	if r.URL.Path == "/v1/host" {
		h.looked++
		return answer(200, fmt.Sprintf(`{"store":{"epoch":%q,"oldestEventId":"%d","newestEventId":"%d"}}`, h.epoch, h.oldest, h.newest))
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/sessions/") && h.nobody:
		return answer(404, `{"code":"NRY-0002","title":"Session not found","message":"No such session."}`)
	case strings.HasPrefix(r.URL.Path, "/v1/sessions/"):
		return answer(200, `{}`)
	}
	h.asked = append(h.asked, r.Header.Get("Last-Event-ID")+" "+r.URL.RawQuery)
	if h.status != 0 {
		return answer(h.status, `{"code":"NRY-0026","title":"Cursor newer than the store","message":"Resume without one."}`)
	}
	if len(h.blocks) == 0 {
		h.end()
		return answer(200, "")
	}
	block := h.blocks[0]
	h.blocks = h.blocks[1:]
	return answer(200, block)
}

// framesOf are events of these numbers.
func framesOf(ids ...int) string {
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "id: %d\ndata: {\"id\":\"%d\",\"type\":\"news\",\"payload\":{}}\n\n", id, id)
	}
	return b.String()
}

// reading is a reader of a host, and what it was given.
type reading struct {
	eventReader
	host   *eventHost
	ids    []int64
	missed []string
	losses int
}

func readerOf(h *eventHost) *reading {
	r := &reading{host: h}
	r.eventReader = eventReader{
		client: &apiClient{base: "http://host/v1", http: &http.Client{Transport: h}},
		take: func(e event) error {
			r.ids = append(r.ids, e.ID)
			if e.kind != "news" || e.raw == nil {
				return fmt.Errorf("event %d: kind %q, raw %q", e.ID, e.kind, e.raw)
			}
			return nil
		},
		lost:   func(error) { r.losses++ },
		missed: func(after, before int64) { r.missed = append(r.missed, fmt.Sprintf("%d-%d", after, before)) },
	}
	return r
}

func (r *reading) run(t *testing.T, from int64, oldest bool) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.host.end = cancel
	if err := r.begin(ctx, from, oldest); err != nil {
		return err
	}
	return r.read(ctx)
}

func (r *reading) want(t *testing.T, ids []int64, missed []string, asked ...string) {
	t.Helper()
	if !slices.Equal(r.ids, ids) || !slices.Equal(r.missed, missed) || !slices.Equal(r.host.asked, asked) {
		t.Errorf("got events %v, missed %q, asked %q; want %v, %q, %q", r.ids, r.missed, r.host.asked, ids, missed, asked)
	}
}

func TestEventsGoOnOverTheEndsOfBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{framesOf(5, 6), framesOf(6, 7, 8), framesOf(9)}}
		r := readerOf(h)
		if err := r.run(t, 0, true); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
		r.want(t, []int64{5, 6, 7, 8, 9}, nil, "4 ", "6 ", "8 ", "9 ")
		if r.losses != 0 {
			t.Errorf("the end of a block was taken for a loss, %d times", r.losses)
		}
	})
}

// What a slow reader had before it in one block may be kept no longer as it asks for the next: it is
// told, and the oldest that is kept comes then, not what happens then.
func TestEventsThatGoBetweenBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 29, blocks: []string{framesOf(5, 6), framesOf(20, 21)}}
		r := readerOf(h)
		take := r.take
		r.take = func(e event) error {
			if e.ID == 6 {
				h.oldest = 20
			}
			return take(e)
		}
		_ = r.run(t, 0, true)
		r.want(t, []int64{5, 6, 20, 21}, []string{"6-20"}, "4 ", "19 ", "21 ")
	})
}

// Where nothing is named it begins behind the newest, so that a connection without an event
// that is lost loses none; a host that is away stays one and the same stream.
func TestEventsOverALossBeforeTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{": hello\n\n", "", framesOf(10)}}
		r := readerOf(h)
		r.session, r.hostEvents = "u", true
		_ = r.run(t, 0, false)
		const query = "hostEvents=true&sessionId=u"
		r.want(t, []int64{10}, nil, "9 "+query, "9 "+query, "9 "+query, "10 "+query)
		if r.losses != 1 {
			t.Errorf("told of %d losses, want 1", r.losses)
		}
	})
}

// The host says nothing of a session that is not there: that is told before, unless it is waited for.
func TestEventsOfASessionThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 9, nobody: true, blocks: []string{framesOf(10)}}
		r := readerOf(h)
		r.session = "u"
		var no *refusal
		if err := r.run(t, 0, false); !errors.As(err, &no) || no.code != "NRY-0002" {
			t.Errorf("got %v, want NRY-0002", err)
		}
		r.want(t, nil, nil)
		r.wait = true
		_ = r.run(t, 0, false)
		r.want(t, []int64{10}, nil, "9 sessionId=u", "10 sessionId=u")
	})
}

// Events that are kept no longer are told, and what is kept is shown: at the beginning, after
// a loss, and in between where the numbers tell.
func TestEventsThatAreKeptNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{framesOf(5, 7)}}
		r := readerOf(h)
		_ = r.run(t, 2, false)
		r.want(t, []int64{5, 7}, []string{"2-5", "5-7"}, "4 ", "7 ")
		h = &eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{framesOf(5, 7)}}
		r = readerOf(h)
		r.session = "u"
		_ = r.run(t, 4, false)
		r.want(t, []int64{5, 7}, nil, "4 sessionId=u", "7 sessionId=u")
	})
}

// Another store is the end, told by its name or by the host; nothing is asked twice.
func TestEventsOfAnotherStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &eventHost{epoch: "e", oldest: 5, newest: 9, status: 409}
		r := readerOf(h)
		var no *refusal
		if err := r.run(t, 12, false); !errors.As(err, &no) || no.code != "NRY-0026" || hintFor(err) != hintOtherStore {
			t.Errorf("a cursor of the future: got %v, hint %q", err, hintFor(err))
		}
		r.want(t, nil, nil, "12 ")

		h = &eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{"", framesOf(10)}}
		r = readerOf(h)
		r.lost = func(error) {}
		other := &otherStore{eventHost: h}
		r.client.http.Transport = other
		if err := r.run(t, 0, false); err == nil || errors.Is(err, context.Canceled) || explain(err).hint != hintOtherStore {
			t.Errorf("another epoch: got %v", err)
		}
		r.want(t, nil, nil, "9 ")
	})
}

// otherStore has a new epoch each time that it is asked.
type otherStore struct{ *eventHost }

func (h *otherStore) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := h.eventHost.RoundTrip(r)
	h.epoch += strconv.Itoa(h.looked)
	return answer, err
}

// A frame whose id is not that of its event leads nowhere.
func TestEventsWithAForeignID(t *testing.T) {
	for _, frame := range []string{
		"data: {\"id\":\"10\",\"type\":\"news\",\"payload\":{}}\n\n", "id: x\ndata: {\"id\":\"x\"}\n\n",
		"id: 11\ndata: {\"id\":\"10\",\"type\":\"news\",\"payload\":{}}\n\n", "id: 10\ndata: nothing\n\n",
	} {
		r := readerOf(&eventHost{epoch: "e", oldest: 5, newest: 9, blocks: []string{frame}})
		if err := r.run(t, 0, false); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%q: got %v, events %v, want an error", frame, err, r.ids)
		}
	}
}

// What an event says is one line, and nothing in it acts on a terminal; a type that is not known
// shows what it carries.
func TestEventsForPeople(t *testing.T) {
	for raw, want := range map[string]string{
		`{"id":"7","type":"message-delta","sessionId":"5d0b6a54-3c7e-4f21-9a86-4e71c290d813","timestamp":"2026-11-30T09:15:00.250Z","payload":{"turnId":"5d0b6a54-3c7e-4f21-9a86-4e71c290d813","delta":"a\u001b[31m\nb"}}`: `5d0b6a54… message-delta          a\x1b[31m b`,
		`{"id":"7","type":"permission-decided","timestamp":"2026-11-30T09:15:00Z","payload":{"permissionId":"5d0b6a54-3c7e-4f21-9a86-4e71c290d813","decision":"deny","decidedBy":"user"}}`:                                 `host      permission-decided     deny by user permission 5d0b6a54-3c7e-4f21-9a86-4e71c290d813`,
		`{"id":"7","type":"new\u001b","payload":{"x":1}}`: `host      new\x1b                {"x":1}`,
	} {
		h := &eventHost{epoch: "e", oldest: 5, newest: 6, blocks: []string{"id: 7\ndata: " + raw + "\n\n"}}
		r := readerOf(h)
		var out strings.Builder
		a := &app{out: newConsole(&out, noEnv)}
		r.take = a.printEvent
		_ = r.run(t, 0, false)
		if got := out.String(); !strings.HasPrefix(got, "7 ") || !strings.HasSuffix(got, " "+want+"\n") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s:\ngot  %q\nwant %q at its end", raw, got, want)
		}
	}
}
