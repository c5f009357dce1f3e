package host

// NewID returns an id that is unique in the store (R4).
func (h *Host) NewID() string { return h.opt.NewID() }

// DefaultAgent is the agent of a session that names none.
func (h *Host) DefaultAgent() string { return h.agents.Default() }
