package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad/session"
)

// Save keeps a snapshot of a state whose owner goes on, when enough facts lie
// behind the newest one. All facts of the state must be durable. That a snapshot
// could not be kept is logged.
func (r *Replay) Save(ctx context.Context, sessionID string, c *Control) {
	r.save(ctx, sessionID, c, r.options.Every)
}

// Leave is Save for an owner that ends: the next one shall have little to do.
func (r *Replay) Leave(ctx context.Context, sessionID string, c *Control) {
	r.save(ctx, sessionID, c, max(r.options.Every/8, 1))
}

func (r *Replay) save(ctx context.Context, sessionID string, c *Control, after uint64) {
	sequence := c.Sequence()
	if sequence < c.saved+after {
		return
	}
	err := r.store.PutSnapshot(ctx, sessionID, journal.Snapshot{Sequence: sequence, Bytes: encode(c.State)})
	if err != nil {
		r.options.Logger.Warn("snapshot was not kept", "session", sessionID, "sequence", sequence, "cause", err)
		return
	}
	c.saved = sequence
}

// load gives the newest snapshot up to a sequence, or the empty state.
func (r *Replay) load(ctx context.Context, sessionID string, upTo uint64) (*Control, error) {
	snapshot, err := r.store.Snapshot(ctx, sessionID, upTo)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return Empty(sessionID), nil
	case errors.Is(err, journal.ErrDamaged):
		r.options.Logger.Warn("snapshot cannot be read", "session", sessionID, "cause", err)
		return Empty(sessionID), nil
	case err != nil:
		return nil, fmt.Errorf("read a snapshot: %w", err)
	}
	state, err := decode(sessionID, snapshot)
	if err == nil {
		return &Control{State: state, saved: snapshot.Sequence}, nil
	}
	r.options.Logger.Warn("snapshot is dropped", "session", sessionID, "sequence", snapshot.Sequence, "cause", err)
	if err := r.store.DropSnapshots(ctx, sessionID, snapshot.Sequence+1); err != nil {
		r.options.Logger.Warn("snapshot was not dropped", "session", sessionID, "cause", err)
	}
	return Empty(sessionID), nil
}

// A stored snapshot is
//
//	version   1 byte
//	CRC32C    4 bytes, of all that follows
//	length    uvarint, of the session state
//	session state, desk
const (
	snapshotVersion = 1
	snapshotHeader  = 1 + crc32.Size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(s State) []byte {
	control := s.Session.EncodeControl()
	data := make([]byte, snapshotHeader, snapshotHeader+binary.MaxVarintLen64+len(control)+512)
	data[0] = snapshotVersion
	data = binary.AppendUvarint(data, uint64(len(control)))
	data = append(data, control...)
	data = append(data, s.Desk.Encode()...)
	binary.LittleEndian.PutUint32(data[1:], crc32.Checksum(data[snapshotHeader:], castagnoli))
	return data
}

var errSnapshot = errors.New("unreadable snapshot")

func decode(sessionID string, snapshot journal.Snapshot) (State, error) {
	data := snapshot.Bytes
	if len(data) < snapshotHeader || data[0] != snapshotVersion {
		return State{}, fmt.Errorf("%w: no version or another one", errSnapshot)
	}
	body := data[snapshotHeader:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[1:]) {
		return State{}, fmt.Errorf("%w: checksum", errSnapshot)
	}
	length, n := binary.Uvarint(body)
	if n <= 0 || length > uint64(len(body)-n) {
		return State{}, fmt.Errorf("%w: length", errSnapshot)
	}
	body = body[n:]
	control, err := session.DecodeControl(body[:length])
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	d, err := desk.Decode(body[length:])
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	s := State{control, d}
	if control.SessionID() != sessionID || s.Sequence() != snapshot.Sequence {
		return State{}, fmt.Errorf("%w: it is that of %q at %d", errSnapshot, control.SessionID(), s.Sequence())
	}
	return s, nil
}
