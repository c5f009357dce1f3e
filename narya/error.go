package narya

import (
	"maps"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// Error is the one envelope in which every operation refuses, and in which a turn that
// died says why.
type Error struct {
	Code Code
	// Title names the kind of error, Message what went wrong in this case.
	Title   string
	Message string
	// Fields says what is wrong with each field of a request; only [CodeInvalid] has them.
	Fields map[string]string
}

// Error returns code and message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

const (
	maxErrorTitle   = 256
	maxErrorMessage = 4096
)

func (e *Error) fields(c *coder) {
	c.text("code", (*string)(&e.Code), required, aCode)
	c.text("title", &e.Title, required, atMost(maxErrorTitle))
	c.text("message", &e.Message, required, atMost(maxErrorMessage))
	c.table("fields", &e.Fields)
}

var codeForm = regexp.MustCompile(`^NRY-[0-9]{4}$`)

func aCode(s string) string {
	if !codeForm.MatchString(s) {
		return "NRY- and four digits are required"
	}
	return ""
}

// table visits an optional object whose values are strings.
func (c *coder) table(name string, p *map[string]string) {
	inner := &coder{writing: c.writing, path: pointer(c.path, name)}
	if c.writing {
		if *p == nil {
			return
		}
		c.put(name)
		inner.out = append(c.out, '{')
		for i, key := range slices.Sorted(maps.Keys(*p)) {
			if i > 0 {
				inner.out = append(inner.out, ',')
			}
			inner.item(key, &key)
			inner.out = append(inner.out, ':')
			value := (*p)[key]
			inner.item(key, &value)
		}
		c.out = append(inner.out, '}')
	} else if value, present := c.take(name, optional); present {
		members, ok := value.Members()
		if !ok {
			c.fail(name, "an object is required")
			return
		}
		*p = make(map[string]string, len(members))
		for _, m := range members {
			var text string
			inner.in = []narad.Member{m}
			inner.item(m.Name, &text)
			(*p)[m.Name] = text
		}
	}
	if c.err == nil {
		c.err = inner.err
	}
}

// EncodeError writes an error as the body of a response, or says why it may not be: an
// [*Invalid].
func EncodeError(e *Error) ([]byte, error) { return encodeObject(e) }

// DecodeError reads the body of a refusal. An error is an [*Invalid].
func DecodeError(data []byte) (*Error, error) {
	e := new(Error)
	if err := decodeObject(data, e); err != nil {
		return nil, err
	}
	return e, nil
}

// EncodeSession writes a session as responses hold it. An error is an [*Invalid].
func EncodeSession(s *Session) ([]byte, error) { return encodeObject(s) }

// DecodeSession reads a session of a response. An error is an [*Invalid].
func DecodeSession(data []byte) (*Session, error) {
	s := new(Session)
	if err := decodeObject(data, s); err != nil {
		return nil, err
	}
	return s, nil
}

func encodeObject(o object) ([]byte, error) {
	c := &coder{writing: true, out: []byte{'{'}}
	o.fields(c)
	if c.err != nil {
		return nil, c.err
	}
	return append(c.out, '}'), nil
}

func decodeObject(data []byte, o object) error {
	switch {
	case len(data) > MaxEventBytes:
		return &Invalid{TooLarge, "", "at most 1 MiB are allowed"}
	case !jsontext.Value(data).IsValid():
		return &Invalid{NotJSON, "", "one JSON value in UTF-8 with distinct names is required"}
	}
	members, ok := narad.Raw(data).Members()
	if !ok {
		return &Invalid{InvalidField, "", "an object is required"}
	}
	c := &coder{in: members}
	o.fields(c)
	if c.err != nil {
		return c.err
	}
	return nil
}
