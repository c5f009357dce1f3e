package feed

import "context"

// Lag is how far the subscriptions of a feed are behind what they follow, at about one
// time.
type Lag struct {
	// Behind is how many subscriptions are behind at all.
	Behind int
	// Sum is that of all of them, Max that of the last one, in positions of what each
	// follows.
	Sum, Max uint64
}

// Lag looks at every subscription. It may read the journal, once for each thing that is
// followed; what cannot be read is left out.
func (f *Feed) Lag(ctx context.Context) Lag {
	var lag Lag
	for _, t := range f.listTopics() {
		end, err := f.end(ctx, t.line)
		if err != nil {
			continue // deleted meanwhile, or closed
		}
		for _, position := range t.positions() {
			if position >= end {
				continue
			}
			lag.Behind++
			lag.Sum += end - position
			lag.Max = max(lag.Max, end-position)
		}
	}
	return lag
}

// positions are those of the topic's subscribers.
func (t *topic) positions() []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]uint64, 0, len(t.subscribers))
	for c := range t.subscribers {
		list = append(list, c.Position())
	}
	return list
}
