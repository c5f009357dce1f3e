package pebble

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

func encodeIdentity(identity journal.Identity) []byte {
	buf := binary.AppendUvarint(nil, uint64(identity.Format))
	buf = appendText(buf, identity.Epoch)
	buf = append(buf, identity.Key[:]...)
	buf = binary.AppendUvarint(buf, uint64(identity.Created.UnixMicro()))
	return binary.AppendUvarint(buf, identity.FirstEvent)
}

func decodeIdentity(stored []byte) (journal.Identity, error) {
	d := &decoder{buf: stored}
	identity := journal.Identity{Format: uint32(d.number()), Epoch: d.text()}
	copy(identity.Key[:], d.take(len(identity.Key)))
	identity.Created = time.UnixMicro(int64(d.number())).UTC()
	identity.FirstEvent = d.number()
	if d.err != nil {
		return identity, damaged("", 0, fmt.Errorf("identity of the store: %w", d.err))
	}
	return identity, nil
}
