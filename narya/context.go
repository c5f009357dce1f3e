package narya

// CompactionStarted tells that a lane's transcript is about to be summarised. Compaction
// of the same turn ends it, or else turn-finished.
type CompactionStarted struct {
	// TurnID is the turn, or the operation's own id where a person asked between turns.
	TurnID string
	Reason CompactionReason
}

// Type returns compaction-started.
func (*CompactionStarted) Type() Type { return TypeCompactionStarted }

func (p *CompactionStarted) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	word(c, "reason", &p.Reason, compactionReasons, required)
}

// Compaction tells that the transcript was summarised: the entry holds the summary.
type Compaction struct {
	TurnID  string // as in CompactionStarted
	Reason  CompactionReason
	EntryID string
}

// Type returns compaction.
func (*Compaction) Type() Type { return TypeCompaction }

func (p *Compaction) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	word(c, "reason", &p.Reason, compactionReasons, required)
	c.uuid("entryId", &p.EntryID, required)
}

// CompactionReason is what brought a compaction about.
type CompactionReason string

// The reasons.
const (
	CompactThreshold   CompactionReason = "threshold"
	CompactOverflow    CompactionReason = "overflow"
	CompactBehavioural CompactionReason = "behavioural"
	CompactManual      CompactionReason = "manual"
)

var compactionReasons = []CompactionReason{CompactThreshold, CompactOverflow, CompactBehavioural, CompactManual}

// ContextPruned tells that old output of tools is no longer sent to the model. The
// transcript keeps it.
type ContextPruned struct {
	// Count is how many results, at least 1.
	Count int64
}

// Type returns context-pruned.
func (*ContextPruned) Type() Type { return TypeContextPruned }

func (p *ContextPruned) fields(c *coder) { c.integer("count", &p.Count, 1) }

// CheckpointCreated tells that the working tree can be put back as it stood.
type CheckpointCreated struct {
	TurnID   string
	EntryID  string // "" for one that stands at no moment of the transcript
	TreeHash string
	Kind     CheckpointKind
}

// Type returns checkpoint-created.
func (*CheckpointCreated) Type() Type { return TypeCheckpointCreated }

func (p *CheckpointCreated) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.uuid("entryId", &p.EntryID, optional)
	c.text("treeHash", &p.TreeHash, required, atMost(64))
	word(c, "kind", &p.Kind, checkpointKinds, required)
}

// CheckpointKind is why a checkpoint exists.
type CheckpointKind string

// The kinds of checkpoints.
const (
	CheckpointStep      CheckpointKind = "step"
	CheckpointPreRewind CheckpointKind = "pre-rewind"
	CheckpointManual    CheckpointKind = "manual"
)

var checkpointKinds = []CheckpointKind{CheckpointStep, CheckpointPreRewind, CheckpointManual}
