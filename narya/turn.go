package narya

// TurnStarted tells that a turn began.
type TurnStarted struct{ TurnID string }

// Type returns turn-started.
func (*TurnStarted) Type() Type { return TypeTurnStarted }

func (p *TurnStarted) fields(c *coder) { c.uuid("turnId", &p.TurnID, required) }

// TurnFinished tells that a turn ended, why, and what it used. A nil figure is one that
// nobody knows, which is not zero (R42).
type TurnFinished struct {
	TurnID     string
	StopReason StopReason
	// Usage is that of the last round, not a sum; CostUSD is what all rounds cost, in US
	// dollars, known only if each could be priced.
	Usage   *TokenUsage
	CostUSD *float64
	// ElapsedMs is from the instant that turn-started announces, ChainElapsedMs from the
	// start of the turn that was split; both in milliseconds of a monotonic clock.
	ElapsedMs      *int64
	ChainElapsedMs *int64
	// ContextWindow is that of the model the turn ran on, in tokens.
	ContextWindow *int64
	// Error is what killed the turn, for the stop reason error alone.
	Error *Error
}

// Type returns turn-finished.
func (*TurnFinished) Type() Type { return TypeTurnFinished }

func (p *TurnFinished) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	word(c, "stopReason", &p.StopReason, stopReasons, required)
	maybe(c, "usage", &p.Usage)
	c.maybeAmount("costUsd", &p.CostUSD)
	c.maybeInteger("elapsedMs", &p.ElapsedMs, 0)
	c.maybeInteger("chainElapsedMs", &p.ChainElapsedMs, 0)
	c.maybeInteger("contextWindow", &p.ContextWindow, 1)
	maybe(c, "error", &p.Error)
}

// StopReason is why a turn ended.
type StopReason string

// The reasons. Only StopError is a failure.
const (
	StopCompleted     StopReason = "completed"
	StopInterrupted   StopReason = "interrupted"
	StopError         StopReason = "error"
	StopMaxTokens     StopReason = "max-tokens"
	StopContentFilter StopReason = "content-filter"
	StopSplit         StopReason = "split"
	StopBudget        StopReason = "budget"
)

var stopReasons = []StopReason{
	StopCompleted, StopInterrupted, StopError, StopMaxTokens, StopContentFilter, StopSplit, StopBudget,
}

// TokenUsage is how many tokens were used and what they cost.
type TokenUsage struct {
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  *int64
	CacheWriteTokens *int64
	// CostUSD is in US dollars, nil where it is not known.
	CostUSD *float64
}

func (u *TokenUsage) fields(c *coder) {
	c.integer("inputTokens", &u.InputTokens, 0)
	c.integer("outputTokens", &u.OutputTokens, 0)
	c.maybeInteger("cacheReadTokens", &u.CacheReadTokens, 0)
	c.maybeInteger("cacheWriteTokens", &u.CacheWriteTokens, 0)
	c.maybeAmount("costUsd", &u.CostUSD)
}

// LaneStarted tells that a lane opened: the one that the envelope names.
type LaneStarted struct {
	Kind LaneKind
	// Agent is who works in the lane of a subagent or a workflow.
	Agent string
}

// Type returns lane-started.
func (*LaneStarted) Type() Type { return TypeLaneStarted }

func (p *LaneStarted) fields(c *coder) {
	word(c, "kind", &p.Kind, laneKinds, required)
	c.text("agent", &p.Agent, optional)
}

// LaneKind is what a lane is for.
type LaneKind string

// The kinds of lanes.
const (
	LaneMain     LaneKind = "main"
	LaneSide     LaneKind = "side"
	LaneSubagent LaneKind = "subagent"
	LaneWorkflow LaneKind = "workflow"
)

var laneKinds = []LaneKind{LaneMain, LaneSide, LaneSubagent, LaneWorkflow}

// LaneFinished tells that a lane closed.
type LaneFinished struct{ Status LaneStatus }

// Type returns lane-finished.
func (*LaneFinished) Type() Type { return TypeLaneFinished }

func (p *LaneFinished) fields(c *coder) { word(c, "status", &p.Status, laneStatuses, required) }

// LaneStatus is how a lane closed.
type LaneStatus string

// The statuses of a closed lane.
const (
	LaneCompleted LaneStatus = "completed"
	LaneFailed    LaneStatus = "failed"
	LaneCancelled LaneStatus = "cancelled"
)

var laneStatuses = []LaneStatus{LaneCompleted, LaneFailed, LaneCancelled}
