package flow

import (
	"cmp"
	"slices"
	"strings"
)

// The operators of conditions. Where nothing stands at the pointer, only missing and
// not_equals hold; where the kind of the value does not fit, nothing but not_equals does.
const (
	opEquals    = "equals"
	opNotEquals = "not_equals"
	opLess      = "less"
	opGreater   = "greater"
	opAtMost    = "at_most"
	opAtLeast   = "at_least"
	opContains  = "contains"
	opMatches   = "matches"
	opExists    = "exists"
	opMissing   = "missing"
	// opDefault is told of a path that has no condition, opFailed of one that a failed
	// step takes.
	opDefault = "default"
	opFailed  = "failed"
)

var operators = []string{
	opEquals, opNotEquals, opLess, opGreater, opAtMost, opAtLeast, opContains, opMatches, opExists, opMissing,
}

// holds reports whether the condition holds of the data.
func (c *condition) holds(d data) bool {
	v := d.at(c.pointer)
	switch c.op {
	case opExists:
		return v != nil
	case opMissing:
		return v == nil
	case opEquals:
		return v != nil && same(v, c.value)
	case opNotEquals:
		return v == nil || !same(v, c.value)
	case opMatches:
		text, ok := v.IsString()
		return ok && c.pattern.MatchString(text)
	case opContains:
		return c.contained(d)
	}
	n, isNumber := numberOf(v)
	limit, _ := numberOf(c.value)
	if !isNumber {
		return false
	}
	switch order := cmp.Compare(n, limit); c.op {
	case opLess:
		return order < 0
	case opGreater:
		return order > 0
	case opAtMost:
		return order <= 0
	default:
		return order >= 0
	}
}

// contained looks for a text in a text, or for a value among those of a list.
func (c *condition) contained(d data) bool {
	v := d.at(c.pointer)
	if text, ok := v.IsString(); ok {
		part, isText := c.value.IsString()
		return isText && strings.Contains(text, part)
	}
	list, _ := v.Elements()
	for _, item := range list {
		if same(item, c.value) {
			return true
		}
	}
	return false
}

// choose returns the first path whose condition holds; the last one always does.
func (n *node) choose(d data) (int, path) {
	i := slices.IndexFunc(n.next, func(p path) bool { return p.when == nil || p.when.holds(d) })
	return i, n.next[i]
}
