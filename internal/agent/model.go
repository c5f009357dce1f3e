package agent

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxModelName bounds a provider's name, and a model's.
const maxModelName = 256

// ParseModel reads a model as it is written in configuration: provider/model. What follows
// the first slash is the model's name. The error says what holds for it.
func ParseModel(text string) (Model, error) {
	provider, id, ok := strings.Cut(text, "/")
	if !ok || !isModelName(provider) || !isModelName(id) {
		return Model{}, errors.New("must be provider/model, each of at most 256 bytes without spaces")
	}
	return Model{Provider: provider, ID: id}, nil
}

func isModelName(s string) bool {
	odd := func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) }
	return s != "" && len(s) <= maxModelName && utf8.ValidString(s) && !strings.ContainsFunc(s, odd)
}
