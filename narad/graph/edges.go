package graph

import (
	"cmp"
	"slices"
	"sort"

	"github.com/mahati-host/mahati/narad"
)

// edges is a list of edges by (from, to, kind), in blocks, so that putting one into
// its place moves few of the others. The zero value is empty.
type edges struct {
	blocks [][]*edge
	count  int
}

// edge is an edge and its canonical form.
type edge struct {
	Edge
	raw narad.Raw
}

// maxBlock is the size at which a block is divided.
const maxBlock = 1024

func compareEdges(a, b Edge) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
}

// insert puts an edge into its place and returns that. The result is false if the
// edge is there already.
func (l *edges) insert(e *edge) (place int, added bool) {
	// The block is the first one whose last edge is not before e, or else the last.
	b := sort.Search(len(l.blocks), func(i int) bool {
		block := l.blocks[i]
		return compareEdges(block[len(block)-1].Edge, e.Edge) >= 0
	})
	if b == len(l.blocks) {
		if b--; b < 0 {
			l.blocks, b = append(l.blocks, nil), 0
		}
	}
	at, found := slices.BinarySearchFunc(l.blocks[b], e.Edge, func(o *edge, want Edge) int { return compareEdges(o.Edge, want) })
	if found {
		return 0, false
	}
	for _, before := range l.blocks[:b] {
		place += len(before)
	}
	l.blocks[b] = slices.Insert(l.blocks[b], at, e)
	l.divide(b)
	l.count++
	return place + at, true
}

// divide makes two blocks of one that is full.
func (l *edges) divide(b int) {
	block := l.blocks[b]
	if len(block) < maxBlock {
		return
	}
	half := slices.Clone(block[maxBlock/2:])
	clear(block[maxBlock/2:])
	l.blocks[b] = block[:maxBlock/2]
	l.blocks = slices.Insert(l.blocks, b+1, half)
}

// raws returns the canonical forms in order.
func (l *edges) raws() []narad.Raw {
	raws := make([]narad.Raw, 0, l.count)
	for _, block := range l.blocks {
		for _, e := range block {
			raws = append(raws, e.raw)
		}
	}
	return raws
}
