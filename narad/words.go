package narad

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// words visits an array of non-empty strings.
func (c *coder) words(name string, p *[]string, r words) {
	if c.writes(name) {
		if c.mode == schema {
			c.describes(name, r.form(), need(r.required))
			return
		}
		if *p == nil && !r.required {
			return
		}
		if rule := r.check(*p); rule != "" {
			c.fail(name, rule)
			return
		}
		c.put(name)
		c.out = appendWords(c.out, *p)
		return
	}
	value := c.take(name)
	if value == "" && !r.required {
		return
	}
	items, ok := elements(value)
	if !ok {
		c.unusable(name, "an array of strings is required", need(r.required))
		return
	}
	list := make([]string, len(items))
	for i, item := range items {
		switch {
		case isString(item):
			list[i] = unquote(item)
		case c.strict:
			c.failItem(name, i, "a string is required")
			return
		default:
			list[i] = item
		}
	}
	if rule := r.check(list); rule != "" && (c.strict || r.required && len(list) == 0) {
		c.fail(name, rule)
		return
	}
	*p = list
}

// words is the rule of an array of strings.
type words struct {
	required bool // it must be present and not empty
	unique   bool // no string twice
}

func (r words) check(list []string) string {
	if r.required && len(list) == 0 {
		return "at least one string is required"
	}
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if s == "" || !utf8.ValidString(s) {
			return "the strings must be non-empty UTF-8"
		}
		if r.unique && seen[s] {
			return "the strings must differ"
		}
		seen[s] = true
	}
	return ""
}

func appendWords(out []byte, list []string) []byte {
	out = append(out, '[')
	for i, s := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, s)
	}
	return append(out, ']')
}
