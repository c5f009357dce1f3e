package narad

// Decoder reads records. The zero value takes every profile, leniently.
type Decoder struct {
	// Strict demands what a host may emit; otherwise what a client may take.
	Strict bool
	// Without holds the profiles that were not negotiated. Of their events only the
	// envelope is read, and they come as [*Skipped].
	Without Profile
}

// Decode reads one record as a client does. The record keeps a copy of data, parts
// of which its strings are; it does not alias data. An error is an [*Error].
func Decode(data []byte) (Record, error) { return Decoder{}.Decode(data) }

// DecodeStrict reads one record and demands that a host may emit it.
func DecodeStrict(data []byte) (Record, error) { return Decoder{Strict: true}.Decode(data) }

// Decode reads one record.
func (d Decoder) Decode(data []byte) (Record, error) { return new(reading).decode(d, data) }

// Reader is a Decoder for one record after another: it keeps the room that a Decoder
// makes anew for each. It belongs to one goroutine.
type Reader struct {
	Decoder
	room reading
}

// Decode reads one record.
func (r *Reader) Decode(data []byte) (Record, error) { return r.room.decode(r.Decoder, data) }

// reading is a coder with the room that most records need. As long as it stays within
// 512 bytes the allocator keeps no header for it.
type reading struct {
	coder
	few [20]member
}

func (r *reading) decode(d Decoder, data []byte) (Record, error) {
	if len(data) > MaxFrameBytes {
		return nil, &Error{CodeTooLarge, "", "a record has at most 1048576 bytes"}
	}
	if err := valid(data); err != nil {
		return nil, err
	}
	s := scanner{keeps: true, members: r.few[:0]}
	text := string(data)
	print := s.scan(text)
	if s.text[s.first()] != '{' {
		return nil, &Error{CodeUnknownRecord, "", "a JSON object is required"}
	}
	if s.size > MaxEventBytes {
		return nil, &Error{CodeTooLarge, "", "an event has at most 512000 bytes"}
	}
	if s.deepest > MaxDepth {
		return nil, &Error{CodeTooDeep, "", "values nest at most 64 deep"}
	}
	r.coder = coder{strict: d.Strict, code: CodeInvalidRecord, in: members{text: text, list: s.members}}
	rec, err := d.record(&r.coder, print)
	r.coder = coder{} // let go of the text
	if err != nil {
		return nil, err
	}
	return rec, nil
}

// first returns the place of the first byte that is not white space.
func (s *scanner) first() int {
	s.pos = 0
	s.space()
	return s.pos
}

// record reads the fields of a record.
func (d Decoder) record(c *coder, print uint64) (Record, *Error) {
	kind := c.take("type")
	if !isString(kind) {
		return nil, &Error{CodeUnknownRecord, "/type", "a string is required"}
	}
	t := Type(unquote(kind))
	s, known := registry[t]
	if !known && !isString(c.take("eventId")) {
		return nil, &Error{CodeUnknownRecord, "/type", "a type of narad/v1 is required"}
	}
	if !known && (t.Profile() == Core || !d.skips(t)) {
		return nil, &Error{CodeUnknownEvent, "/type", "a type of narad/v1 is required"}
	}
	if s.class == ClassAuthority && !isString(c.take("eventId")) {
		return nil, &Error{CodeUnknownRecord, "/eventId", "an authority event needs one"}
	}
	if !is(c.take("protocolVersion"), Version) {
		return nil, &Error{CodeUnsupported, "/protocolVersion", Version + " is required"}
	}
	return d.body(c, t, s, print)
}

// authorityFields are what no record of another class carries.
var authorityFields = []string{"eventId", "sessionSequence", "workflowSequence", "sequence", "revision"}

// skips reports whether a type belongs to a profile that was not negotiated.
func (d Decoder) skips(t Type) bool { return d.Without != 0 && t.Profile()&d.Without != 0 }

func (d Decoder) body(c *coder, t Type, s spec, print uint64) (Record, *Error) {
	var rec Record
	switch {
	case d.skips(t) && s.class != ClassWatch && s.class != ClassHydrate:
		rec, c.strict = &Skipped{Kind: t}, false
	default:
		rec = s.make()
	}
	switch s.class {
	case ClassControl:
		c.code = CodeInvalidControl
		c.forbid(CodeInvalidControl, "a control message carries no authority fields", authorityFields...)
	case ClassHydrate:
		c.code = CodeInvalidHydrate
	}
	rec.fields(c)
	if c.err != nil {
		return nil, c.err
	}
	keepExtra(rec, c, print)
	return rec, nil
}

// keepExtra stores the members that the type does not define, and the fingerprint.
func keepExtra(rec Record, c *coder, print uint64) {
	extra := c.rest()
	switch r := rec.(type) {
	case Authority:
		r.Envelope().Extra, r.Envelope().print = extra, print
	case *Revision:
		r.Extra, r.print = extra, print
	default:
		*extraOf(rec) = extra
	}
}

// extraOf returns the place of a hydrate record's or control message's additional
// fields.
func extraOf(rec Record) *[]Member {
	switch r := rec.(type) {
	case *MessagesSnapshot:
		return &r.Extra
	case *GraphSnapshot:
		return &r.Extra
	case *GraphDelta:
		return &r.Extra
	case *ClientAttached:
		return &r.Extra
	case *ClientHeartbeat:
		return &r.Extra
	case *ClientToolExecute:
		return &r.Extra
	case *ClientToolFinish:
		return &r.Extra
	case *ServerHeartbeat:
		return &r.Extra
	case *Revision:
		return &r.Extra
	}
	return &rec.(Authority).Envelope().Extra
}
