package narad

// members is a JSON object taken apart. It says where each name and value stands in
// the text, and holds no strings of its own: the list of an event is small, and the
// garbage collector has nothing to follow in it.
type members struct {
	text string
	list []member
	next int // where the next search begins: a host writes fields in the order of the visits
}

// member is one field of an object, as places in its text.
type member struct {
	name    span // what stands between the quotes
	value   span
	escaped bool // the name is spelled with escapes
	used    bool // a visit took the field
}

// span is a part of a text, from a byte up to another one.
type span struct{ from, to uint32 }

// maxText bounds the text that spans reach. Records are far smaller.
const maxText = 1<<32 - 1

func (s span) of(text string) string { return text[s.from:s.to] }

// membersOf takes a valid JSON object apart; false if the value is none.
func membersOf(value string) (members, bool) {
	if value == "" || value[0] != '{' || uint64(len(value)) > maxText {
		return members{}, false
	}
	s := scanner{keeps: true}
	s.scan(value)
	return members{text: value, list: s.members}, true
}

// find returns the place of a member in the list, or -1.
func (m *members) find(name string) int {
	i := m.next
	for range m.list {
		if i == len(m.list) {
			i = 0
		}
		f := &m.list[i]
		if (int(f.name.to-f.name.from) == len(name) || f.escaped) && m.name(*f) == name {
			m.next = i + 1
			return i
		}
		i++
	}
	return -1
}

// name returns the decoded name of a member of the list.
func (m *members) name(f member) string {
	if f.escaped {
		return unquote(m.text[f.name.from-1 : f.name.to+1])
	}
	return f.name.of(m.text)
}

func (m *members) value(f member) string { return f.value.of(m.text) }

// elements splits a valid JSON array; false if the value is none.
func elements(value string) ([]string, bool) {
	if value == "" || value[0] != '[' {
		return nil, false
	}
	s := scanner{text: value}
	var list []string
	for more := s.open(']'); more; more = s.next(']') {
		start := s.pos
		s.value(1)
		list = append(list, value[start:s.pos])
	}
	return list, true
}
