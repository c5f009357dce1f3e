package client

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// Capabilities is what a host can do (specification §10.4).
type Capabilities struct {
	ProtocolVersion string   `json:"protocolVersion"`
	ActiveProfiles  []string `json:"activeProfiles"`
	// Limits and Host are the host's own words about itself.
	Limits narad.Raw `json:"limits"`
	Host   narad.Raw `json:"host"`
	// Epoch names the host's store: another epoch is another store.
	Epoch string `json:"epoch"`
}

// Capabilities returns what the host can do.
func (c *Client) Capabilities(ctx context.Context) (Capabilities, error) {
	const op = "read capabilities"
	var caps Capabilities
	if err := c.get(ctx, op, "/capabilities", nil, &caps); err != nil {
		return Capabilities{}, err
	}
	return caps, knownVersion(op, caps.ProtocolVersion)
}

// AttachQuery says with what a client comes to a session.
type AttachQuery struct {
	// Profiles claims profiles by their wire ids. Empty claims whatever is advertised.
	Profiles []string
	// SkipUnclaimed says that the client steps over events of profiles that the session
	// needs and that it does not claim; else such a claim is refused (R25).
	SkipUnclaimed bool
}

// An Attachment is a host's answer to a client that comes to a session.
type Attachment struct {
	Capabilities struct {
		ProtocolVersion        string   `json:"protocolVersion"`
		ActiveProfiles         []string `json:"activeProfiles"`
		CurrentSessionSequence int64    `json:"currentSessionSequence"`
		HistoryLimit           int      `json:"historyLimit"`
		HeartbeatIntervalMs    float64  `json:"heartbeatIntervalMs"`
		ActiveRootRunID        string   `json:"activeRootRunId"`
		ActiveWorkflowID       string   `json:"activeWorkflowId"`
	} `json:"capabilities"`
	// RequiredProfiles are those without which the session cannot be told whole.
	RequiredProfiles []string `json:"requiredProfiles"`
	// Epoch names the host's store.
	Epoch string `json:"epoch"`
	// Boundary is the sequence after which to subscribe, and up to which to read
	// history.
	Boundary int64 `json:"boundarySessionSequence"`
}

// Heartbeat is the longest silence that the host promises: at least 100 ms, at most
// ten minutes, and 15 seconds if it does not say.
func (a Attachment) Heartbeat() time.Duration { return heartbeat(a.Capabilities.HeartbeatIntervalMs) }

func heartbeat(ms float64) time.Duration {
	const (
		usual = 15 * time.Second
		least = 100 * time.Millisecond
		most  = 10 * time.Minute
	)
	if ms <= 0 {
		return usual
	}
	return time.Duration(min(max(ms, float64(least/time.Millisecond)), float64(most/time.Millisecond))) * time.Millisecond
}

// Attach tells the host that the client comes to a session, and learns the place at
// which history ends and the stream begins.
func (c *Client) Attach(ctx context.Context, sessionID string, q AttachQuery) (Attachment, error) {
	const op = "attach to session"
	path, err := sessionPath(op, sessionID, "/attach")
	if err != nil {
		return Attachment{}, err
	}
	query := url.Values{}
	if len(q.Profiles) > 0 {
		query.Set("profiles", strings.Join(q.Profiles, ","))
	}
	if q.SkipUnclaimed {
		query.Set("unclaimed", "skip")
	}
	var a Attachment
	if err := c.get(ctx, op, path, query, &a); err != nil {
		return Attachment{}, err
	}
	if a.Boundary < 0 || a.Boundary > narad.MaxInteger {
		return Attachment{}, invalidAnswer(op, "the boundary is no sequence")
	}
	return a, knownVersion(op, a.Capabilities.ProtocolVersion)
}

// knownVersion refuses a host of another version (specification §13).
func knownVersion(op, version string) error {
	if version == narad.Version {
		return nil
	}
	return fail(op, Code(narad.CodeUnsupported), "the host does not speak "+narad.Version)
}

// Negotiate returns the profiles that both sides have, in the order of the claim; all
// that are advertised if nothing is claimed.
func Negotiate(claimed, advertised []string) []string {
	if len(claimed) == 0 {
		return slices.Clone(advertised)
	}
	return slices.DeleteFunc(slices.Clone(claimed), func(id string) bool { return !slices.Contains(advertised, id) })
}

// without returns the profiles of narad/v1 that are not among those negotiated.
func without(negotiated []string) narad.Profile {
	left := narad.AllProfiles
	for _, id := range negotiated {
		if p, ok := narad.ParseProfile(id); ok {
			left &^= p
		}
	}
	return left
}
