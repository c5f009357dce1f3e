package facts

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/mahati-host/mahati/narad"
)

// maxScope bounds the text of a scope, in bytes.
const maxScope = 1_024

// Scope is what an approval grants, as its request declares it: what the tool does and to
// what, such as "edit src/main.go"; for an interrupt that names neither the tool, else the
// interrupt's kind. It follows from the kind and the input of the interrupt, so that whoever
// decides it and names a scope can be held to it (R38).
func Scope(kind string, input narad.Raw) string {
	word := func(name string) string {
		if input == nil {
			return ""
		}
		s, _ := input.Field(name).IsString()
		return s
	}
	text := strings.TrimSpace(word("action") + " " + word("resource"))
	text = cmp.Or(text, word("toolName"), kind)
	if len(text) <= maxScope {
		return text
	}
	end := maxScope
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
