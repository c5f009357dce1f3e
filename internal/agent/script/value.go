package script

import (
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// value is a JSON value of the file whose texts may hold variables.
type value struct {
	raw    narad.Raw // a number, true, false or null
	text   template
	list   []value
	object []field
	kind   yaml.Kind // ScalarNode, SequenceNode or MappingNode; 0 for no value
}

type field struct {
	name  string
	value value
}

// value reads an optional JSON value.
func (o *object) value(key string) value {
	n := o.take(key)
	if n == nil {
		return value{}
	}
	return o.r.value(n, o.what+": "+key)
}

func (r *reader) value(n *yaml.Node, what string) value {
	v := value{kind: n.Kind}
	switch n.Kind {
	case yaml.ScalarNode:
		r.scalar(n, what, &v)
	case yaml.SequenceNode:
		for _, item := range n.Content {
			v.list = append(v.list, r.value(item, what))
		}
	case yaml.MappingNode:
		o := r.object(n, what)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			v.object = append(v.object, field{key, r.value(n.Content[i+1], o.what+": "+key)})
		}
	}
	return v
}

// scalar reads a scalar. A number that JSON can spell keeps its spelling.
func (r *reader) scalar(n *yaml.Node, what string, v *value) {
	switch n.ShortTag() {
	case "!!null":
		v.raw = narad.Raw("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			r.fail(n, "%s: %q is no truth", what, n.Value)
		}
		v.raw = strconv.AppendBool(nil, b)
	case "!!int", "!!float":
		v.raw = r.literal(n, what)
	case "!!binary":
		r.fail(n, "%s: binary values have no place in JSON", what)
	default:
		v.text = r.template(n, what)
	}
}

func (r *reader) literal(n *yaml.Node, what string) narad.Raw {
	if spelled := jsontext.Value(n.Value); spelled.IsValid() && spelled.Kind() == '0' {
		return narad.Raw(n.Value)
	}
	var i int64
	if n.Decode(&i) == nil {
		return strconv.AppendInt(nil, i, 10)
	}
	var f float64
	if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return strconv.AppendFloat(nil, f, 'g', -1, 64)
	}
	r.fail(n, "%s: JSON has no number %q", what, n.Value)
	return nil
}

// fill returns the value's JSON, nil for no value.
func (v *value) fill(sc *scene, at spot) (narad.Raw, error) {
	if v.kind == 0 {
		return nil, nil
	}
	out, err := v.appendTo(nil, sc, at)
	return narad.Raw(out), err
}

// arguments is fill for a tool call, which has arguments if only empty ones.
func (v *value) arguments(sc *scene, at spot) (narad.Raw, error) {
	if v.kind == 0 {
		return narad.Raw("{}"), nil
	}
	return v.fill(sc, at)
}

func (v *value) appendTo(out []byte, sc *scene, at spot) ([]byte, error) {
	if len(out) > maxRendered {
		return nil, errTooLong
	}
	switch {
	case v.kind == yaml.SequenceNode:
		return v.appendList(out, sc, at)
	case v.kind == yaml.MappingNode:
		return v.appendObject(out, sc, at)
	case v.raw != nil:
		return append(out, v.raw...), nil
	}
	text, err := v.text.fill(sc, at)
	return append(out, narad.Quote(text)...), err
}

func (v *value) appendList(out []byte, sc *scene, at spot) ([]byte, error) {
	out = append(out, '[')
	var err error
	for i := range v.list {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = v.list[i].appendTo(out, sc, at); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func (v *value) appendObject(out []byte, sc *scene, at spot) ([]byte, error) {
	out = append(out, '{')
	var err error
	for i := range v.object {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, narad.Quote(v.object[i].name)...), ':')
		if out, err = v.object[i].value.appendTo(out, sc, at); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}
