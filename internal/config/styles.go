package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The bounds of what agents are told of how to answer.
const (
	maxStyles    = 64
	maxStyleText = 16 << 10
)

var (
	styleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	modelName = regexp.MustCompile(`^[^\s/]{1,256}/\S{1,256}$`)
)

// styles reads the [narya.styles] table.
func (l *loader) styles(doc document, prefix string, raw any) {
	table, ok := raw.(map[string]any)
	if !ok {
		l.fail(doc.source(prefix), prefix, show(raw), "must be a table of styles, each with what its agent is told")
		return
	}
	if len(table) > maxStyles {
		l.fail(doc.source(prefix), prefix, "", fmt.Sprintf("must be at most %d styles", maxStyles))
		return
	}
	styles := make(map[string]string, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		key := join(prefix, name)
		text, isText := table[name].(string)
		switch {
		case !styleName.MatchString(name):
			l.fail(doc.source(key), key, "", "the name of a style "+agentRule)
		case !isText || text == "" || len(text) > maxStyleText:
			l.fail(doc.source(key), key, "", fmt.Sprintf("must be a text of 1 to %d bytes", maxStyleText))
		default:
			styles[name] = text
		}
	}
	l.config.Narya.Styles = styles
}

// checkModels returns what is wrong with the models of an agent, "" for nothing.
func checkModels(models, variants []string) (field, rule string) {
	odd := func(s string) bool { return !modelName.MatchString(s) || strings.ContainsFunc(s, unicode.IsControl) }
	noName := func(s string) bool { return !agentName.MatchString(s) }
	switch {
	case len(models) > maxListed:
		return "models", fmt.Sprintf("must have at most %d entries", maxListed)
	case slices.ContainsFunc(models, odd):
		return "models", `must hold models as "provider/model"`
	case len(variants) > maxListed || slices.ContainsFunc(variants, noName):
		return "variants", "must hold words; each " + agentRule
	case len(variants) > 0 && len(models) == 0:
		return "variants", "are those of models"
	}
	return "", ""
}
