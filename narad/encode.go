package narad

import (
	"reflect"
	"slices"
)

// Encode writes a record as a host must, or says why no host may. The bytes are
// final: they are stored and served as they are. An error is an [*Error].
func Encode(rec Record) ([]byte, error) { return AppendEncode(nil, rec) }

// AppendEncode is Encode, but adds to dst.
func AppendEncode(dst []byte, rec Record) ([]byte, error) {
	s, known := registry[rec.Type()]
	if !known {
		return dst, &Error{CodeUnknownEvent, "/type", "a type of narad/v1 is required"}
	}
	if reflect.TypeOf(rec) != s.form {
		return dst, &Error{CodeUnknownEvent, "/type", "the type must be one that the Go type stands for"}
	}
	extra := *extraOf(rec)
	w := new(writing)
	c := &w.coder
	c.mode, c.code, c.extra = encoding, codeOf(s.class), extra
	c.known = append(w.names[:0], "type", "protocolVersion")
	if s.class == ClassControl {
		c.known = append(c.known, authorityFields...)
	}
	c.out = append(slices.Grow(dst, 512), `{"type":"`...)
	c.out = append(c.out, rec.Type()...)
	c.out = append(c.out, `","protocolVersion":"`+Version+`"`...)
	rec.fields(c)
	c.putExtra(extra)
	c.out = append(c.out, '}')
	if c.err == nil {
		c.err = bounded(c.out[len(dst):], c.free)
	}
	if c.err != nil {
		return dst, c.err
	}
	return c.out, nil
}

// writing is a coder with the room that most records need.
type writing struct {
	coder
	names [28]string
}

func codeOf(c Class) Code {
	switch c {
	case ClassControl:
		return CodeInvalidControl
	case ClassHydrate:
		return CodeInvalidHydrate
	}
	return CodeInvalidRecord
}

// bounded checks the limits of an encoded record. One without a value of free form
// is its own size and nests no deeper than its fields.
func bounded(record []byte, free bool) *Error {
	size, deepest := len(record), 0
	if free {
		var s scanner
		var few [24]member
		s.members = few[:0]
		s.scan(string(record))
		size, deepest = s.size, s.deepest
	}
	switch {
	case size > MaxEventBytes:
		return &Error{CodeTooLarge, "", "an event has at most 512000 bytes"}
	case deepest > MaxDepth:
		return &Error{CodeTooDeep, "", "values nest at most 64 deep"}
	}
	return nil
}
