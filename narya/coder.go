package narya

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// object is a thing whose fields a coder can visit.
type object interface{ fields(c *coder) }

// A coder visits the fields of an object, which each type lists once in its fields
// method: it takes them from the members of a decoded object, or checks and writes them.
// So a field that is read is a field that is written, under the same rule.
type coder struct {
	writing bool
	path    string         // of the object, a JSON Pointer
	in      []narad.Member // reading: the object
	out     []byte         // writing: the text so far, without the closing brace
	err     *Invalid       // the first refusal, which later ones do not replace
}

// need says whether a field may be absent.
type need bool

const (
	required need = true
	optional need = false
)

func (c *coder) fail(name, rule string) {
	if c.err == nil {
		c.err = &Invalid{InvalidField, pointer(c.path, name), rule}
	}
}

// take returns the value of a member; false where it is absent, which is a refusal if it
// is required.
func (c *coder) take(name string, n need) (narad.Raw, bool) {
	for _, m := range c.in {
		if m.Name == name {
			return m.Value, true
		}
	}
	if n == required {
		c.fail(name, "the field is required")
	}
	return nil, false
}

// put starts a member.
func (c *coder) put(name string) {
	if c.out[len(c.out)-1] != '{' {
		c.out = append(c.out, ',')
	}
	c.out = append(c.out, '"')
	c.out = append(c.out, name...)
	c.out = append(c.out, '"', ':')
}

// rule says what is wrong with a text, "" for nothing.
type rule func(string) string

// text visits a string. An optional one that is empty is absent.
func (c *coder) text(name string, p *string, n need, rules ...rule) {
	if !c.writing {
		value, present := c.take(name, n)
		if !present {
			return
		}
		s, ok := value.IsString()
		if !ok {
			c.fail(name, "a string is required")
			return
		}
		*p = s
		c.obey(name, s, rules)
		return
	}
	if *p == "" && n == optional {
		return
	}
	c.obey(name, *p, rules)
	if c.err == nil {
		c.put(name)
		c.out, _ = jsontext.AppendQuote(c.out, *p)
	}
}

func (c *coder) obey(name, s string, rules []rule) {
	if !utf8.ValidString(s) {
		c.fail(name, "UTF-8 is required")
	}
	for _, r := range rules {
		if broken := r(s); broken != "" {
			c.fail(name, broken)
		}
	}
}

// atMost bounds a text in characters.
func atMost(n int) rule {
	return func(s string) string {
		if len(s) > n && utf8.RuneCountInString(s) > n {
			return "at most " + strconv.Itoa(n) + " characters are allowed"
		}
		return ""
	}
}

func (c *coder) uuid(name string, p *string, n need) { c.text(name, p, n, aUUID) }

func (c *coder) time(name string, p *string, n need) { c.text(name, p, n, aTime) }

func aUUID(s string) string {
	if !isUUID(s) {
		return "a UUID is required"
	}
	return ""
}

func aTime(s string) string {
	if !isTime(s) {
		return "an RFC 3339 time is required"
	}
	return ""
}

// word visits a word of a closed list.
func word[T ~string](c *coder, name string, p *T, words []T, n need) {
	text := string(*p)
	c.text(name, &text, n, func(s string) string {
		if !slices.Contains(words, T(s)) {
			return "one of the contract's words is required"
		}
		return ""
	})
	*p = T(text)
}

// integer visits a required whole number.
func (c *coder) integer(name string, p *int64, least int64) {
	if c.writing {
		c.putInteger(name, *p, least)
		return
	}
	if value, present := c.take(name, required); present {
		*p = c.whole(name, value, least)
	}
}

// maybeInteger visits an optional one.
func (c *coder) maybeInteger(name string, p **int64, least int64) {
	if c.writing {
		if *p != nil {
			c.putInteger(name, **p, least)
		}
		return
	}
	if value, present := c.take(name, optional); present {
		n := c.whole(name, value, least)
		*p = &n
	}
}

func (c *coder) putInteger(name string, n, least int64) {
	if n < least {
		c.fail(name, "at least "+strconv.FormatInt(least, 10)+" is required")
		return
	}
	c.put(name)
	c.out = strconv.AppendInt(c.out, n, 10)
}

// whole reads a whole number, however it is spelled: 10, 10.0 and 1e1.
func (c *coder) whole(name string, value narad.Raw, least int64) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(value), 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > narad.MaxInteger {
			c.fail(name, "a whole number of at most 64 bits is required")
			return 0
		}
		n = int64(f)
	}
	if n < least {
		c.fail(name, "at least "+strconv.FormatInt(least, 10)+" is required")
	}
	return n
}

// anyInteger is the bound of a whole number without one.
const anyInteger = math.MinInt64

// amount visits a required number that is not negative.
func (c *coder) amount(name string, p *float64) {
	if c.writing {
		c.putAmount(name, *p)
		return
	}
	if value, present := c.take(name, required); present {
		*p = c.number(name, value)
	}
}

// maybeAmount visits an optional one.
func (c *coder) maybeAmount(name string, p **float64) {
	if c.writing {
		if *p != nil {
			c.putAmount(name, **p)
		}
		return
	}
	if value, present := c.take(name, optional); present {
		n := c.number(name, value)
		*p = &n
	}
}

func (c *coder) putAmount(name string, n float64) {
	if !(n >= 0) || math.IsInf(n, 1) {
		c.fail(name, "a number that is not negative is required")
		return
	}
	c.put(name)
	c.out = append(c.out, jsontext.Float(math.Abs(n)).String()...) // never -0
}

func (c *coder) number(name string, value narad.Raw) float64 {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(n >= 0) {
		c.fail(name, "a number that is not negative is required")
		return 0
	}
	return math.Abs(n)
}

// flag visits a truth value of which absent means false.
func (c *coder) flag(name string, p *bool) {
	if c.writing && !*p {
		return
	}
	set := p
	c.maybeFlag(name, &set)
	*p = *set
}

// maybeFlag visits an optional truth value.
func (c *coder) maybeFlag(name string, p **bool) {
	if c.writing {
		if *p != nil {
			c.put(name)
			c.out = strconv.AppendBool(c.out, **p)
		}
		return
	}
	value, present := c.take(name, optional)
	if !present {
		return
	}
	truth := string(value) == "true"
	if !truth && string(value) != "false" {
		c.fail(name, "true or false is required")
	}
	*p = &truth
}

// toggle visits a required truth value.
func (c *coder) toggle(name string, p *bool) {
	set := p
	if !c.writing {
		c.take(name, required)
	}
	c.maybeFlag(name, &set)
	*p = *set
}

// free visits an optional object of free form, whose bytes are kept.
func (c *coder) free(name string, p *narad.Raw) {
	if !c.writing {
		value, present := c.take(name, optional)
		if present && !isObject(value) {
			c.fail(name, "an object is required")
		}
		*p = slices.Clone(value)
		return
	}
	if *p == nil {
		return
	}
	if !isObject(*p) || !jsontext.Value(*p).IsValid() {
		c.fail(name, "an object is required")
		return
	}
	c.put(name)
	c.out = appendLine(c.out, *p)
}

func isObject(value narad.Raw) bool { return len(value) > 0 && value[0] == '{' }

// appendLine adds a value without line breaks, so that an event is one line of a stream.
func appendLine(out []byte, value narad.Raw) []byte {
	if !strings.ContainsAny(string(value), "\r\n") {
		return append(out, value...)
	}
	line := slices.Clone(jsontext.Value(value))
	_ = line.Compact() // it is valid
	return append(out, line...)
}

// texts visits an array of strings.
func (c *coder) texts(name string, p *[]string) {
	elements(c, name, p, required, 0, func(c *coder, name string, s *string) { c.item(name, s) })
}

// item visits a string that is an element.
func (c *coder) item(name string, s *string) {
	if c.writing {
		if !utf8.ValidString(*s) {
			c.fail(name, "UTF-8 is required")
		}
		c.out, _ = jsontext.AppendQuote(c.out, *s)
		return
	}
	value, _ := c.take(name, required)
	text, ok := value.IsString()
	if !ok {
		c.fail(name, "a string is required")
	}
	*s = text
}

// list visits an array of objects, of at most so many; 0 is no bound.
func list[T any, P interface {
	*T
	object
}](c *coder, name string, p *[]T, n need, most int) {
	elements(c, name, p, n, most, func(c *coder, name string, v *T) { c.nested(name, P(v)) })
}

// elements visits an array. Each element is visited as the member of an object, named by
// its place. A required array that is nil is written empty.
func elements[T any](c *coder, name string, p *[]T, n need, most int, visit func(*coder, string, *T)) {
	inner := &coder{writing: c.writing, path: pointer(c.path, name)}
	if !c.writing {
		value, present := c.take(name, n)
		if !present {
			return
		}
		items, ok := value.Elements()
		if !ok {
			c.fail(name, "an array is required")
			return
		}
		*p = make([]T, len(items))
		for i, item := range items {
			at := strconv.Itoa(i)
			inner.in = []narad.Member{{Name: at, Value: item}}
			visit(inner, at, &(*p)[i])
		}
	} else {
		if *p == nil && n == optional {
			return
		}
		c.put(name)
		inner.out = append(c.out, '[')
		for i := range *p {
			if i > 0 {
				inner.out = append(inner.out, ',')
			}
			visit(inner, strconv.Itoa(i), &(*p)[i])
		}
		c.out = append(inner.out, ']')
	}
	if c.err == nil {
		c.err = inner.err
	}
	if most > 0 && len(*p) > most {
		c.fail(name, "at most "+strconv.Itoa(most)+" elements are allowed")
	}
}

// part visits a required object.
func (c *coder) part(name string, o object) {
	if c.writing {
		c.put(name)
	} else if _, present := c.take(name, required); !present {
		return
	}
	c.nested(name, o)
}

// maybe visits an optional object.
func maybe[T any, P interface {
	*T
	object
}](c *coder, name string, p **T) {
	if c.writing {
		if *p != nil {
			c.part(name, P(*p))
		}
		return
	}
	if _, present := c.take(name, optional); present {
		*p = new(T)
		c.nested(name, P(*p))
	}
}

// nested visits the fields of an object inside this one.
func (c *coder) nested(name string, o object) {
	inner := &coder{writing: c.writing, path: pointer(c.path, name)}
	if c.writing {
		inner.out = append(c.out, '{')
		o.fields(inner)
		c.out = append(inner.out, '}')
	} else {
		value, _ := c.take(name, required)
		members, ok := value.Members()
		if !ok {
			c.fail(name, "an object is required")
			return
		}
		inner.in = members
		o.fields(inner)
	}
	if c.err == nil {
		c.err = inner.err
	}
}
