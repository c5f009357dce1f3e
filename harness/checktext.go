package harness

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// text judges a line as JSON and reports whether it is JSON at all.
func (c *checker) text(line []byte) bool {
	value := jsontext.Value(line)
	if value.IsValid() {
		return true
	}
	repeated, broken := jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)
	if !value.IsValid(repeated, broken) {
		c.violation(&Error{Code: CodeSyntax, Rule: brokenLine(line)})
		return false
	}
	if !value.IsValid(repeated) {
		c.violation(&Error{Code: CodeUTF8, Rule: "a line is UTF-8, and its escapes are whole characters"})
	}
	if !value.IsValid(broken) {
		c.violation(&Error{Code: CodeRepeated, Rule: "a key may stand only once in an object"})
	}
	return true
}

// brokenLine says what a line is instead of JSON.
func brokenLine(line []byte) string {
	switch {
	case blank(line):
		return "a line is one JSON object, and this one is blank"
	case bytes.HasPrefix(line, byteOrderMark):
		return "a log begins without a byte order mark"
	}
	return "a line is one JSON object: the text is malformed or ends early"
}

// folded reports keys that encoding/json takes for a field though they are not its name.
func (c *checker) folded(path string, text []byte, fields []string) {
	for _, name := range names(text) {
		if slices.Contains(fields, name) {
			continue
		}
		for _, field := range fields {
			if strings.EqualFold(field, name) {
				c.violation(&Error{Code: CodeFolded, Field: path + field, Rule: "a field has exactly its name: other readers see none here"})
			}
		}
	}
}

// names lists the keys of an object whose values are not null; none of what is no object.
func names(object []byte) (list []string) {
	in := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if in.PeekKind() != '{' {
		return nil
	}
	in.ReadToken()
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return list
		}
		key := name.String()
		if in.PeekKind() != 'n' {
			list = append(list, key)
		}
		if in.SkipValue() != nil {
			return list
		}
	}
	return list
}
