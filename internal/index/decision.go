package index

import (
	"fmt"
	"math"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// Decided is the value of a decision's row: which permission of Narya's it settled, and
// where the facts stand that tell of it.
type Decided struct {
	PermissionID string `json:"permissionId"`
	// Asked is the session sequence of the request, Decided that of the decision.
	Asked   uint64 `json:"asked"`
	Decided uint64 `json:"decided"`
}

// decisions keeps what a fact decides of permissions, in the list of its session and in
// that of all, as Narya tells it.
func (c *changes) decisions(interruptID string) {
	asked, known := c.before.Interrupt(interruptID)
	if !known {
		return
	}
	for n, e := range narya.MappingOf(c.fact, c.desk.Created.Mappings.Narya).Project(c.fact) {
		decided, ok := e.Payload.(*narya.PermissionDecided)
		if !ok {
			continue
		}
		row := journal.DecisionRow{
			ID: newestFirst(c.e, n), Session: c.e.SessionID, Decision: string(decided.Decision),
			Value: value(Decided{decided.PermissionID, uint64(asked.RequestedSequence), uint64(c.e.SessionSequence)}),
		}
		c.put(row)
		row.Of = row.Session
		c.put(row)
	}
}

// newestFirst is a text by which what facts caused is sorted, the newest first.
func newestFirst(e *narad.Event, n int) string {
	at, _ := time.Parse(time.RFC3339Nano, e.Timestamp) // the host's own
	return fmt.Sprintf("%016x %s %016x %04x", math.MaxInt64-at.UnixMilli(), e.SessionID, math.MaxInt64-e.SessionSequence, n)
}

// memberDecisions keeps the decisions of members of a pack that settle them.
func (c *changes) memberDecisions(f *narad.Custom) {
	if d, ok := facts.Read[facts.Decided](f, facts.Decision); ok {
		c.decisions(d.InterruptID)
	}
}
