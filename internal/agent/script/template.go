package script

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxRendered bounds a text after its variables were filled in.
const maxRendered = 4 << 20

var errTooLong = errors.New("a text is too long when its variables are filled in")

// template is text with variables: texts at even places, variables at odd ones.
type template []string

// variable matches {{name}}; names have at most two parts.
var variable = regexp.MustCompile(`\{\{ *([a-z][a-z0-9_-]*(?:\.[a-z]+)?) *\}\}`)

// fields are what a named step leaves behind.
var fields = []string{"decision", "reason", "answer", "outcome", "code"}

// template reads text with variables.
func (r *reader) template(n *yaml.Node, what string) template {
	text := r.plain(n, what)
	var t template
	last := 0
	for _, at := range variable.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		r.uses(n, what, name)
		t = append(t, text[last:at[0]], name)
		last = at[1]
	}
	if rest := text[last:]; strings.Contains(rest, "{{") || slices.ContainsFunc(t, unread) {
		r.fail(n, "%s: what stands after {{ is no variable; a variable looks like {{prompt}} or {{name.decision}}", what)
	}
	return append(t, text[last:])
}

func unread(part string) bool { return strings.Contains(part, "{{") }

// template reads an optional text with variables.
func (o *object) template(key string) template {
	n := o.take(key)
	if n == nil {
		return nil
	}
	return o.r.template(n, o.what+": "+key)
}

// uses notes that a variable is used, and refuses one that cannot be.
func (r *reader) uses(n *yaml.Node, what, name string) {
	step, field, named := strings.Cut(name, ".")
	switch {
	case !named && name == "turn":
		r.script.counts = true
	case !named && (name == "prompt" || name == "from" || name == "round" || slices.Contains(settings, name)):
	case named && slices.Contains(fields, field):
		r.used = append(r.used, use{n, step})
	default:
		r.fail(n, "%s: unknown variable %q; known are prompt, from, turn, round, %s, and NAME.%s",
			what, name, strings.Join(settings, ", "), strings.Join(fields, ", NAME."))
	}
}

// fill returns the text with its variables filled in.
func (t template) fill(sc *scene, at spot) (string, error) {
	var out strings.Builder
	for i, part := range t {
		if i%2 == 1 {
			part = sc.variable(part, at)
		}
		if out.Len()+len(part) > maxRendered {
			return "", errTooLong
		}
		out.WriteString(part)
	}
	return strings.ToValidUTF8(out.String(), "\uFFFD"), nil
}

func (sc *scene) variable(name string, at spot) string {
	switch name {
	case "prompt":
		return sc.h.Info().Prompt.Content
	case "from":
		if sc.play.from == nil {
			return ""
		}
		return sc.play.from.Name
	case "turn":
		return strconv.Itoa(sc.play.turn)
	case "round":
		return strconv.Itoa(at.round)
	}
	if slices.Contains(settings, name) {
		return sc.play.chosen(name)
	}
	step, field, _ := strings.Cut(name, ".")
	return sc.play.vars.get(step).field(field)
}

// fills fills several templates in.
func (sc *scene) fills(at spot, to map[*string]template) error {
	for p, t := range to {
		text, err := t.fill(sc, at)
		if err != nil {
			return err
		}
		*p = text
	}
	return nil
}

// filler returns so many bytes of numbered lines.
func filler(n int) string {
	var out strings.Builder
	for line := 1; out.Len() < n; line++ {
		fmt.Fprintf(&out, "line %d of a long text that nobody needs to read\n", line)
	}
	return out.String()[:n]
}
