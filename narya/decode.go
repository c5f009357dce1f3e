package narya

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// Decode reads one event, which is what stands in the data of one frame. Fields that the
// contract does not name are ignored. An error is an [*Invalid]; a client that goes on
// over types it does not know passes over [UnknownType].
func Decode(data []byte) (Event, error) {
	var e Event
	switch {
	case len(data) > MaxEventBytes:
		return e, &Invalid{TooLarge, "", "an event has at most 1 MiB"}
	case !jsontext.Value(data).IsValid():
		return e, &Invalid{NotJSON, "", "one JSON value in UTF-8 with distinct names is required"}
	case depth(data) > MaxDepth:
		return e, &Invalid{TooDeep, "", "objects and arrays nest at most 96 deep"}
	}
	members, ok := narad.Raw(data).Members()
	if !ok {
		return e, &Invalid{InvalidField, "", "an object is required"}
	}
	c := &coder{in: members}
	var kind Type
	c.text("type", (*string)(&kind), required)
	if c.err != nil {
		return e, c.err
	}
	empty := registry[kind]
	if empty == nil {
		return e, &Invalid{UnknownType, "/type", "a type of the Narya host API v1 is required"}
	}
	e.Payload = empty()
	e.envelope(c, kind)
	c.part("payload", e.Payload)
	if c.err != nil {
		return Event{}, c.err
	}
	return e, nil
}

// Encode writes an event as it is served, or says why it may not be. An error is an
// [*Invalid].
func Encode(e Event) ([]byte, error) { return AppendEncode(nil, e) }

// AppendEncode is Encode, but adds to dst. After an error dst is as it was.
func AppendEncode(dst []byte, e Event) ([]byte, error) {
	kind := e.Type()
	if registry[kind] == nil {
		return dst, &Invalid{UnknownType, "/type", "a type of the Narya host API v1 is required"}
	}
	c := &coder{writing: true, out: append(slices.Grow(dst, 512), '{')}
	e.envelope(c, kind)
	c.part("payload", e.Payload)
	c.out = append(c.out, '}')
	written := c.out[len(dst):]
	switch {
	case c.err != nil:
		return dst, c.err
	case len(written) > MaxEventBytes:
		return dst, &Invalid{TooLarge, "", "an event has at most 1 MiB"}
	case depth(written) > MaxDepth:
		return dst, &Invalid{TooDeep, "", "objects and arrays nest at most 96 deep"}
	}
	return c.out, nil
}

// envelope visits the fields that every event has.
func (e *Event) envelope(c *coder, kind Type) {
	id := ""
	if c.writing && e.ID > 0 {
		id = strconv.FormatInt(e.ID, 10)
	}
	c.text("id", &id, required, anID)
	e.ID, _ = ParseID(id)
	if c.writing {
		c.text("type", (*string)(&kind), required)
	}
	c.uuid("sessionId", &e.SessionID, need(ofSession[kind]))
	c.uuid("laneId", &e.LaneID, need(ofLane[kind]))
	c.time("timestamp", &e.Timestamp, required)
}

func anID(s string) string {
	if _, ok := ParseID(s); !ok {
		return "a positive whole number in decimal is required"
	}
	return ""
}

// depth returns how deep the objects and arrays of a JSON text nest.
func depth(text []byte) (deepest int) {
	open, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			open++
			deepest = max(deepest, open)
		case b == '}' || b == ']':
			open--
		}
	}
	return deepest
}
