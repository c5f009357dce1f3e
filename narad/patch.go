package narad

import (
	"strconv"
	"strings"
)

// Op is the name of a patch operation (RFC 6902 §4).
type Op string

// The operations of RFC 6902.
const (
	OpAdd     Op = "add"
	OpRemove  Op = "remove"
	OpReplace Op = "replace"
	OpMove    Op = "move"
	OpCopy    Op = "copy"
	OpTest    Op = "test"
)

var ops = []Op{OpAdd, OpRemove, OpReplace, OpMove, OpCopy, OpTest}

// Patch is a JSON patch of at least one operation.
type Patch []Operator

// Operator is one operation of a patch. Paths are JSON Pointers, already split
// into decoded tokens.
type Operator struct {
	Op    Op
	Path  []string
	From  []string
	Value Raw
}

// ParsePatch reads a patch. Besides what RFC 6902 demands it refuses the root as a
// target and the names __proto__, constructor and prototype as whole tokens: the
// public client refuses both, so a host that sent them would be left alone.
func ParsePatch(value Raw) (Patch, error) {
	patch, err := parsePatch(string(value), "", false)
	if err != nil {
		return nil, err
	}
	return patch, nil
}

func parsePatch(value, path string, strict bool) (Patch, *Error) {
	items, ok := elements(value)
	if !ok || len(items) == 0 {
		return nil, &Error{CodeInvalidPatch, path, "an array of at least one operation is required"}
	}
	patch := make(Patch, len(items))
	for i, item := range items {
		in, _ := membersOf(item)
		c := &coder{strict: strict, code: CodeInvalidPatch, path: path + "/" + strconv.Itoa(i), in: in}
		patch[i].fields(c)
		if c.err != nil {
			return nil, c.err
		}
	}
	return patch, nil
}

func (o *Operator) fields(c *coder) {
	word(c, "op", &o.Op, ops, required)
	o.Path = c.location("path")
	moves := o.Op == OpMove || o.Op == OpCopy
	if moves || isString(c.take("from")) || c.strict && c.has("from") {
		o.From = c.location("from") // an unsafe one is refused even where it has no use
	}
	c.value("value", &o.Value, need(o.Op == OpAdd || o.Op == OpReplace || o.Op == OpTest))
}

var (
	withoutEscapes = strings.NewReplacer("~0", "", "~1", "")
	unescaper      = strings.NewReplacer("~0", "~", "~1", "/")
)

// location visits a JSON Pointer below the root.
func (c *coder) location(name string) []string {
	var text string
	c.text(name, &text, required)
	if c.err != nil {
		return nil
	}
	if !strings.HasPrefix(text, "/") {
		c.failAs(CodeUnsafePatch, name, "a JSON Pointer below the root is required")
		return nil
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		if strings.Contains(withoutEscapes.Replace(token), "~") {
			c.fail(name, "in a JSON Pointer ~ stands only in ~0 and ~1")
			return nil
		}
		token = unescaper.Replace(token)
		switch token {
		case "__proto__", "constructor", "prototype":
			c.failAs(CodeUnsafePatch, name, "the path names something that no patch may touch")
			return nil
		}
		tokens[i] = token
	}
	return tokens
}

// patch visits a member that is a patch. A client only sees that it is an array,
// since it may have nothing to apply it to; a host must write a sound one.
func (c *coder) patch(name string, p *Raw, n need) {
	if c.mode == schema {
		c.describes(name, formPatch, n)
		return
	}
	c.value(name, p, n)
	if c.err != nil || *p == nil {
		return
	}
	if (*p)[0] != '[' {
		c.unusable(name, "an array of operations is required", need(c.host() || n == required))
		*p = nil
		return
	}
	if c.host() {
		if _, err := parsePatch(string(*p), pointer(c.path, name), true); err != nil {
			c.err = err
		}
	}
}
