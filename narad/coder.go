package narad

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A coder visits the fields of a record. Each type lists its fields once, in its
// fields method, and the coder's mode decides what a visit does: take the field
// from the members of a decoded object, check and write it, or write its schema. So
// a field that is read is a field that is written, under the same rule.
type coder struct {
	mode        mode
	strict      bool    // decoding: demand what a host must write
	code        Code    // the code of a field's error
	path        string  // the JSON Pointer of the object being visited
	in          members // decoding: the object
	err         *Error  // the first refusal, which later ones do not replace
	*writing            // encoding
	*describing         // writing a schema
}

// writing is what a coder has written.
type writing struct {
	out   []byte   // the text so far, without the closing brace of the object
	free  bool     // a value of free form was written
	extra []Member // the fields that the type does not define
	known []string // the names that it does, if there are such fields
}

// writes reports whether the coder encodes or describes. Where it encodes it notes
// that the type defines the name, so that no additional field takes it.
func (c *coder) writes(name string) bool {
	if c.mode == decoding {
		return false
	}
	if c.mode == encoding {
		c.knows(name)
	}
	return true
}

// knows notes names that no additional field may take.
func (c *coder) knows(names ...string) {
	if len(c.extra) > 0 {
		c.known = append(c.known, names...)
	}
}

// host reports whether the record must be one that a host may emit.
func (c *coder) host() bool { return c.strict || c.mode != decoding }

type mode uint8

const (
	decoding mode = iota
	encoding
	schema
)

// need says whether a field may be absent.
type need bool

const (
	required need = true
	optional need = false
)

func (c *coder) fail(name, rule string) {
	if c.err == nil {
		c.err = &Error{c.code, pointer(c.path, name), rule}
	}
}

// failAs is fail with a code of its own.
func (c *coder) failAs(code Code, name, rule string) {
	if c.err == nil {
		c.err = &Error{code, pointer(c.path, name), rule}
	}
}

// failItem is fail for an element of an array.
func (c *coder) failItem(name string, i int, rule string) {
	if c.err == nil {
		c.err = &Error{c.code, item(c.path, name, i), rule}
	}
}

// take returns the value of a member and marks it as known. The result is ""
// where the member is absent.
func (c *coder) take(name string) string {
	i := c.in.find(name)
	if i < 0 {
		return ""
	}
	c.in.list[i].used = true
	return c.in.value(c.in.list[i])
}

// is reports whether a value is the string text, however it is spelled.
func is(value, text string) bool { return isString(value) && unquote(value) == text }

func isString(value string) bool { return value != "" && value[0] == '"' }

// has reports whether a member of that name is present, null or not.
func (c *coder) has(name string) bool { return c.in.find(name) >= 0 }

// comma separates a member from the one before it.
func (c *coder) comma() {
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
}

// put starts a member.
func (c *coder) put(name string) {
	c.comma()
	c.out = append(c.out, '"')
	c.out = append(c.out, name...)
	c.out = append(c.out, '"', ':')
}

// unusable handles an optional member of a wrong form: a client goes on without
// it, a host must not write it (facts about the public client, §18.25).
func (c *coder) unusable(name, rule string, n need) {
	if n == required || c.host() {
		c.fail(name, rule)
	}
}

// id visits a non-empty string.
func (c *coder) id(name string, p *string, n need) {
	const rule = "a non-empty string is required"
	if c.writes(name) {
		if c.describes(name, formID, n) {
			return
		}
		if *p == "" {
			if n == required {
				c.fail(name, rule)
			}
			return
		}
		c.putText(name, *p)
		return
	}
	value := c.take(name)
	if value == "" && n == optional {
		return
	}
	if len(value) < 3 || value[0] != '"' {
		c.unusable(name, rule, n)
		return
	}
	*p = unquote(value)
}

// text visits a string that may be empty. An optional one is absent when empty.
func (c *coder) text(name string, p *string, n need) {
	if c.writes(name) {
		if c.describes(name, formText, n) {
			return
		}
		if *p != "" || n == required {
			c.putText(name, *p)
		}
		return
	}
	value := c.take(name)
	if value == "" && n == optional {
		return
	}
	if !isString(value) {
		c.unusable(name, "a string is required", n)
		return
	}
	*p = unquote(value)
}

// nullableText visits a required member that is a string or null.
func (c *coder) nullableText(name string, p **string) {
	if c.writes(name) {
		if c.describes(name, `{"type":["string","null"]}`, required) {
			return
		}
		if *p == nil {
			c.put(name)
			c.out = append(c.out, "null"...)
			return
		}
		c.putText(name, **p)
		return
	}
	switch value := c.take(name); {
	case value == "":
		c.fail(name, "a string or null is required")
	case value[0] == '"':
		s := unquote(value)
		*p = &s
	case value != "null" && c.strict:
		c.fail(name, "a string or null is required")
	}
}

// presentText visits an optional string whose emptiness has a meaning.
func (c *coder) presentText(name string, p **string) {
	if c.writes(name) {
		if c.describes(name, formText, optional) {
			return
		}
		if *p != nil {
			c.putText(name, **p)
		}
		return
	}
	switch value := c.take(name); {
	case value == "":
	case !isString(value):
		c.fail(name, "a string is required")
	default:
		s := unquote(value)
		*p = &s
	}
}

func (c *coder) putText(name, s string) {
	c.put(name)
	var err error
	if c.out, err = jsontext.AppendQuote(c.out, s); err != nil {
		c.fail(name, "the text must be UTF-8")
	}
}

// count visits an integer of at least least and at most MaxInteger. An optional
// one is absent when zero.
func (c *coder) count(name string, p *int64, least int64, n need) {
	if c.writes(name) {
		if c.describes(name, formOfCount(least), n) {
			return
		}
		if *p == 0 && n == optional {
			return
		}
		if *p < least || *p > MaxInteger {
			c.fail(name, atLeast(least))
			return
		}
		c.put(name)
		c.out = strconv.AppendInt(c.out, *p, 10)
		return
	}
	value := c.take(name)
	if value == "" && n == optional {
		return
	}
	i, ok := integer(value)
	if !ok || i < least {
		c.unusable(name, atLeast(least), n)
		return
	}
	*p = i
}

func atLeast(least int64) string {
	return "an integer of at least " + strconv.FormatInt(least, 10) + " is required"
}

// index visits an optional integer of at least 0 that is refused in any other
// form, by a client too.
func (c *coder) index(name string, p **int64) {
	if c.writes(name) {
		if c.describes(name, formOfCount(0), optional) {
			return
		}
		if *p != nil {
			c.count(name, *p, 0, required)
		}
		return
	}
	if c.has(name) {
		*p = new(int64)
		c.count(name, *p, 0, required)
	}
}

// integer reads a JSON number that is a whole number, however it is spelled, and
// no larger than MaxInteger.
func integer(value string) (int64, bool) {
	if i, err := strconv.ParseInt(value, 10, 64); err == nil {
		return i, i <= MaxInteger && i >= -MaxInteger
	}
	if value == "" || !startsNumber(value[0]) {
		return 0, false
	}
	d, ok := decimalOf(value, nil)
	if ok && len(d.digits) == 0 {
		return 0, true // zero, however it is spelled
	}
	if !ok || d.exponent < 0 || len(d.digits)+d.exponent > len("9007199254740991") {
		return 0, false
	}
	i, err := strconv.ParseInt(string(d.digits)+strings.Repeat("0", d.exponent), 10, 64)
	if d.negative {
		i = -i
	}
	return i, err == nil && i <= MaxInteger && i >= -MaxInteger
}

func startsNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// value visits any JSON value; a required one must be present, and null is.
func (c *coder) value(name string, p *Raw, n need) {
	if c.writes(name) {
		if c.describes(name, formAny, n) {
			return
		}
		c.putRaw(name, *p, n)
		return
	}
	value := c.take(name)
	if value == "" {
		if n == required {
			c.fail(name, "a value is required")
		}
		return
	}
	*p = Raw(value)
}

func (c *coder) putRaw(name string, value Raw, n need) {
	if value == nil {
		if n == required {
			c.fail(name, "a value is required")
		}
		return
	}
	if !jsontext.Value(value).IsValid() {
		c.fail(name, "the value must be strict JSON")
		return
	}
	c.put(name)
	c.out, c.free = appendRaw(c.out, value), true
}

// appendRaw writes a value as it is. Only where it has line breaks it loses its
// white space: a record is one line of a log and one line of a stream.
func appendRaw(out []byte, value Raw) []byte {
	if bytes.ContainsAny(value, "\r\n") {
		compact := jsontext.Value(bytes.Clone(value))
		if compact.Compact() == nil {
			value = Raw(compact)
		}
	}
	return append(out, value...)
}

// word visits a string of a closed set.
func word[T ~string](c *coder, name string, p *T, allowed []T, n need) {
	if c.mode == schema {
		c.describes(name, formOfWord(*p, allowed), n)
		return
	}
	s := string(*p)
	c.id(name, &s, n)
	if c.err != nil || s == "" {
		return
	}
	for _, a := range allowed {
		if string(a) == s {
			*p = a
			return
		}
	}
	c.unusable(name, oneOf(allowed), n)
}

func oneOf[T ~string](allowed []T) string {
	rule := "one of"
	for i, a := range allowed {
		if i > 0 {
			rule += ","
		}
		rule += " " + string(a)
	}
	return rule + " is required"
}

// forbid refuses members that a class must not carry, whatever their value.
func (c *coder) forbid(code Code, rule string, names ...string) {
	switch c.mode {
	case encoding:
		c.knows(names...)
		return
	case schema:
		for _, name := range names {
			c.describes(name, formNever, optional)
		}
		return
	}
	for _, name := range names {
		if c.has(name) {
			c.failAs(code, name, rule)
		}
	}
}

// rest returns the members that no visit took.
func (c *coder) rest() []Member {
	var extra []Member
	for _, m := range c.in.list {
		if !m.used {
			extra = append(extra, Member{c.in.name(m), Raw(c.in.value(m))})
		}
	}
	return extra
}

// aside checks a member that the type does not define, but that a published
// schema gives a form to all the same. It stays among the unknown fields.
func (c *coder) aside(name, rule, form string, ok func(value string) bool) {
	if !c.host() || c.describes(name, form, optional) {
		return
	}
	if c.mode == decoding {
		if i := c.in.find(name); i >= 0 && !ok(c.in.value(c.in.list[i])) {
			c.fail(name, rule)
		}
		return
	}
	for _, m := range c.extra {
		if m.Name == name && !ok(string(m.Value)) {
			c.fail(name, rule)
		}
	}
}

// asideIDs checks members that stand aside as non-empty strings.
func (c *coder) asideIDs(names ...string) {
	for _, name := range names {
		c.aside(name, "a non-empty string is required", formID, func(v string) bool { return len(v) > 2 && v[0] == '"' })
	}
}

// asideTexts checks members that stand aside as strings.
func (c *coder) asideTexts(names ...string) {
	for _, name := range names {
		c.aside(name, "a string is required", formText, isString)
	}
}

// putExtra writes the members that this package does not know.
func (c *coder) putExtra() {
	if len(c.extra) == 0 {
		return
	}
	taken := c.taken()
	for _, m := range c.extra {
		if c.err != nil {
			return
		}
		if !jsontext.Value(m.Value).IsValid() || !utf8.ValidString(m.Name) {
			c.fail(m.Name, "an additional field must be strict JSON")
			return
		}
		if taken(m.Name) {
			c.fail(m.Name, "an additional field must not have the name of another")
			return
		}
		c.comma()
		c.out, _ = jsontext.AppendQuote(c.out, m.Name)
		c.out = append(c.out, ':')
		c.free = true
		c.out = appendRaw(c.out, m.Value)
	}
}

// taken returns a function that reports whether a name is known or was asked for
// before. Few names are searched, many are looked up.
func (c *coder) taken() func(name string) bool {
	if len(c.extra) <= 16 {
		return func(name string) bool {
			found := slices.Contains(c.known, name)
			c.known = append(c.known, name)
			return found
		}
	}
	seen := make(map[string]bool, len(c.known)+len(c.extra))
	for _, name := range c.known {
		seen[name] = true
	}
	return func(name string) bool {
		found := seen[name]
		seen[name] = true
		return found
	}
}

// object starts a member that is an object. The coder that it returns writes the
// fields of the object, after which the object must be closed.
func (c *coder) object(name string, extra []Member) *coder {
	c.put(name)
	return c.brace(pointer(c.path, name), extra)
}

// brace starts an object where a value stands.
func (c *coder) brace(path string, extra []Member) *coder {
	return &coder{mode: encoding, code: c.code, path: path, writing: &writing{out: append(c.out, '{'), extra: extra}}
}

// close ends an object that inner has written, with its additional fields.
func (c *coder) close(inner *coder) {
	inner.putExtra()
	if c.err == nil {
		c.err = inner.err
	}
	c.out = append(inner.out, '}')
	c.free = c.free || inner.free
}

// inside returns a coder for an object inside of the one being read. A value that is
// none has no members, so that its first required field is missing.
func (c *coder) inside(path, value string) (inner *coder, ok bool) {
	in, ok := membersOf(value)
	return &coder{strict: c.strict, code: c.code, path: path, in: in}, ok
}
