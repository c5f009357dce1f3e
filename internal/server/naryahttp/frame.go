package naryahttp

import (
	"bytes"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// frames are the events of one fact as every client of the stream gets them, none for a
// fact without: a function of the stored fact and its numbers alone.
func frames(r host.Record) []byte {
	if r.EventCount == 0 {
		return nil
	}
	rec, err := narad.Decode(r.Bytes)
	fact, ok := rec.(narad.Authority)
	if err != nil || !ok {
		return nil
	}
	var out []byte
	for i, e := range narya.Mapping1.Project(fact) { // a fact with numbers is of no other version
		e.ID = int64(r.FirstEvent) + int64(i)
		data, err := narya.Encode(e)
		if err != nil || uint32(i) >= r.EventCount {
			return nil
		}
		if out, err = sse.AppendFrame(out, narya.FormatID(e.ID), data); err != nil {
			return nil
		}
	}
	return out
}

// frameEnd ends each frame, and stands nowhere else: data is one line.
var frameEnd = []byte("\n\n")

// count is how many frames there are.
func count(frames []byte) int { return bytes.Count(frames, frameEnd) }

// cut returns the first n frames.
func cut(frames []byte, n int) []byte {
	at := 0
	for ; n > 0; n-- {
		i := bytes.Index(frames[at:], frameEnd)
		if i < 0 {
			return frames
		}
		at += i + len(frameEnd)
	}
	return frames[:at]
}

// behind returns the frames with an id above after: a fact is given whole, and a client may
// have some of its events.
func behind(frames []byte, after uint64) []byte {
	for len(frames) > 0 && idOf(frames) <= after {
		frames = frames[len(cut(frames, 1)):]
	}
	return frames
}

// upTo parts frames at an id: what is up to it, and what is above.
func upTo(frames []byte, id uint64) (below, above []byte) {
	at := 0
	for at < len(frames) && idOf(frames[at:]) <= id {
		at += len(cut(frames[at:], 1))
	}
	return frames[:at:at], frames[at:]
}

// idOf is the id of the first frame.
func idOf(frames []byte) uint64 {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(frames, []byte("id: ")), []byte("\n"))
	id, _ := narya.ParseID(string(line))
	return uint64(id)
}
