package client_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
)

// A writer appends 2,000 facts a second in batches of eight; 200 clients come at
// random cursors, with delays at every seam and streams that are cut. Nobody sees a
// hole or a repeat.
func TestRandomConnectsUnderAWriter(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble(t, clienttest.Options{PageSize: 500}, func(t *testing.T, h *clienttest.Host) {
		rng := lockedRand(seed)
		h.Append("s", clienttest.Story(10)...)
		seam := func() time.Duration { return time.Duration(rng(50)) * time.Millisecond }
		h.Delay("/attach", seam)
		h.Delay("/events", seam)
		h.DelayFrames(seam)
		ctx, cancel := context.WithCancel(t.Context())
		var writer sync.WaitGroup
		writer.Go(func() { write(ctx, h, rng) })
		var clients sync.WaitGroup
		c := dial(t, h, client.Options{})
		for i := range 200 {
			clients.Go(func() { connectOnce(t, c, h, i, rng) })
			if i%20 == 19 {
				clients.Wait()
			}
		}
		cancel()
		writer.Wait()
	})
}

func lockedRand(seed uint64) func(n int) int {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
}

// write appends until the context ends, and cuts all streams now and then.
func write(ctx context.Context, h *clienttest.Host, rng func(int) int) {
	var facts []narad.Authority
	for n := 11; ctx.Err() == nil; {
		for len(facts) < 8 {
			facts = append(facts, clienttest.Turn(n)...)
			n++
		}
		h.Append("s", facts[:8]...)
		facts = facts[8:]
		if rng(200) == 0 {
			h.CutStreams()
		}
		pass(4 * time.Millisecond)
	}
}

// connectOnce follows from a random place until 200 facts beyond the head of now. One
// client in ten keeps a state.
func connectOnce(t *testing.T, c *client.Client, h *clienttest.Host, i int, rng func(int) int) {
	head := int64(len(h.Facts("s")))
	from := head - int64(rng(101))
	f := c.Follow("s", client.FollowOptions{After: from, NoState: i%10 != 0, MaxPending: 1 + rng(64)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := follow(ctx, f, at(head+200))
	if s.err != nil || len(s.sequences) == 0 {
		t.Errorf("client %d from %d: %d facts, %v", i, from, len(s.sequences), s.err)
		return
	}
	facts := h.Facts("s")
	for k, sequence := range s.sequences {
		if want := from + 1 + int64(k); sequence != want {
			t.Errorf("client %d from %d: got %d where %d was due", i, from, sequence, want)
			return
		}
		if s.raws[k] != string(facts[sequence-1]) {
			t.Errorf("client %d: fact %d is\n%s\nwant\n%s", i, sequence, s.raws[k], facts[sequence-1])
			return
		}
	}
}
