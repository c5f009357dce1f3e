package field_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
	"github.com/mahati-host/mahati/narya/naryatest"
)

// busyDay is a turn of about fifty events.
const busyDay = `
script: 1
rules: [{play: work}]
scenarios:
  work:
    - repeat: {times: 9, steps: [{say: "Working on it."}, {tool: {name: look, respond: {ok: true}}}]}
    - say: "Done."
`

// A day on one host: fifty sessions work, the host is killed again and again, and clients
// come and go with the last id that they have. What each of them got, one connection behind
// the other, is what the journal's facts say: every event once, in order, a session's own
// and nothing else where one was asked for (R39, R40; field cases 1, 3, 7, 9).
func TestCase1ADayOfTheFirehose(t *testing.T) {
	t.Parallel()
	const sessions, turns, events = 50, 2, 5000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBed(t, busyDay, "MAHATI_NARYA_TCP=true")
	d := &day{b: b, ctx: t.Context(), token: b.token}
	url := b.url
	d.place.Store(&url)
	first, _ := narya.ParseID(d.host("oldestEventId"))
	d.begin = first - 1

	var clients []*dayClient
	for i := range 4 + sessions/5 {
		c := &dayClient{day: d, last: d.begin, random: rand.New(rand.NewPCG(seed, uint64(i)+1))}
		if i >= 4 {
			c.session = narya.UUID(narya.KindSession, fmt.Sprint("s", i-4))
			c.hostEvents = i%2 == 0
		}
		clients = append(clients, c)
	}
	ctx, leave := context.WithCancel(t.Context())
	var reading, working sync.WaitGroup
	for _, c := range clients {
		reading.Go(func() { c.follow(ctx) })
	}
	defer func() { leave(); reading.Wait() }()
	var left atomic.Int64
	left.Store(sessions * turns)
	for worker := range 4 {
		working.Go(func() {
			for i := worker; i < sessions*turns; i += 4 {
				d.work(i%sessions, i/sessions)
				left.Add(-1)
			}
		})
	}
	for kills := 0; left.Load() > 0 || kills < 5; kills++ {
		time.Sleep(time.Duration(200+random.IntN(1200)) * time.Millisecond)
		b.kill()
		b.start()
		url := b.url
		d.place.Store(&url)
	}
	working.Wait()
	b.eventually("all sessions come to rest", func() bool {
		for i := range sessions {
			s, err := b.client().Session(b.context(), fmt.Sprint("s", i))
			if err != nil || s.State != "idle" {
				return false
			}
		}
		return true
	})
	newest, _ := narya.ParseID(d.host("newestEventId"))
	if newest-d.begin < events {
		t.Errorf("only %d events came of the day", newest-d.begin)
	}
	b.eventually("the firehose is read to its end", func() bool { return clients[0].at() == newest })
	want := map[string]int64{"": newest}
	for _, data := range clients[0].got() {
		if e, err := narya.Decode([]byte(data)); err == nil {
			want[e.SessionID] = max(want[e.SessionID], e.ID)
		}
	}
	for _, c := range clients {
		b.eventually("a client has all", func() bool { return c.at() == want[c.session] })
	}
	leave()
	reading.Wait()
	b.stop()
	whole := d.projected()
	for i, c := range clients {
		c.compare(i, whole)
	}
	if connections := clients[0].connections; connections < 6 {
		t.Errorf("the first client connected only %d times", connections)
	}
}

// day is the host of the day, wherever it runs now.
type day struct {
	b     *bed
	ctx   context.Context
	token string
	begin int64
	place atomic.Pointer[string]
}

func (d *day) request(method, path, body string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(d.ctx, method, *d.place.Load()+path, strings.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	return r, err
}

// host tells something of the store.
func (d *day) host(name string) string {
	d.b.t.Helper()
	a, err := d.b.exchange(http.MethodGet, d.b.url+"/v1/host", nil)
	d.b.must(err)
	text, _ := narad.Raw(a.body).Field("store").Field(name).IsString()
	return text
}

// work makes a session, if it is its first turn, and gives it a message, until the host has
// taken it.
func (d *day) work(session, turn int) {
	id := fmt.Sprint("s", session)
	if turn == 0 {
		d.insist("/sessions", fmt.Sprintf(`{"sessionId":%q,"cwd":%q}`, id, d.b.home), http.StatusCreated, http.StatusOK)
	}
	d.insist("/commands/message", fmt.Sprintf(`{"sessionId":%q,"content":"go","commandId":"c%d"}`, id, turn), http.StatusAccepted, http.StatusOK)
}

func (d *day) insist(path, body string, good ...int) {
	for d.ctx.Err() == nil {
		r, err := d.request(http.MethodPost, "/api/narad/v1"+path, body)
		if err != nil {
			return
		}
		if answer, err := d.b.http.Do(r); err == nil {
			answer.Body.Close()
			if answer.StatusCode == good[0] || answer.StatusCode == good[1] {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// projected is every event that the facts in the store tell of.
func (d *day) projected() (all []narya.Event) {
	t := d.b.t
	t.Helper()
	j, err := pebble.Open(filepath.Join(d.b.home, "store"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for at := uint64(0); ; {
		chunk, err := j.Read(t.Context(), journal.ByEvent{After: at}, journal.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range chunk.Records {
			at = r.FirstEvent + uint64(r.EventCount) - 1
			fact, err := narad.Decode(r.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range narya.Mapping1.Project(fact.(narad.Authority)) {
				e.ID = int64(r.FirstEvent) + int64(i)
				all = append(all, e)
			}
		}
		if !chunk.More {
			return all
		}
	}
}

// dayClient follows the stream over every end of it.
type dayClient struct {
	day         *day
	session     string // a UUID, "" for the whole host
	hostEvents  bool
	random      *rand.Rand
	connections int

	mu   sync.Mutex
	last int64
	data []string
}

func (c *dayClient) at() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *dayClient) got() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.data...)
}

// follow comes back with the last id, whyever a connection ended, until it is to leave.
func (c *dayClient) follow(ctx context.Context) {
	path := "/v1/events"
	if c.session != "" {
		path += fmt.Sprintf("?sessionId=%s&hostEvents=%v", c.session, c.hostEvents)
	}
	for ctx.Err() == nil {
		r, err := c.day.request(http.MethodGet, path, "")
		if err != nil {
			return
		}
		r.Header.Set("Last-Event-ID", narya.FormatID(c.at()))
		if answer, err := c.day.b.http.Do(r.WithContext(ctx)); err == nil {
			if answer.StatusCode == http.StatusOK {
				c.connections++
				c.read(sse.NewReader(answer.Body, sse.Options{}), 1+c.random.IntN(2000))
			}
			answer.Body.Close()
		}
		time.Sleep(time.Duration(5+c.random.IntN(30)) * time.Millisecond)
	}
}

// read takes so many frames, or what comes until the connection ends.
func (c *dayClient) read(in *sse.Reader, frames int) {
	for range frames {
		f, err := in.Next()
		if err != nil {
			return
		}
		id, ok := narya.ParseID(f.ID)
		c.mu.Lock()
		if ok && id > c.last {
			c.last = id
		}
		c.data = append(c.data, string(f.Data)) // what comes twice is not to be hidden
		c.mu.Unlock()
	}
}

// compare demands that the client has what the facts tell it, each once and in order, and
// that it is valid.
func (c *dayClient) compare(which int, whole []narya.Event) {
	t := c.day.b.t
	t.Helper()
	at := 0
	for _, e := range whole {
		if c.session != "" && e.SessionID != c.session {
			continue // nothing of this day belongs to no session
		}
		want, err := narya.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if at >= len(c.data) || c.data[at] != string(want) {
			t.Errorf("client %d: event %d of %d, want\n%s\ngot\n%.500s", which, at, len(c.data), want, append(c.data, "none")[min(at, len(c.data))])
			return
		}
		if which == 0 {
			if err := naryatest.Ours(t).Event(c.data[at]); err != nil {
				t.Errorf("our document does not allow %s: %v", c.data[at], err)
			}
		}
		at++
	}
	if at != len(c.data) {
		t.Errorf("client %d got %d events, want %d", which, len(c.data), at)
	}
}
