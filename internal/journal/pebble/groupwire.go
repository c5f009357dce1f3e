package pebble

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A stored group lists the batches of one commit group in the order of their
// offsets, so that the order of the whole store costs one key a group.

// groupEntry is one batch of a group.
type groupEntry struct {
	sid           uint64
	firstSequence uint64
	facts         uint64
	events        uint64
}

// storedGroup is a group with the numbers of its first batch.
type storedGroup struct {
	firstOffset uint64
	firstEvent  uint64
	entries     []groupEntry
}

// end gives the numbers behind the group.
func (g *storedGroup) end() (offset, event uint64) {
	offset, event = g.firstOffset, g.firstEvent
	for _, e := range g.entries {
		offset += e.facts
		event += e.events
	}
	return offset, event
}

func (g *storedGroup) encode() []byte {
	buf := make([]byte, 0, 16+12*len(g.entries))
	buf = binary.AppendUvarint(buf, g.firstOffset)
	buf = binary.AppendUvarint(buf, g.firstEvent)
	buf = binary.AppendUvarint(buf, uint64(len(g.entries)))
	for _, e := range g.entries {
		buf = binary.AppendUvarint(buf, e.sid)
		buf = binary.AppendUvarint(buf, e.firstSequence)
		buf = binary.AppendUvarint(buf, e.facts)
		buf = binary.AppendUvarint(buf, e.events)
	}
	return binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, castagnoli))
}

func decodeGroup(stored []byte) (*storedGroup, error) {
	if len(stored) < crc32.Size {
		return nil, fmt.Errorf("group: %w", errTruncated)
	}
	content, sum := stored[:len(stored)-crc32.Size], stored[len(stored)-crc32.Size:]
	if crc32.Checksum(content, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("group: %w", errChecksum)
	}
	d := &decoder{buf: content}
	g := &storedGroup{firstOffset: d.number(), firstEvent: d.number()}
	g.entries = make([]groupEntry, d.bounded(len(d.buf)/4))
	for i := range g.entries {
		g.entries[i] = groupEntry{d.number(), d.number(), d.number(), d.number()}
	}
	if d.err == nil && len(d.buf) > 0 {
		d.fail(errRange)
	}
	if d.err != nil {
		return nil, fmt.Errorf("group: %w", d.err)
	}
	return g, nil
}
