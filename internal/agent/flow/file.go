package flow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// Error says what is wrong with a file, and where.
type Error struct {
	File    string
	Line    int
	Problem string
}

// Error returns file, line and problem.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem) }

const (
	maxValues    = 20_000
	maxDepth     = 60
	longestName  = 64
	longestText  = 8 << 10
	longestDelay = 30 * 24 * time.Hour
)

// reader reads a file into a definition. Its first error stands.
type reader struct {
	name   string
	err    *Error
	values int
	leads  []lead
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{r.name, n.Line, fmt.Sprintf(format, args...)}
	}
}

// parse reads the one YAML document of a file and bounds it.
func (r *reader) parse(file []byte) *yaml.Node {
	top := &yaml.Node{Line: 1}
	if len(file) > MaxFile || len(narad.Quote(string(file))) > MaxFile*3/2 {
		r.fail(top, "the file has more than %d bytes", MaxFile)
		return top
	}
	d := yaml.NewDecoder(bytes.NewReader(file))
	var doc, more yaml.Node
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.fail(top, "the file is empty")
		return top
	case err != nil:
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if n, err := fmt.Sscanf(text, "line %d:", &top.Line); n == 1 && err == nil {
			_, text, _ = strings.Cut(text, ": ")
		}
		r.fail(top, "%s", text)
		return top
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) || doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		r.fail(top, "the file must be one YAML document")
		return top
	}
	r.bound(&doc, 0)
	return doc.Content[0]
}

// bound refuses what could make a small file a large one.
func (r *reader) bound(n *yaml.Node, depth int) {
	r.values++
	switch {
	case r.err != nil:
		return
	case r.values > maxValues:
		r.fail(n, "the file has more than %d values", maxValues)
	case depth > maxDepth:
		r.fail(n, "the file nests deeper than %d", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "anchors and aliases are not allowed")
	}
	for _, inner := range n.Content {
		r.bound(inner, depth+1)
	}
}

// object is a mapping whose keys are taken one by one; what is left is unknown.
type object struct {
	r     *reader
	node  *yaml.Node
	what  string // how it is called in errors
	known []string
	left  map[string]*yaml.Node
}

// object reads a mapping with plain keys, each of which stands once.
func (r *reader) object(n *yaml.Node, what string) *object {
	o := &object{r: r, node: n, what: what, left: map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch _, twice := o.left[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "%s: a key must be a word", what)
		case twice:
			r.fail(key, "%s: %q stands twice", what, key.Value)
		}
		o.left[key.Value] = n.Content[i+1]
	}
	return o
}

// take returns the value of a key, nil if there is none.
func (o *object) take(key string) *yaml.Node {
	n := o.left[key]
	delete(o.left, key)
	o.known = append(o.known, key)
	return n
}

// close refuses the keys that nobody took.
func (o *object) close() {
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		if key := o.node.Content[i]; o.left[key.Value] != nil {
			o.r.fail(key, "%s: unknown key %q; known are %s", o.what, key.Value, strings.Join(o.known, ", "))
			return
		}
	}
}

// each calls read for each key of a mapping of names.
func (r *reader) each(n *yaml.Node, what string, most int, read func(name string, value *yaml.Node)) {
	r.object(n, what)
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*most {
		r.fail(n, "%s has more than %d entries", what, most)
	}
	for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
		read(r.word(n.Content[i], "a name in "+what), n.Content[i+1])
	}
}

// items reads a list.
func (r *reader) items(n *yaml.Node, what string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > most {
		r.fail(n, "%s must be a list of 1 to %d entries", what, most)
		return nil
	}
	return n.Content
}

// plain reads a scalar as its text.
func (r *reader) plain(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.fail(n, "%s must be text", what)
		return ""
	}
	return n.Value
}

// text reads an optional text of bounded length.
func (o *object) text(key string, most int) string {
	n := o.take(key)
	if n == nil {
		return ""
	}
	text := o.r.plain(n, o.what+": "+key)
	if len(text) > most {
		o.r.fail(n, "%s: %s is longer than %d bytes", o.what, key, most)
	}
	return text
}

// word reads an optional word that other places of the file refer to.
func (o *object) word(key string) string {
	n := o.take(key)
	if n == nil {
		return ""
	}
	return o.r.word(n, o.what+": "+key)
}

func (r *reader) word(n *yaml.Node, what string) string {
	word := r.plain(n, what)
	if !isName(word) {
		r.fail(n, "%s must be a word of a-z, 0-9, _ and -, beginning with a letter, of at most %d bytes", what, longestName)
	}
	return word
}

func isName(word string) bool {
	for i := range len(word) {
		switch c := word[i]; {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return word != "" && len(word) <= longestName
}

// choice reads an optional word out of a few; none means the first.
func (o *object) choice(key string, words ...string) string {
	n := o.take(key)
	if n == nil {
		return words[0]
	}
	word := o.r.plain(n, o.what+": "+key)
	if !slices.Contains(words, word) {
		o.r.fail(n, "%s: %s must be one of %s", o.what, key, strings.Join(words, ", "))
	}
	return word
}

// number reads an optional number.
func (o *object) number(key string, least, most, otherwise int) int {
	n := o.take(key)
	if n == nil {
		return otherwise
	}
	i, err := strconv.Atoi(o.r.plain(n, o.what+": "+key))
	if err != nil || i < least || i > most {
		o.r.fail(n, "%s: %s must be a number from %d to %d", o.what, key, least, most)
	}
	return i
}

func (o *object) yes(key string) bool { return o.choice(key, "false", "true") == "true" }

// duration reads an optional length of time.
func (o *object) duration(key string) time.Duration {
	n := o.take(key)
	if n == nil {
		return 0
	}
	d, err := time.ParseDuration(o.r.plain(n, o.what+": "+key))
	if err != nil || d <= 0 || d > longestDelay {
		o.r.fail(n, "%s: %s must be a time such as 30s or 1h30m, at most %s", o.what, key, longestDelay)
	}
	return d
}

// template reads an optional text with values of the data in it.
func (o *object) template(key string, most int) template {
	n := o.left[key]
	text := o.text(key, most)
	if n == nil {
		return nil
	}
	return o.r.template(n, o.what+": "+key, text)
}

func (r *reader) template(n *yaml.Node, what, text string) template {
	t, ok := parseTemplate(text)
	if !ok {
		r.fail(n, "%s: what stands after {{ is no pointer into the data; one looks like {{/input/task}}", what)
	}
	return t
}

// value reads a JSON value whose texts may have values of the data in them.
func (r *reader) value(n *yaml.Node, what string) value {
	switch n.Kind {
	case yaml.SequenceNode:
		v := value{list: []value{}}
		for _, item := range n.Content {
			v.list = append(v.list, r.value(item, what))
		}
		return v
	case yaml.MappingNode:
		v := value{fields: map[string]value{}}
		r.object(n, what)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v.fields[n.Content[i].Value] = r.value(n.Content[i+1], what)
		}
		return v
	}
	if raw := r.scalar(n, what); raw != nil {
		return value{raw: raw}
	}
	return value{text: r.template(n, what, n.Value)}
}

// constant reads a JSON value whose texts stand for themselves.
func (r *reader) constant(n *yaml.Node, what string) narad.Raw {
	if n.Kind == yaml.ScalarNode {
		if raw := r.scalar(n, what); raw != nil {
			return raw
		}
		return narad.Quote(n.Value)
	}
	filled, err := r.value(n, what).fill(data{})
	if err != nil {
		r.fail(n, "%s: a value here has nothing of the data in it", what)
	}
	return filled
}

// scalar reads a scalar that is no text, nil for one that is. A number that JSON can
// spell keeps its spelling.
func (r *reader) scalar(n *yaml.Node, what string) narad.Raw {
	switch n.ShortTag() {
	case "!!null":
		return narad.Raw("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			r.fail(n, "%s: %q is no truth", what, n.Value)
		}
		return strconv.AppendBool(nil, b)
	case "!!int", "!!float":
		if v := jsontext.Value(n.Value); v.IsValid() && v.Kind() == '0' {
			return narad.Raw(n.Value)
		}
		var f float64
		if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			r.fail(n, "%s: %q is no number of JSON", what, n.Value)
			return narad.Raw("0")
		}
		return strconv.AppendFloat(nil, f, 'f', -1, 64)
	}
	return nil
}
