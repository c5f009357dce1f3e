package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// object is a mapping of the file whose keys are taken one by one; what is left is
// unknown.
type object struct {
	r    *reader
	node *yaml.Node
	what string // how it is called in errors
	left map[string]*yaml.Node
}

// object reads a mapping with plain keys, each of which stands once.
func (r *reader) object(n *yaml.Node, what string) *object {
	o := &object{r, n, what, map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s must be a mapping", what)
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch _, twice := o.left[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "%s: a key must be a word", what)
		case twice:
			r.fail(key, "%s: %q stands twice", what, key.Value)
		}
		o.left[key.Value] = value
	}
	return o
}

// take returns the value of a key, nil if there is none.
func (o *object) take(key string) *yaml.Node {
	n := o.left[key]
	delete(o.left, key)
	return n
}

// close refuses the keys that nobody took.
func (o *object) close(known ...string) {
	if len(o.left) == 0 || o.r.err != nil {
		return
	}
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		if key := o.node.Content[i]; o.left[key.Value] != nil {
			o.r.fail(key, "%s: unknown key %q%s", o.what, key.Value, naming(known))
			return
		}
	}
}

// naming names what is known, where that helps.
func naming(known []string) string {
	if len(known) == 0 {
		return ""
	}
	return "; known are " + strings.Join(known, ", ")
}

// items reads a list.
func (r *reader) items(n *yaml.Node, what string, most int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s must be a list", what)
		return nil
	}
	if len(n.Content) > most {
		r.fail(n, "%s has more than %d entries", what, most)
		return nil
	}
	return n.Content
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// plain reads a scalar as its text.
func (r *reader) plain(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || isNull(n) {
		r.fail(n, "%s must be text", what)
		return ""
	}
	return n.Value
}

// plain reads an optional text.
func (o *object) plain(key string) string {
	n := o.take(key)
	if n == nil {
		return ""
	}
	return o.r.plain(n, o.what+": "+key)
}

// name reads an optional word that other places of the file refer to, or that
// becomes a part of a path.
func (o *object) name(key string) string {
	n := o.take(key)
	if n == nil {
		return ""
	}
	return o.r.name(n, o.what+": "+key)
}

const longestName = 64

func (r *reader) name(n *yaml.Node, what string) string {
	word := r.plain(n, what)
	if !isName(word) && r.err == nil {
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

// word reads an optional word out of a few; none means the first.
func (o *object) word(key string, choices ...string) string {
	n := o.take(key)
	if n == nil {
		return choices[0]
	}
	word := o.r.plain(n, o.what+": "+key)
	if !slices.Contains(choices, word) && o.r.err == nil {
		o.r.fail(n, "%s: %s must be one of %s", o.what, key, strings.Join(choices, ", "))
	}
	return word
}

// number reads an optional count.
func (o *object) number(key string, most int) int {
	n := o.take(key)
	if n == nil {
		return 0
	}
	return o.r.number(n, o.what+": "+key, 0, most)
}

func (r *reader) number(n *yaml.Node, what string, least, most int) int {
	i, err := strconv.Atoi(r.plain(n, what))
	if (err != nil || i < least || i > most) && r.err == nil {
		r.fail(n, "%s must be a number from %d to %d", what, least, most)
	}
	return i
}

// yes reads an optional truth.
func (o *object) yes(key string) bool {
	n := o.take(key)
	if n == nil {
		return false
	}
	yes, err := strconv.ParseBool(o.r.plain(n, o.what+": "+key))
	if err != nil && o.r.err == nil {
		o.r.fail(n, "%s: %s must be true or false", o.what, key)
	}
	return yes
}

const longestDelay = 24 * time.Hour

// duration reads an optional length of time.
func (o *object) duration(key string) time.Duration {
	n := o.take(key)
	if n == nil {
		return 0
	}
	return o.r.duration(n, o.what+": "+key)
}

func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	d, err := time.ParseDuration(r.plain(n, what))
	if (err != nil || d < 0 || d > longestDelay) && r.err == nil {
		r.fail(n, "%s must be a time such as 200ms or 1m30s, at most %s", what, longestDelay)
	}
	return d
}
