package sessiontest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Number is a JSON number as it was spelled.
type Number string

// object is a parsed JSON object. The other values are []any, string, bool, nil and
// [Number].
type object = map[string]any

// Parse reads one strict JSON value into objects, arrays, strings, booleans, nil and
// [Number].
func Parse(data []byte) (any, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	v, err := parse(dec)
	if err != nil {
		return nil, fmt.Errorf("parse JSON: %w", err)
	}
	return v, nil
}

func parse(dec *jsontext.Decoder) (any, error) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		return parseObject(dec)
	case '[':
		return parseArray(dec)
	case '"':
		return tok.String(), nil
	case '0':
		return Number(tok.String()), nil
	case 't', 'f':
		return tok.Bool(), nil
	default:
		return nil, nil
	}
}

func parseObject(dec *jsontext.Decoder) (any, error) {
	out := object{}
	for dec.PeekKind() != '}' {
		name, err := parse(dec)
		if err != nil {
			return nil, err
		}
		if out[name.(string)], err = parse(dec); err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return out, err
}

func parseArray(dec *jsontext.Decoder) (any, error) {
	out := []any{}
	for dec.PeekKind() != ']' {
		item, err := parse(dec)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	_, err := dec.ReadToken()
	return out, err
}

// decimal writes a number as sign, digits without outer zeros, and exponent, so that
// equal numbers are equal texts: 100, 1e2 and 100.0 are all "1e2".
func decimal(n Number) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	power, _ := strconv.Atoi(exponent)
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	power -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case negative:
		return "-" + short + "e" + strconv.Itoa(power)
	}
	return short + "e" + strconv.Itoa(power)
}

// same reports whether two values are the same JSON value, numbers by their exact
// decimal value.
func same(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, ok := b.(object)
		if !ok || len(a) != len(b) {
			return false
		}
		for name := range a {
			if other, has := b[name]; !has || !same(a[name], other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case Number:
		b, ok := b.(Number)
		return ok && decimal(a) == decimal(b)
	default:
		return a == b
	}
}

// integer reads a number that is whole, however it is spelled, and at most 2^53-1.
func integer(v any) (int64, bool) {
	n, ok := v.(Number)
	if !ok {
		return 0, false
	}
	d := decimal(n)
	if d == "0" {
		return 0, true
	}
	digits, exponent, _ := strings.Cut(d, "e")
	power, _ := strconv.Atoi(exponent)
	if power < 0 || power > 15 {
		return 0, false
	}
	i, err := strconv.ParseInt(digits+strings.Repeat("0", power), 10, 64)
	return i, err == nil && i <= 1<<53-1 && i >= -(1<<53-1)
}

// clone returns a value that shares nothing with v.
func clone(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for name, item := range v {
			out[name] = clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	default:
		return v
	}
}

func number(i int64) Number { return Number(strconv.FormatInt(i, 10)) }

// sortedKeys returns the names of a map in order, so that walks are repeatable.
func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
