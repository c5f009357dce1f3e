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
	c := &newWriter().coder
	c.code, c.extra = codeOf(s.class), *extraOf(rec)
	c.knows("type", "protocolVersion")
	if s.class == ClassControl {
		c.knows(authorityFields...)
	}
	c.out = append(slices.Grow(dst, 512), `{"type":"`...)
	c.out = append(c.out, rec.Type()...)
	c.out = append(c.out, `","protocolVersion":"`+Version+`"`...)
	rec.fields(c)
	c.putExtra()
	c.out = append(c.out, '}')
	if c.err == nil {
		c.err = bounded(c.out[len(dst):], c.free)
	}
	if c.err != nil {
		return dst, c.err
	}
	return c.out, nil
}

// writer is a coder together with what it writes.
type writer struct {
	coder
	own writing
}

func newWriter() *writer {
	w := new(writer)
	w.mode, w.writing = encoding, &w.own
	return w
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
