package feed

import "time"

// pace keeps a topic from waking a crowd of readers for each single fact. A crowd that
// was woken keeps every processor busy for a while, and whoever makes the next fact waits
// behind it, so that each reader would be written each fact on its own. After a wake-up
// a crowd therefore rests for three times as long as most of it took to look, and finds
// what has gathered as one piece. Few readers have no rest.
type pace struct {
	owed   bool      // facts were added for which nobody was woken
	woken  time.Time // when readers were woken last
	until  time.Time // the end of their rest
	round  uint64    // counts the wake-ups
	behind int       // readers woken in it that have to look before it is over
}

const (
	// crowd is how many readers need a rest.
	crowd = 50
	// maxRest is the longest that a fact waits for the crowd.
	maxRest = 100 * time.Millisecond
)

// owe notes that facts were added. It reports whether nothing was owed before.
func (p *pace) owe() bool {
	was := p.owed
	p.owed = true
	return !was
}

// left is how long the readers rest yet.
func (p *pace) left(now time.Time) time.Duration { return p.until.Sub(now) }

// begin begins a round, woke notes a reader whose slot was filled in it: one that has not
// looked since it was woken before is stalled, and nobody waits for it. rest ends the
// waking.
func (p *pace) begin() {
	p.owed = false
	p.round++
	p.behind = 0
}

func (p *pace) woke(c *cursor) {
	c.round = p.round
	p.behind++
}

func (p *pace) rest(now time.Time) {
	if p.behind < crowd {
		p.behind = 0
		return
	}
	p.woken, p.until = now, now.Add(maxRest)
	p.behind -= p.behind / 16 // nor for the slowest
}

// looked notes that a reader looks. It reports whether the round is over with that: the
// rest then ends sooner.
func (p *pace) looked(c *cursor) (over bool) {
	if p.behind == 0 || c.round != p.round {
		return false
	}
	c.round = 0
	if p.behind--; p.behind > 0 {
		return false
	}
	now := time.Now()
	if rest := 3 * now.Sub(p.woken); rest < p.until.Sub(now) {
		p.until = now.Add(rest)
	}
	return true
}
