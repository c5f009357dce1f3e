package sessiontest

import (
	"slices"
	"strconv"
	"strings"
)

// Codes of a patch that cannot be applied.
const (
	invalidPatch = "invalid_patch"
	unsafePatch  = "unsafe_patch_path"
)

// patched returns doc changed by a JSON Patch (RFC 6902), or the code of its refusal.
// It works on a copy, so a refused patch changes nothing.
func patched(doc, patch any) (result any, code string) {
	operations, ok := patch.([]any)
	if !ok || len(operations) == 0 {
		return nil, invalidPatch
	}
	for _, op := range operations { // the whole patch must be sound before any of it runs
		if code := unsound(op); code != "" {
			return nil, code
		}
	}
	doc = clone(doc)
	for _, op := range operations {
		if doc, ok = operate(doc, op.(object)); !ok {
			return nil, invalidPatch
		}
	}
	return doc, ""
}

// unsound returns the code of what is wrong with the form of an operation.
func unsound(op any) string {
	o, _ := op.(object)
	name, _ := o["op"].(string)
	if !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, name) {
		return invalidPatch
	}
	if code := unsoundPointer(o, "path"); code != "" {
		return code
	}
	if name == "move" || name == "copy" {
		return unsoundPointer(o, "from")
	}
	if _, has := o["value"]; !has && name != "remove" {
		return invalidPatch
	}
	return ""
}

func unsoundPointer(o object, name string) string {
	pointer, ok := o[name].(string)
	if !ok {
		return invalidPatch
	}
	if !strings.HasPrefix(pointer, "/") {
		return unsafePatch
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		rest := strings.ReplaceAll(strings.ReplaceAll(token, "~0", ""), "~1", "")
		if strings.Contains(rest, "~") {
			return invalidPatch
		}
		switch unescape(token) {
		case "__proto__", "constructor", "prototype":
			return unsafePatch
		}
	}
	return ""
}

func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// tokens splits a JSON Pointer.
func tokens(pointer any) []string {
	list := strings.Split(pointer.(string)[1:], "/")
	for i := range list {
		list[i] = unescape(list[i])
	}
	return list
}

func operate(doc any, o object) (any, bool) {
	path := tokens(o["path"])
	switch o["op"] {
	case "add":
		return add(doc, path, clone(o["value"]))
	case "remove":
		return remove(doc, path)
	case "replace":
		if _, ok := at(doc, path); !ok {
			return nil, false
		}
		return put(doc, path, clone(o["value"]))
	case "copy":
		value, ok := at(doc, tokens(o["from"]))
		if !ok {
			return nil, false
		}
		return add(doc, path, clone(value))
	case "move":
		return move(doc, tokens(o["from"]), path)
	default: // test
		value, ok := at(doc, path)
		return doc, ok && same(value, o["value"])
	}
}

func move(doc any, from, to []string) (any, bool) {
	if len(to) > len(from) && slices.Equal(to[:len(from)], from) {
		return nil, false // into itself
	}
	value, ok := at(doc, from)
	if !ok {
		return nil, false
	}
	if doc, ok = remove(doc, from); !ok {
		return nil, false
	}
	return add(doc, to, value)
}

// at returns the value at a path.
func at(doc any, path []string) (any, bool) {
	for _, token := range path {
		switch d := doc.(type) {
		case object:
			value, ok := d[token]
			if !ok {
				return nil, false
			}
			doc = value
		case []any:
			i, ok := position(token, len(d)-1)
			if !ok {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// position reads an array index of at most last.
func position(token string, last int) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && i <= last && strconv.Itoa(i) == token
}

// within changes the value at a path's parent by f and returns the whole document.
func within(doc any, path []string, f func(parent any, last string) (any, bool)) (any, bool) {
	if len(path) == 1 {
		return f(doc, path[0])
	}
	child, ok := at(doc, path[:1])
	if !ok {
		return nil, false
	}
	if child, ok = within(child, path[1:], f); !ok {
		return nil, false
	}
	return put(doc, path[:1], child)
}

// put sets an existing place, or a member of an object.
func put(doc any, path []string, value any) (any, bool) {
	return within(doc, path, func(parent any, last string) (any, bool) {
		switch p := parent.(type) {
		case object:
			p[last] = value
			return p, true
		case []any:
			i, ok := position(last, len(p)-1)
			if ok {
				p[i] = value
			}
			return p, ok
		}
		return nil, false
	})
}

func add(doc any, path []string, value any) (any, bool) {
	return within(doc, path, func(parent any, last string) (any, bool) {
		switch p := parent.(type) {
		case object:
			p[last] = value
			return p, true
		case []any:
			i, ok := position(last, len(p))
			if last == "-" {
				i, ok = len(p), true
			}
			if !ok {
				return nil, false
			}
			return slices.Insert(p, i, value), true
		}
		return nil, false
	})
}

func remove(doc any, path []string) (any, bool) {
	if _, ok := at(doc, path); !ok {
		return nil, false
	}
	return within(doc, path, func(parent any, last string) (any, bool) {
		switch p := parent.(type) {
		case object:
			delete(p, last)
			return p, true
		case []any:
			i, _ := position(last, len(p)-1)
			return slices.Delete(p, i, i+1), true
		}
		return nil, false
	})
}
