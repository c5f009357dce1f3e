package narad

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDocumentBytes bounds what a patch may leave behind: a patch is small, but each
// copy may double. A document also nests no deeper than MaxDepth.
const MaxDocumentBytes = 8 << 20

// maxPatchReads bounds how many bytes of the document one patch may read, to move, copy
// or test them: a few bytes of patch can name a value of megabytes, thousands of times.
const maxPatchReads = 8 * MaxDocumentBytes

// Document is a JSON value that patches change in place, at a cost that depends on
// the patch and the values it names and not on the document. What no patch touched
// keeps its bytes. It is not safe for concurrent use.
type Document struct{ root *node }

// NewDocument returns a document of a valid JSON value.
func NewDocument(value Raw) *Document { return &Document{newNode(value)} }

// Raw returns the document's present value.
func (d *Document) Raw() Raw { return d.root.value() }

// Apply changes the document by a patch, wholly or not at all. An error is an
// [*Error] whose path names the operation at fault.
func (d *Document) Apply(patch Patch) error { return d.apply(patch, true) }

// Test says whether a patch would apply, and leaves the document as it is.
func (d *Document) Test(patch Patch) error { return d.apply(patch, false) }

func (d *Document) apply(patch Patch, keep bool) error {
	var undo []func()
	takeBack := func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	read := 0
	for i := range patch {
		if read += d.reads(&patch[i]); read > maxPatchReads {
			takeBack()
			return &Error{CodeInvalidPatch, "/" + strconv.Itoa(i), ruleReads}
		}
		back, rule := d.step(&patch[i])
		if rule != "" {
			takeBack()
			return &Error{CodeInvalidPatch, "/" + strconv.Itoa(i), rule}
		}
		if back != nil {
			undo = append(undo, back)
		}
	}
	if !keep {
		takeBack()
	}
	return nil
}

// The rules that an operation can break.
const (
	ruleRoot    = "the path must name something below the root"
	ruleMissing = "the path must name an existing value"
	ruleParent  = "the path's parent must be an object or an array"
	ruleIndex   = "an array index must be a number within the array"
	ruleTest    = "the value must equal the one at the path"
	ruleChild   = "a value cannot move into itself"
	ruleDepth   = "a document nests at most 64 deep"
	ruleSize    = "a document has at most 8388608 bytes"
	ruleReads   = "a patch moves, copies and tests at most 67108864 bytes"
)

// reads returns about how many bytes of the document an operation reads.
func (d *Document) reads(o *Operator) int {
	path := o.From
	switch o.Op {
	case OpMove, OpCopy:
	case OpTest:
		path = o.Path
	default:
		return 0
	}
	if n := d.find(path); n != nil {
		return n.size
	}
	return 0
}

// step performs one operation. It returns what takes it back, or the broken rule.
func (d *Document) step(o *Operator) (undo func(), rule string) {
	if len(o.Path) == 0 {
		return nil, ruleRoot
	}
	switch o.Op {
	case OpAdd:
		return d.add(o.Path, o.Value)
	case OpRemove:
		return d.remove(o.Path)
	case OpReplace:
		return d.replace(o.Path, o.Value)
	case OpMove:
		return d.move(o.From, o.Path)
	case OpCopy:
		n := d.find(o.From)
		if n == nil {
			return nil, ruleMissing
		}
		return d.add(o.Path, n.value())
	default: // OpTest
		n := d.find(o.Path)
		if n == nil {
			return nil, ruleMissing
		}
		if !equal(n.value(), o.Value) {
			return nil, ruleTest
		}
		return nil, ""
	}
}

func (d *Document) move(from, to []string) (func(), string) {
	if len(to) > len(from) && slices.Equal(from, to[:len(from)]) {
		return nil, ruleChild
	}
	n := d.find(from)
	if n == nil {
		return nil, ruleMissing
	}
	value := n.value()
	back, rule := d.remove(from)
	if rule != "" {
		return nil, rule
	}
	away, rule := d.add(to, value)
	if rule != "" {
		back()
		return nil, rule
	}
	return func() { away(); back() }, ""
}

// find returns the node at a path, or nil.
func (d *Document) find(path []string) *node {
	n := d.root
	for _, token := range path {
		if n = n.child(token); n == nil {
			return nil
		}
	}
	return n
}

// split returns the node that holds the last token of a path, and that token.
func (d *Document) split(path []string) (holder *node, last string) {
	holder = d.find(path[:len(path)-1])
	if holder != nil {
		holder.expand()
	}
	return holder, path[len(path)-1]
}

// grow notes that the value at a path becomes longer, or shorter: the bytes of all
// that holds it are stale. It returns what takes that back.
func (d *Document) grow(path []string, by int) func() {
	type before struct {
		n    *node
		raw  Raw
		size int
	}
	stale := make([]before, 0, len(path))
	n := d.root
	for _, token := range path {
		stale = append(stale, before{n, n.raw, n.size})
		next := n.child(token)
		n.raw, n.size = nil, n.size+by
		n = next
	}
	return func() {
		for _, b := range stale {
			b.n.raw, b.n.size = b.raw, b.size
		}
	}
}

// room returns the rule that a value at a path would break.
func (d *Document) room(path []string, value Raw, by int) string {
	var s scanner
	s.scan(string(value))
	switch {
	case len(path)+s.deepest > MaxDepth:
		return ruleDepth
	case by > 0 && d.root.size+by > MaxDocumentBytes:
		return ruleSize
	}
	return ""
}

func (d *Document) add(path []string, value Raw) (func(), string) {
	n, last := d.split(path)
	if n == nil {
		return nil, ruleMissing
	}
	at := -1
	switch n.kind {
	case '{':
		if n.members[last] != nil {
			return d.replace(path, value)
		}
	case '[':
		i, ok := index(last, len(n.items))
		if last == "-" {
			i, ok = len(n.items), true
		}
		if !ok {
			return nil, ruleIndex
		}
		at = i
	default:
		return nil, ruleParent
	}
	by := len(value) + len(last)
	if rule := d.room(path, value, by); rule != "" {
		return nil, rule
	}
	back := d.grow(path, by)
	if at < 0 {
		n.append(last, newNode(value))
		return func() { n.unset(last); back() }, ""
	}
	n.items = slices.Insert(n.items, at, newNode(value))
	return func() { n.items = slices.Delete(n.items, at, at+1); back() }, ""
}

func (d *Document) remove(path []string) (func(), string) {
	old := d.find(path)
	if old == nil {
		return nil, ruleMissing
	}
	n, last := d.split(path)
	back := d.grow(path, -old.size-len(last))
	if n.kind == '{' {
		again := n.unset(last)
		return func() { again(); back() }, ""
	}
	i, _ := index(last, len(n.items)-1)
	n.items = slices.Delete(n.items, i, i+1)
	return func() { n.items = slices.Insert(n.items, i, old); back() }, ""
}

func (d *Document) replace(path []string, value Raw) (func(), string) {
	old := d.find(path)
	if old == nil {
		return nil, ruleMissing
	}
	by := len(value) - old.size
	if rule := d.room(path, value, by); rule != "" {
		return nil, rule
	}
	n, last := d.split(path)
	back := d.grow(path, by)
	if n.kind == '{' {
		n.members[last] = newNode(value)
		return func() { n.members[last] = old; back() }, ""
	}
	i, _ := index(last, len(n.items)-1)
	n.items[i] = newNode(value)
	return func() { n.items[i] = old; back() }, ""
}

// index reads an array index of at most last.
func index(token string, last int) (int, bool) {
	if len(token) > 1 && token[0] == '0' || token == "" || len(token) > 9 {
		return 0, false
	}
	i, err := strconv.ParseUint(token, 10, 32)
	return int(i), err == nil && int(i) <= last
}

// node is one value of a document. It stays bytes until somebody looks inside.
type node struct {
	kind    byte // '{', '[', or 0 for a scalar; valid once expanded
	ready   bool // expanded
	raw     Raw  // the value's bytes; nil once something inside has changed
	size    int  // about the length of raw, also while that is nil
	names   []string
	members map[string]*node
	items   []*node
}

func newNode(raw Raw) *node { return &node{raw: raw, size: len(raw)} }

func (n *node) expand() {
	if n.ready {
		return
	}
	n.ready = true
	text := string(n.raw)
	switch text[0] {
	case '{':
		n.kind = '{'
		in, _ := membersOf(text)
		n.members = make(map[string]*node, len(in.list))
		for _, m := range in.list {
			n.append(in.name(m), newNode(Raw(in.value(m))))
		}
	case '[':
		n.kind = '['
		list, _ := elements(text)
		for _, value := range list {
			n.items = append(n.items, newNode(Raw(value)))
		}
	}
}

func (n *node) child(token string) *node {
	n.expand()
	switch n.kind {
	case '{':
		return n.members[token]
	case '[':
		if i, ok := index(token, len(n.items)-1); ok {
			return n.items[i]
		}
	}
	return nil
}

// append adds a member of a new name, which comes last.
func (n *node) append(name string, fresh *node) {
	n.names = append(n.names, name)
	n.members[name] = fresh
}

// unset drops a member and returns what takes that back.
func (n *node) unset(name string) func() {
	old := n.members[name]
	at := slices.Index(n.names, name)
	n.names = slices.Delete(n.names, at, at+1)
	delete(n.members, name)
	return func() {
		n.names = slices.Insert(n.names, at, name)
		n.members[name] = old
	}
}

func (n *node) value() Raw {
	if n.raw == nil {
		n.raw = n.build()
	}
	return n.raw
}

func (n *node) build() Raw {
	out := []byte{n.kind}
	if n.kind == '{' {
		for i, name := range n.names {
			if i > 0 {
				out = append(out, ',')
			}
			out, _ = jsontext.AppendQuote(out, name)
			out = append(out, ':')
			out = append(out, n.members[name].value()...)
		}
		return append(out, '}')
	}
	for i, item := range n.items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item.value()...)
	}
	return append(out, ']')
}

// equal reports whether two JSON values are the same value (RFC 6902 §4.6).
func equal(a, b Raw) bool {
	var s scanner
	return s.scan(string(a)) == s.scan(string(b))
}
