package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// A document is a parsed file: its values, and the line each key stands on.
type document struct {
	path  string
	tree  map[string]any
	lines map[string]int // by dotted key, entries of arrays of tables by index
}

func parseDocument(path string, data []byte) (document, error) {
	doc := document{path: path, lines: make(map[string]int)}
	if err := toml.Unmarshal(data, &doc.tree); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, _ := bad.Position()
			return document{}, fmt.Errorf("%s:%d: %w", path, line, err)
		}
		return document{}, fmt.Errorf("%s: %w", path, err)
	}
	doc.index(data)
	return doc, nil
}

// source is the file and line of a key, or of the nearest table around it.
func (d document) source(key string) string {
	for {
		if line, ok := d.lines[key]; ok {
			return fmt.Sprintf("%s:%d", d.path, line)
		}
		dot := strings.LastIndexByte(key, '.')
		if dot < 0 {
			return d.path
		}
		key = key[:dot]
	}
}

// index notes the lines. The decoder keeps no positions, so the file, which is
// small and known to be well formed, is walked once more.
func (d document) index(data []byte) {
	var parser unstable.Parser
	parser.Reset(data)
	walk := lineWalk{parser: &parser, data: data, lines: d.lines, line: 1}
	table := ""
	entries := make(map[string]int)
	for parser.NextExpression() {
		expression := parser.Expression()
		switch expression.Kind {
		case unstable.Table:
			table = walk.note("", expression)
		case unstable.ArrayTable:
			name := walk.note("", expression)
			table = entryKey(name, entries[name])
			d.lines[table] = walk.line
			entries[name]++
		case unstable.KeyValue:
			walk.keyValue(table, expression)
		}
	}
}

func entryKey(array string, i int) string { return fmt.Sprintf("%s[%d]", array, i) }

type lineWalk struct {
	parser *unstable.Parser
	data   []byte
	lines  map[string]int
	line   int // of the latest key
	offset int // that line is known up to
}

// note records the line of a key below prefix, and returns the whole key.
func (w *lineWalk) note(prefix string, node *unstable.Node) string {
	key := prefix
	for it := node.Key(); it.Next(); {
		part := it.Node()
		key = join(key, string(part.Data))
		w.advance(int(part.Raw.Offset))
		if _, seen := w.lines[key]; !seen {
			w.lines[key] = w.line
		}
	}
	return key
}

func (w *lineWalk) keyValue(prefix string, node *unstable.Node) {
	key := w.note(prefix, node)
	if value := node.Value(); value.Kind == unstable.InlineTable {
		for it := value.Children(); it.Next(); {
			w.keyValue(key, it.Node())
		}
	}
}

// advance counts lines up to an offset. Keys come in order.
func (w *lineWalk) advance(offset int) {
	for ; w.offset < offset && w.offset < len(w.data); w.offset++ {
		if w.data[w.offset] == '\n' {
			w.line++
		}
	}
}

func join(prefix, key string) string {
	if prefix == "" {
		return key
	}
	return prefix + "." + key
}

// document takes over what a file says.
func (l *loader) document(doc document) {
	l.table(doc, "", doc.tree)
}

// table goes through one table of settings.
func (l *loader) table(doc document, prefix string, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key, raw := join(prefix, name), values[name]
		if s, ok := l.find(key); ok {
			l.fromFile(doc, s, raw)
			continue
		}
		sub, isTable := raw.(map[string]any)
		switch {
		case key == "policy":
			l.policy(doc, raw)
		case key == "harness" && isTable:
			l.harness(doc, sub)
		case key == "narya.styles":
			l.styles(doc, key, raw)
		case prefix == "agents" && isTable:
			l.agent(doc, name, sub)
		case key == "home":
			l.fail(doc.source(key), key, "", "the file lies in the home, so it cannot name it; use --home or MAHATI_HOME")
		case isTable && l.hasSection(key):
			l.table(doc, key, sub)
		default:
			l.fail(doc.source(key), key, "", "there is no such setting")
		}
	}
}

func (l *loader) hasSection(name string) bool {
	return slices.ContainsFunc(l.settings, func(s setting) bool { return strings.HasPrefix(s.key, name+".") })
}

func (l *loader) fromFile(doc document, s setting, raw any) {
	source := doc.source(s.key)
	if err := s.value.setTOML(raw); err != nil {
		l.fail(source, s.key, show(raw), err.Error())
		return
	}
	l.sources[s.key] = source
}

// show is a value as people wrote it, near enough.
func show(raw any) string {
	switch v := raw.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		if items, ok := stringsOf(v); ok {
			return quoteAll(items)
		}
		return "[...]"
	case map[string]any:
		return "{...}"
	}
	return fmt.Sprint(raw)
}
