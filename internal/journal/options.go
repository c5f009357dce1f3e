package journal

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// FormatNumber is the stored format that this program writes. It stands before
// anything else in a store, so that an older program can refuse by name.
const FormatNumber = 1

// DefaultReserve is the free space below which ordinary batches are refused.
const DefaultReserve = 1 << 30

// ClosingShare is the part of the reserve that batches which only close may
// use up.
const ClosingShare = 64 << 20

// Options are what every engine can be opened with. The zero value is for
// production.
type Options struct {
	// Now is the clock for seeds and for the look at free space; time.Now when nil.
	Now func() time.Time
	// Rand makes epoch and key of a new store; crypto/rand when nil.
	Rand io.Reader
	// Logger gets what the engine has to tell; nothing is logged when nil.
	Logger *slog.Logger
	// Reserve is the free space kept; DefaultReserve when 0.
	Reserve uint64
	// Free tells the free bytes where the store is. When nil, a store on disk
	// asks its file system and a store in memory has room for ever.
	Free func() (uint64, error)
	// Fault is called at each stage of a commit, for tests: it may delay, and
	// its error refuses or fails the group as [Stage] says.
	Fault func(Stage, Group) error
	// Observe is called on the committer after each group, for metrics.
	Observe func(Group)
}

// WithDefaults fills what is zero, except Free.
func (o Options) WithDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultReserve
	}
	return o
}

// NewIdentity draws the identity of a new store.
func (o Options) NewIdentity() (Identity, error) {
	now := o.Now().UTC().Truncate(time.Microsecond)
	identity := Identity{Format: FormatNumber, Created: now, FirstEvent: uint64(now.UnixMicro())}
	var epoch [16]byte
	for _, random := range [][]byte{epoch[:], identity.Key[:]} {
		if _, err := io.ReadFull(o.Rand, random); err != nil {
			return Identity{}, fmt.Errorf("draw the identity of a new store: %w", err)
		}
	}
	identity.Epoch = hex.EncodeToString(epoch[:])
	return identity, nil
}

// Stage is a point in the commit of a group at which a fault can be placed.
type Stage int

// The stages, in their order.
const (
	// StageBuilt: the group is checked and numbered, nothing has been handed to
	// the storage. An error refuses every batch of it with ErrRefused.
	StageBuilt Stage = iota
	// StageWritten: written and not yet synced. An error breaks the store, and
	// so it does from here on.
	StageWritten
	// StageSynced: durable and not yet visible.
	StageSynced
	// StagePublished: visible, OnDurable not yet called.
	StagePublished
	// StageNotified: OnDurable called, no Append has returned.
	StageNotified
)

// Stages are all stages in order.
var Stages = []Stage{StageBuilt, StageWritten, StageSynced, StagePublished, StageNotified}

func (s Stage) String() string {
	names := [...]string{"built", "written", "synced", "published", "notified"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("stage %d", int(s))
	}
	return names[s]
}

// Group describes one commit group.
type Group struct {
	// Batches is the number of its requests that write, Facts and Bytes what
	// they hold.
	Batches, Facts, Bytes int
	// UpTo is the durable mark after it, set from StagePublished on.
	UpTo Mark
	// Took is the time from the first write to the mark, set for Observe.
	Took time.Duration
}
