package host

import "github.com/mahati-host/mahati/narad"

// MaxAttachment is the size of the largest attachment, in bytes.
func (h *Host) MaxAttachment() int64 { return h.opt.MaxAttachment }

// NewID returns an id that is unique in the store (R4).
func (h *Host) NewID() string { return h.opt.NewID() }

// DefaultAgent is the agent of a session that names none.
func (h *Host) DefaultAgent() string { return h.agents.Default() }

// RequiredProfiles are what sessions of this host use (R25).
const RequiredProfiles = narad.AllProfiles &^ (narad.Graph | narad.Workspace | narad.Trace | narad.Debug)
