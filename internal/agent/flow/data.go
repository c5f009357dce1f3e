package flow

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// data is the working data: values by their names.
type data map[string]narad.Raw

// size is what the data counts against its bound.
func (d data) size() int {
	n := 0
	for name, value := range d {
		n += len(name) + len(value) + 4
	}
	return n
}

// all returns the data as one JSON object, in the order of the names.
func (d data) all() narad.Raw {
	out, err := json.Marshal(map[string]narad.Raw(d), json.Deterministic(true))
	if err != nil {
		return narad.Raw("{}") // values are JSON: they came from facts or from the file
	}
	return out
}

// at returns the value that a JSON pointer (RFC 6901) names, nil if nothing is there.
func (d data) at(pointer string) narad.Raw {
	if pointer == "" {
		return d.all()
	}
	parts := strings.Split(pointer[1:], "/")
	v := d[unescape(parts[0])]
	for _, part := range parts[1:] {
		if v == nil {
			return nil
		}
		v = child(v, unescape(part))
	}
	return v
}

func child(v narad.Raw, name string) narad.Raw {
	list, ok := v.Elements()
	if !ok {
		return v.Field(name)
	}
	i, err := strconv.ParseUint(name, 10, 31)
	if err != nil || int(i) >= len(list) || strconv.FormatUint(i, 10) != name {
		return nil
	}
	return list[i]
}

var escapes = strings.NewReplacer("~1", "/", "~0", "~")

func unescape(part string) string { return escapes.Replace(part) }

// isPointer reports whether a text is a JSON pointer.
func isPointer(text string) bool {
	if text == "" {
		return true
	}
	rest := strings.ReplaceAll(strings.ReplaceAll(text, "~0", ""), "~1", "")
	return text[0] == '/' && !strings.Contains(rest, "~")
}

// same reports whether two values are the same JSON, however they are spelled.
func same(a, b narad.Raw) bool {
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}

func numberOf(v narad.Raw) (float64, bool) {
	if jsontext.Value(v).Kind() != '0' {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(string(v)), 64)
	return n, err == nil
}
