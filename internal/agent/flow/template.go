package flow

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// template is text with values of the data in it: texts at even places, pointers at odd
// ones.
type template []string

// variable matches {{/pointer}}.
var variable = regexp.MustCompile(`\{\{ *(/[^{}]*?) *\}\}`)

// parseTemplate reads a template; false if something after {{ is no pointer.
func parseTemplate(text string) (template, bool) {
	var t template
	last := 0
	for _, at := range variable.FindAllStringSubmatchIndex(text, -1) {
		t = append(t, text[last:at[0]], text[at[2]:at[3]])
		last = at[1]
	}
	t = append(t, text[last:])
	for i, part := range t {
		if i%2 == 0 && strings.Contains(part, "{{") || i%2 == 1 && !isPointer(part) {
			return nil, false
		}
	}
	return t, true
}

// missing is a value that a template names and the data does not have.
type missing struct{ pointer string }

func (m missing) Error() string { return "nothing stands at " + m.pointer + " of the data" }

// fill puts the values in. An error says what is missing, or that the text is too long.
func (t template) fill(d data) (string, error) {
	var b strings.Builder
	for i, part := range t {
		if i%2 == 1 {
			v := d.at(part)
			if v == nil {
				return "", missing{part}
			}
			part = plain(v)
		}
		if b.WriteString(part); b.Len() > maxPrompt {
			return "", fmt.Errorf("the text is longer than %d bytes", maxPrompt)
		}
	}
	return b.String(), nil
}

// plain is a value as it stands in a text.
func plain(v narad.Raw) string {
	if text, ok := v.IsString(); ok {
		return text
	}
	return string(v)
}

// value is a JSON value of the file whose texts may have values of the data in them. A
// text that is nothing but one pointer is that value itself.
type value struct {
	raw    narad.Raw // a number, true, false or null
	text   template
	list   []value
	fields map[string]value
}

// given reports whether the file gives the value.
func (v value) given() bool { return v.raw != nil || v.text != nil || v.list != nil || v.fields != nil }

func (v value) fill(d data) (narad.Raw, error) {
	switch {
	case v.raw != nil:
		return v.raw, nil
	case v.list != nil:
		return v.fillList(d)
	case v.fields != nil:
		return v.fillFields(d)
	case len(v.text) == 3 && v.text[0] == "" && v.text[2] == "":
		if is := d.at(v.text[1]); is != nil {
			return is, nil
		}
		return nil, missing{v.text[1]}
	}
	text, err := v.text.fill(d)
	return narad.Quote(text), err
}

func (v value) fillList(d data) (narad.Raw, error) {
	out := narad.Raw{'['}
	for i, item := range v.list {
		is, err := item.fill(d)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, is...)
		if len(out) > MaxData {
			return nil, errTooLarge
		}
	}
	return append(out, ']'), nil
}

func (v value) fillFields(d data) (narad.Raw, error) {
	filled := data{}
	for name, field := range v.fields {
		is, err := field.fill(d)
		if err != nil {
			return nil, err
		}
		filled[name] = is
		if filled.size() > MaxData {
			return nil, errTooLarge
		}
	}
	return filled.all(), nil
}

var errTooLarge = fmt.Errorf("the data is larger than %d bytes", MaxData)
