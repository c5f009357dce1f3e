package pebble

import (
	"bytes"
	"fmt"
	"sort"

	lsm "github.com/cockroachdb/pebble/v2"
)

// A block of a table whose bytes do not fit its checksum, or a table of which not even the
// index can be read, is a hole in the order of the keys: no iterator can stand in it, nor
// pass it. A fresh one stands behind it, where a seek does not touch it.

// hole is a range of keys, [from, to), that cannot be gone through. Single keys in it may
// still be had, where a newer table has them.
type hole struct {
	from, to []byte
	cause    error
}

func (h hole) has(key []byte) bool {
	return bytes.Compare(key, h.from) >= 0 && bytes.Compare(key, h.to) < 0
}

// err says what is lost.
func (h hole) err() error {
	return fmt.Errorf("what stands from %.80q to %.80q cannot be read: %w", h.from, h.to, h.cause)
}

// scan goes over [lower, upper). It calls row with the iterator at each key, and lost with
// each hole, in the order of the keys or against it, until one of them says that it is enough.
func (v *view) scan(
	lower, upper []byte, backwards bool,
	row func(it *lsm.Iterator) (more bool, err error), lost func(hole) (more bool, err error),
) error {
	for bytes.Compare(lower, upper) < 0 {
		it, err := v.iterate(lower, upper)
		if err != nil {
			return err
		}
		valid, next := it.First, it.Next
		if backwards {
			valid, next = it.Last, it.Prev
		}
		more := true
		var edge []byte
		for ok := valid(); ok && more && err == nil; ok = next() {
			edge = append(edge[:0], it.Key()...)
			more, err = row(it)
		}
		cause := it.Error()
		closed := it.Close()
		switch {
		case err != nil || !more:
			return err
		case cause == nil:
			return closed
		case edge != nil && backwards:
			upper = edge
		case edge != nil:
			lower = append(edge, 0)
		}
		h := v.hole(lower, upper, backwards)
		h.cause = cause
		if more, err = lost(h); err != nil || !more {
			return err
		}
		if backwards {
			upper = h.from
		} else {
			lower = h.to
		}
	}
	return nil
}

// hole finds the hole with which [lower, upper) begins, or ends. It may be larger than it
// need be, never smaller.
func (v *view) hole(lower, upper []byte, backwards bool) hole {
	if !backwards {
		return hole{from: lower, to: v.holeEnd(lower, upper)}
	}
	from := least(lower, upper, func(key []byte) bool { return !v.readable(lower, key, true) })
	// A seek to what is before the key right behind another reads that other's neighbour.
	if n := len(from); n > 0 && from[n-1] == 0 {
		from = from[:n-1]
	}
	if bytes.Compare(from, lower) < 0 || bytes.Compare(from, upper) >= 0 {
		from = lower
	}
	return hole{from: from, to: upper}
}

// holeBlocks is how many blocks are looked at one by one for the end of a hole.
const holeBlocks = 32

// holeEnd finds the first key from which on can be read. It tries the beginning of each block
// behind, since there may be one that is whole between two that are not; where there are too
// many it takes what lies between for lost.
func (v *view) holeEnd(lower, upper []byte) []byte {
	at := lower
	for range holeBlocks {
		size := v.size(lower, at)
		at = least(at, upper, func(key []byte) bool { return v.size(lower, key) > size })
		if bytes.Compare(at, upper) >= 0 || v.readable(at, upper, false) {
			return at
		}
	}
	return least(at, upper, func(key []byte) bool { return v.readable(key, upper, false) })
}

// size is that of the blocks that may hold keys of [from, to]: with to it grows where a
// block begins.
func (v *view) size(from, to []byte) uint64 {
	size, err := v.db.EstimateDiskUsage(from, to)
	if err != nil {
		return 0
	}
	return size
}

// readable reports whether reading can begin at one end of [lower, upper).
func (v *view) readable(lower, upper []byte, backwards bool) bool {
	it, err := v.iterate(lower, upper)
	if err != nil {
		return false
	}
	if backwards {
		it.Last()
	} else {
		it.First()
	}
	err = it.Close() // tells of the seek too
	return err == nil
}

// longestKey is longer than any key.
const longestKey = 1 << 10

// least finds the least key in (above, below) for which a predicate holds that holds for
// all keys behind it too; below if there is none.
func least(above, below []byte, holds func(key []byte) bool) []byte {
	is := func(key []byte) bool {
		return bytes.Compare(key, below) >= 0 || bytes.Compare(key, above) > 0 && holds(key)
	}
	with := func(key []byte, c int) []byte { return append(key[:len(key):len(key)], byte(c)) }
	var key []byte // the least has it as its beginning, and it is not the least itself
	for len(key) < longestKey {
		c := sort.Search(256, func(c int) bool { return is(with(key, c)) })
		if c == 0 {
			return with(key, 0)
		}
		shorter := with(key, c-1)
		if c < 256 && !is(append(shorter[:len(shorter):len(shorter)], bytes.Repeat([]byte{0xff}, 64)...)) {
			return with(key, c)
		}
		key = shorter
	}
	return below
}
