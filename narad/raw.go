package narad

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Raw is one JSON value whose bytes are kept as they are: 1.10 stays 1.10, and a
// number too large for any machine type stays what it was. A nil Raw is an absent
// value, which is not the same as Raw("null").
type Raw []byte

// String returns the value's bytes as text.
func (r Raw) String() string { return string(r) }

// MarshalJSON returns the bytes themselves, and null for an absent value.
func (r Raw) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of the bytes.
func (r *Raw) UnmarshalJSON(data []byte) error {
	*r = append((*r)[:0:0], data...)
	return nil
}

// Member is one field of a JSON object: its decoded name and its value's bytes.
type Member struct {
	Name  string
	Value Raw
}

// Quote returns text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func Quote(text string) Raw {
	quoted, _ := jsontext.AppendQuote(nil, text) // its error only reports the replacement
	return quoted
}

// IsString reports whether the value is a JSON string, and returns its text.
func (r Raw) IsString() (string, bool) {
	if len(r) < 2 || r[0] != '"' {
		return "", false
	}
	return unquote(string(r)), true
}

// Members returns the fields of an object in their order; false if the value is
// none.
func (r Raw) Members() ([]Member, bool) {
	in, ok := membersOf(r.sound())
	if !ok {
		return nil, false
	}
	list := make([]Member, len(in.list))
	for i, m := range in.list {
		list[i] = Member{in.name(m), Raw(in.value(m))}
	}
	return list, true
}

// Field returns the value of an object's field, nil if there is none.
func (r Raw) Field(name string) Raw {
	in, _ := membersOf(r.sound())
	if i := in.find(name); i >= 0 {
		return Raw(in.value(in.list[i]))
	}
	return nil
}

// Elements returns the elements of an array; false if the value is none.
func (r Raw) Elements() ([]Raw, bool) {
	list, ok := elements(r.sound())
	return raws(list), ok
}

func raws(list []string) []Raw {
	if list == nil {
		return nil
	}
	all := make([]Raw, len(list))
	for i, value := range list {
		all[i] = Raw(value)
	}
	return all
}

// sound returns the value's text without the white space around it, and "" if the
// bytes are not one JSON value.
func (r Raw) sound() string {
	if !jsontext.Value(r).IsValid() {
		return ""
	}
	return strings.TrimSpace(string(r))
}

// unquote decodes a valid JSON string; without escapes it is a part of s itself.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, s) // s is valid
	return string(text)
}
