package naryahttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"net/url"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narya"
)

// TestAnyReaderAnyTime: whatever happens, and whenever a reader comes, leaves and comes back
// to, with any filter and any bound of a block: what it has is what the facts tell it, each
// event once and in order.
func TestAnyReaderAnyTime(t *testing.T) {
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 7))
		bubble(t, bedOptions{binding: naryahttp.Options{Block: 1 + random.IntN(12)}}, func(t *testing.T, b *bed) {
			const late = "0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f" // begins while it is followed
			queries := []string{"", "sessionId=" + uuidOf("s0"), "hostEvents=true&sessionId=" + uuidOf("s1"), "hostEvents=true&sessionId=" + late, "sessionId=" + late}
			var readers []*visitor
			for _, query := range queries {
				readers = append(readers, &visitor{bed: b, query: query, begin: b.newest(), last: b.newest()})
			}
			b.create("s0", "")
			b.create("s1", "")
			begun := false
			for range 40 {
				switch id := []string{"s0", "s1"}[random.IntN(2)]; random.IntN(7) {
				case 0:
					b.say(id, "hello")
				case 1, 2:
					b.publish("", fmt.Sprint(random.IntN(100)))
				case 3:
					b.publish(id, "x")
				case 4:
					if !begun {
						b.create(late, "hello")
						begun = true
					}
				case 5:
					pass(time.Duration(random.IntN(200)) * time.Millisecond)
				default:
					readers[random.IntN(len(readers))].visit(random)
				}
			}
			pass(time.Second)
			for _, v := range readers {
				for rounds := 0; v.visit(nil); rounds++ {
					if rounds > 500 {
						t.Fatalf("seed %d: %q has no end", seed, v.query)
					}
				}
				b.wantEvents(t, v.query, v.begin, v.had)
			}
		})
	}
}

// visitor is a reader that comes and goes.
type visitor struct {
	bed         *bed
	query       string
	begin, last int64
	open        *reading
	had         []event
}

// visit takes what there is, and leaves then or stays. It reports whether the connection had
// ended by itself; without random it comes anew and takes all.
func (v *visitor) visit(random *rand.Rand) (ended bool) {
	if random == nil && v.open != nil {
		v.take(v.open.now())
		v.leave()
	}
	if v.open == nil {
		v.open = v.bed.stream(v.query, narya.FormatID(v.last))
	}
	v.take(v.open.now())
	if ended = v.open.over(); ended || random == nil || random.IntN(2) == 0 {
		v.leave()
	}
	return ended
}

func (v *visitor) take(events []event) {
	v.had = append(v.had, events...)
	if n := len(v.had); n > 0 {
		v.last = v.had[n-1].ID
	}
}

func (v *visitor) leave() {
	v.open.close()
	v.open = nil
}

// FuzzStreamRequest: no header and no query makes anything but a stream or a refusal of the
// catalogue.
func FuzzStreamRequest(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"1", "sessionId=x"}, {"999999999999999999999", "hostEvents=true"}, {"-1", "sessionId=0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f"}, {"\t7", "%"}, {"\t", "0"}, {"0x10", "a=1&a=2"}, {"٣", "hostEvents="}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, id, query string) {
		bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
			request := b.request("GET", "/v1/events", "")
			request.URL.RawQuery = query
			request.Header.Set("Last-Event-ID", id)
			response, err := b.http.Do(request)
			if err != nil {
				return // the client itself does not send such a thing
			}
			defer response.Body.Close()
			id := textproto.TrimString(id) // space around a header's value is no part of it
			number, valid := narya.ParseID(id)
			_, clean := url.ParseQuery(query)
			switch {
			case response.StatusCode == http.StatusOK:
				if id != "" && (!valid || number > b.newest()) || clean != nil {
					t.Errorf("a stream for Last-Event-ID %q and query %q", id, query)
				}
			case response.StatusCode != http.StatusBadRequest && response.StatusCode != http.StatusConflict:
				t.Errorf("%d for Last-Event-ID %q and query %q", response.StatusCode, id, query)
			}
		})
	})
}
