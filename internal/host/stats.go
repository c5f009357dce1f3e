package host

// Stats are figures of a host as it is now.
type Stats struct {
	// Loaded is how many sessions have an owner.
	Loaded int
	// Mailbox is how many commands wait for those owners.
	Mailbox int
	// Running is how many agents run, of Places that may. After a restart it may be
	// more: what ran before goes on.
	Running, Places int
	// Waiting is how many sessions wait for a place.
	Waiting int
}

// Stats returns the figures. They are read one after the other.
func (h *Host) Stats() Stats {
	stats := Stats{Places: h.opt.MaxRunning}
	stats.Running, stats.Waiting = h.places.stats(stats.Places)
	h.mu.Lock()
	defer h.mu.Unlock()
	stats.Loaded = len(h.owners)
	for _, o := range h.owners {
		stats.Mailbox += len(o.mailbox)
	}
	return stats
}

// stats tells how many of n places are taken and how many sessions wait for one.
func (p *places) stats(n int) (taken, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return n - p.free, len(p.waiting)
}
