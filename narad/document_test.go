package narad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDocument goes through the cases of RFC 6902, appendix A, in values of its own,
// and the points that the public client decides otherwise (facts §9).
func TestDocument(t *testing.T) {
	for _, tc := range []struct{ name, doc, patch, want string }{
		{"add a member", `{"ship":"Gull"}`, `[{"op":"add","path":"/port","value":"Hoek"}]`, `{"ship":"Gull","port":"Hoek"}`},
		{"add an element", `{"a":["x","z"]}`, `[{"op":"add","path":"/a/1","value":"y"}]`, `{"a":["x","y","z"]}`},
		{"add in front", `{"a":["x"]}`, `[{"op":"add","path":"/a/0","value":"w"}]`, `{"a":["w","x"]}`},
		{"add at the length", `{"a":["x"]}`, `[{"op":"add","path":"/a/1","value":"y"}]`, `{"a":["x","y"]}`},
		{"append", `{"a":[]}`, `[{"op":"add","path":"/a/-","value":[1,2]}]`, `{"a":[[1,2]]}`},
		{"add replaces a member", `{"a":1,"b":2}`, `[{"op":"add","path":"/a","value":null}]`, `{"a":null,"b":2}`},
		{"add inside what was added", `{}`, `[{"op":"add","path":"/a","value":{}},{"op":"add","path":"/a/b","value":[]},{"op":"add","path":"/a/b/-","value":1}]`, `{"a":{"b":[1]}}`},
		{"remove a member", `{"a":1,"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"b":2}`},
		{"remove an element", `{"a":[1,2,3]}`, `[{"op":"remove","path":"/a/1"}]`, `{"a":[1,3]}`},
		{"replace", `{"a":1,"b":2}`, `[{"op":"replace","path":"/a","value":[1.10]}]`, `{"a":[1.10],"b":2}`},
		{"replace an element", `{"a":[1,2]}`, `[{"op":"replace","path":"/a/0","value":9}]`, `{"a":[9,2]}`},
		{"move a member", `{"a":{"x":1,"y":2},"b":{}}`, `[{"op":"move","from":"/a/x","path":"/b/z"}]`, `{"a":{"y":2},"b":{"z":1}}`},
		{"move an element", `{"a":[1,2,3,4]}`, `[{"op":"move","from":"/a/1","path":"/a/3"}]`, `{"a":[1,3,4,2]}`},
		{"move over a parent", `{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/a"}]`, `{"a":1}`},
		{"copy", `{"a":{"x":1.0},"b":0}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"replace","path":"/a/x","value":2}]`, `{"a":{"x":2},"b":{"x":1.0}}`},
		{"copy into itself", `{"a":{"x":1}}`, `[{"op":"copy","from":"/a","path":"/a/y"}]`, `{"a":{"x":1,"y":{"x":1}}}`},
		{"test", `{"a":[1,{"x":1,"y":null}]}`, `[{"op":"test","path":"/a","value":[1e0,{"y":null,"x":1.0}]}]`, `{"a":[1,{"x":1,"y":null}]}`},
		{"test null", `{"a":null}`, `[{"op":"test","path":"/a","value":null}]`, `{"a":null}`},
		{"escapes", `{"/":1,"~1":2,"a/b":{"":3}}`, `[{"op":"replace","path":"/~1","value":4},{"op":"test","path":"/~01","value":2},{"op":"add","path":"/a~1b/","value":5}]`, `{"/":4,"~1":2,"a/b":{"":5}}`},
		{"numbers as names", `{"0":{"01":1}}`, `[{"op":"replace","path":"/0/01","value":2}]`, `{"0":{"01":2}}`},
		{"a dash as name", `{}`, `[{"op":"add","path":"/-","value":1}]`, `{"-":1}`},
		{"quoted names", `{"a\"b":1}`, `[{"op":"add","path":"/n\n","value":1}]`, `{"a\"b":1,"n\n":1}`},
		{"an array document", `[1]`, `[{"op":"add","path":"/-","value":2}]`, `[1,2]`},
		{"inherited names are no names", `{}`, `[{"op":"add","path":"/toString","value":1}]`, `{"toString":1}`},

		{"test of another value", `{"a":"10"}`, `[{"op":"test","path":"/a","value":10}]`, "!/0"},
		{"test of order", `{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[2,1]}]`, "!/0"},
		{"test of precision", `{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740992}]`, "!/0"},
		{"test of nothing", `{}`, `[{"op":"test","path":"/a","value":null}]`, "!/0"},
		{"add below nothing", `{"a":1}`, `[{"op":"add","path":"/b/c","value":1}]`, "!/0"},
		{"add below a scalar", `{"a":1}`, `[{"op":"add","path":"/a/c","value":1}]`, "!/0"},
		{"add below null", `{"a":null}`, `[{"op":"add","path":"/a/c","value":1}]`, "!/0"},
		{"add above the length", `{"a":[1]}`, `[{"op":"add","path":"/a/2","value":1}]`, "!/0"},
		{"copy above the length", `{"a":[1]}`, `[{"op":"copy","from":"/a/0","path":"/a/2"}]`, "!/0"},
		{"index with a zero", `{"a":[1,2]}`, `[{"op":"replace","path":"/a/01","value":1}]`, "!/0"},
		{"empty index", `{"a":[1,2]}`, `[{"op":"replace","path":"/a/","value":1}]`, "!/0"},
		{"signed index", `{"a":[1,2]}`, `[{"op":"replace","path":"/a/+1","value":1}]`, "!/0"},
		{"negative index", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/-1"}]`, "!/0"},
		{"huge index", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/18446744073709551616"}]`, "!/0"},
		{"word as index", `{"a":[1,2]}`, `[{"op":"add","path":"/a/length","value":0}]`, "!/0"},
		{"remove behind the end", `{"a":[1]}`, `[{"op":"remove","path":"/a/-"}]`, "!/0"},
		{"remove nothing", `{"a":1}`, `[{"op":"remove","path":"/b"}]`, "!/0"},
		{"remove what is inherited", `{"a":1}`, `[{"op":"remove","path":"/toString"}]`, "!/0"},
		{"replace nothing", `{"a":1}`, `[{"op":"replace","path":"/b","value":1}]`, "!/0"},
		{"move into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/b"}]`, "!/0"},
		{"move nothing", `{"a":1}`, `[{"op":"move","from":"/b","path":"/c"}]`, "!/0"},
		{"move to nowhere", `{"a":1}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, "!/0"},
		{"copy nothing", `{"a":1}`, `[{"op":"copy","from":"/b","path":"/c"}]`, "!/0"},
		{"patch of a scalar", `7`, `[{"op":"add","path":"/a","value":1}]`, "!/0"},
		{"patch of null", `null`, `[{"op":"add","path":"/a","value":1}]`, "!/0"},
		{"the last operation fails", `{ "a" : { "x" : 1.0 }, "b" : [ 1 ] }`, `[{"op":"add","path":"/b/-","value":2},{"op":"remove","path":"/a/x"},{"op":"add","path":"/c","value":{}},{"op":"move","from":"/b","path":"/c/d"},{"op":"copy","from":"/a","path":"/e"},{"op":"replace","path":"/a","value":0},{"op":"test","path":"/c","value":0}]`, "!/6"},
		{"a move fails half way", `{ "a" : [ 1 , 2 ] }`, `[{"op":"move","from":"/a/0","path":"/a/2"}]`, "!/0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patch, err := ParsePatch(Raw(tc.patch))
			if err != nil {
				t.Fatal(err)
			}
			doc := NewDocument(Raw(tc.doc))
			err = doc.Apply(patch)
			path, refused := strings.CutPrefix(tc.want, "!")
			if refused {
				if got := refusalOf(err); got.Code != CodeInvalidPatch || got.Path != path {
					t.Errorf("%s on %s: got %v, want a refusal at %s", tc.patch, tc.doc, err, path)
				}
				tc.want = tc.doc // byte for byte
			} else if err != nil {
				t.Errorf("%s on %s: %v", tc.patch, tc.doc, err)
			}
			if got := doc.Raw().String(); got != tc.want {
				t.Errorf("%s on %s\n got %s\nwant %s", tc.patch, tc.doc, got, tc.want)
			}
		})
	}
}

// TestDocumentKeepsBytes: what no patch touched keeps its spelling, what was added
// has its own.
func TestDocumentKeepsBytes(t *testing.T) {
	doc := NewDocument(Raw(`{ "far" : { "n" : [ 1.10, 1e400 , -0 ] } , "near" : { "x" : 1 , "y" : "\u0041" } }`))
	patch, err := ParsePatch(Raw(`[{"op":"replace","path":"/near/x","value":[ 9007199254740993 , 1e2 ]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Apply(patch); err != nil {
		t.Fatal(err)
	}
	want := `{"far":{ "n" : [ 1.10, 1e400 , -0 ] },"near":{"x":[ 9007199254740993 , 1e2 ],"y":"\u0041"}}`
	if got := doc.Raw().String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDocumentLooksOnlyWhereItMust: a patch opens what its paths name and nothing
// beside it.
func TestDocumentLooksOnlyWhereItMust(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"small":{"n":0}`)
	for i := range 200 {
		fmt.Fprintf(&b, `,"big%d":{"list":[%s0]}`, i, strings.Repeat("1,", 100))
	}
	doc := NewDocument(Raw(b.String() + "}"))
	for i := range 50 {
		patch, err := ParsePatch(Raw(`[{"op":"replace","path":"/small/n","value":` + strconv.Itoa(i) + `}]`))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Apply(patch); err != nil {
			t.Fatal(err)
		}
		doc.Raw()
	}
	var opened int
	for name, n := range doc.root.members {
		if n.ready && name != "small" {
			opened++
		}
		if n.raw == nil {
			t.Errorf("%s lost its bytes", name)
		}
	}
	if opened > 0 || len(doc.root.members) != 201 {
		t.Errorf("%d of %d untouched values were opened", opened, len(doc.root.members))
	}
}

// TestDocumentIsBounded: copies double a document, and moves deepen it.
func TestDocumentIsBounded(t *testing.T) {
	apply := func(doc *Document, patch string) error {
		p, err := ParsePatch(Raw(patch))
		if err != nil {
			t.Fatal(err)
		}
		return doc.Apply(p)
	}
	doc := NewDocument(Raw(`{"a":["` + strings.Repeat("x", 1000) + `"]}`))
	var err error
	doublings := 0
	for ; err == nil && doublings < 40; doublings++ {
		err = apply(doc, `[{"op":"copy","from":"/a","path":"/a/-"},{"op":"copy","from":"/a/0","path":"/b"},{"op":"move","from":"/a","path":"/c"},{"op":"add","path":"/a","value":[]},{"op":"move","from":"/c","path":"/a/-"}]`)
	}
	if refusalOf(err).Code != CodeInvalidPatch || doublings == 40 {
		t.Errorf("after %d patches that double: %v", doublings, err)
	}
	if n := len(doc.Raw()); n > MaxDocumentBytes {
		t.Errorf("the document has %d bytes", n)
	}

	wide := NewDocument(Raw(`{"a":["` + strings.Repeat("x", 1<<20) + `"],"b":[]}`))
	for err = nil; err == nil; {
		err = apply(wide, `[{"op":"copy","from":"/a","path":"/b/-"}]`)
	}
	if n := len(wide.Raw()); refusalOf(err).Code != CodeInvalidPatch || n < MaxDocumentBytes-2<<20 || n > MaxDocumentBytes {
		t.Errorf("at %d bytes: %v", n, err)
	}
	if err := apply(wide, `[{"op":"remove","path":"/b/0"},{"op":"copy","from":"/a","path":"/b/-"}]`); err != nil {
		t.Errorf("as much as was removed cannot be added: %v", err)
	}

	deep := NewDocument(Raw(`{"a":0}`))
	levels := 0
	for err = nil; err == nil && levels < 100; levels++ {
		err = apply(deep, `[{"op":"add","path":"/t","value":{}},{"op":"move","from":"/a","path":"/t/a"},{"op":"move","from":"/t","path":"/a"}]`)
	}
	if refusalOf(err).Code != CodeInvalidPatch || levels > MaxDepth {
		t.Errorf("after %d levels: %v", levels, err)
	}
	var s scanner
	if s.scan(deep.Raw().String()); s.deepest > MaxDepth {
		t.Errorf("the document is %d deep", s.deepest)
	}
}

// TestWorkOfAPatchIsBounded: a short operation may name a long value, and a patch has
// room for thousands of them.
func TestWorkOfAPatchIsBounded(t *testing.T) {
	before := `{"a":1` + strings.Repeat("0", 400_000) + `}`
	for _, operations := range []string{
		`{"op":"copy","from":"/a","path":"/b"}`,
		`{"op":"test","path":"/a","value":1e400000}`,
		`{"op":"move","from":"/a","path":"/b"},{"op":"move","from":"/b","path":"/a"}`,
	} {
		apply := func(times int) (*Document, error) {
			patch, err := ParsePatch(Raw("[" + operations + strings.Repeat(","+operations, times-1) + "]"))
			if err != nil {
				t.Fatal(err)
			}
			doc := NewDocument(Raw(before))
			return doc, doc.Apply(patch)
		}
		if _, err := apply(50); err != nil {
			t.Errorf("%s 50 times: %v", operations, err)
		}
		doc, err := apply(1_000)
		if refusalOf(err).Code != CodeInvalidPatch || doc.Raw().String() != before {
			t.Errorf("%s 1,000 times: %v, %d bytes; want it refused and nothing changed", operations, err, len(doc.Raw()))
		}
	}
}

// TestDocumentRefusesTheRoot: a patch that was not parsed may hold anything.
func TestDocumentRefusesTheRoot(t *testing.T) {
	for _, op := range ops {
		doc := NewDocument(Raw(`{"a":1}`))
		if err := doc.Apply(Patch{{Op: op, Value: Raw("1")}}); refusalOf(err).Code != CodeInvalidPatch || doc.Raw().String() != `{"a":1}` {
			t.Errorf("%s of the root: %v, %s", op, err, doc.Raw())
		}
	}
}

// The naive second opinion: trees that are copied whole for each operation.

type tree any // map[string]tree, []tree or string

func (v value) tree() tree {
	switch v.kind {
	case '{':
		m := map[string]tree{}
		for i, name := range v.names {
			m[name] = v.items[i].tree()
		}
		return m
	case '[':
		list := []tree{}
		for _, item := range v.items {
			list = append(list, item.tree())
		}
		return list
	}
	return v.canonical()
}

func show(t tree) string {
	switch t := t.(type) {
	case map[string]tree:
		shown := map[string]string{}
		for name, item := range t {
			shown[name] = show(item)
		}
		return fmt.Sprintf("%q", shown)
	case []tree:
		shown := "["
		for _, item := range t {
			shown += show(item) + ","
		}
		return shown + "]"
	}
	return t.(string)
}

// position reads an array index as RFC 6901 has it, at most last.
func position(token string, last int) (int, bool) {
	for i := 0; i <= last; i++ {
		if strconv.Itoa(i) == token {
			return i, true
		}
	}
	return 0, false
}

func naiveGet(t tree, path []string) (tree, bool) {
	if len(path) == 0 {
		return t, true
	}
	switch t := t.(type) {
	case map[string]tree:
		if item, ok := t[path[0]]; ok {
			return naiveGet(item, path[1:])
		}
	case []tree:
		if i, ok := position(path[0], len(t)-1); ok {
			return naiveGet(t[i], path[1:])
		}
	}
	return nil, false
}

// naiveChange copies the tree, with the holder of the last token changed by edit.
func naiveChange(t tree, path []string, edit func(holder tree, last string) (tree, bool)) (tree, bool) {
	if len(path) == 1 {
		return edit(t, path[0])
	}
	switch t := t.(type) {
	case map[string]tree:
		item, ok := t[path[0]]
		if !ok {
			return nil, false
		}
		changed, ok := naiveChange(item, path[1:], edit)
		fresh := map[string]tree{}
		for name, item := range t {
			fresh[name] = item
		}
		fresh[path[0]] = changed
		return fresh, ok
	case []tree:
		i, ok := position(path[0], len(t)-1)
		if !ok {
			return nil, false
		}
		changed, ok := naiveChange(t[i], path[1:], edit)
		fresh := slices.Clone(t)
		fresh[i] = changed
		return fresh, ok
	}
	return nil, false
}

func naiveAdd(t tree, path []string, item tree) (tree, bool) {
	return naiveChange(t, path, func(holder tree, last string) (tree, bool) {
		switch h := holder.(type) {
		case map[string]tree:
			fresh := map[string]tree{last: item}
			for name, old := range h {
				if name != last {
					fresh[name] = old
				}
			}
			return fresh, true
		case []tree:
			i, ok := position(last, len(h))
			if last == "-" {
				i, ok = len(h), true
			}
			if !ok {
				return nil, false
			}
			return slices.Insert(slices.Clone(h), i, item), true
		}
		return nil, false
	})
}

func naiveRemove(t tree, path []string) (tree, bool) {
	return naiveChange(t, path, func(holder tree, last string) (tree, bool) {
		switch h := holder.(type) {
		case map[string]tree:
			if _, ok := h[last]; !ok {
				return nil, false
			}
			fresh := map[string]tree{}
			for name, old := range h {
				if name != last {
					fresh[name] = old
				}
			}
			return fresh, true
		case []tree:
			i, ok := position(last, len(h)-1)
			if !ok {
				return nil, false
			}
			return slices.Delete(slices.Clone(h), i, i+1), true
		}
		return nil, false
	})
}

func naiveApply(t tree, op Operator, v tree) (tree, bool) {
	old, exists := naiveGet(t, op.Path)
	switch op.Op {
	case OpAdd:
		return naiveAdd(t, op.Path, v)
	case OpRemove:
		return naiveRemove(t, op.Path)
	case OpReplace:
		if !exists {
			return nil, false
		}
		without, _ := naiveRemove(t, op.Path)
		return naiveAdd(without, op.Path, v)
	case OpTest:
		return t, exists && show(old) == show(v)
	}
	from, ok := naiveGet(t, op.From)
	if !ok {
		return nil, false
	}
	if op.Op == OpMove {
		if len(op.Path) > len(op.From) && slices.Equal(op.Path[:len(op.From)], op.From) {
			return nil, false
		}
		if t, ok = naiveRemove(t, op.From); !ok {
			return nil, false
		}
	}
	return naiveAdd(t, op.Path, from)
}

// paths returns the paths of all values below the root, as token lists.
func (v value) paths(at []string) [][]string {
	var all [][]string
	for i, item := range v.items {
		token := strconv.Itoa(i)
		if v.kind == '{' {
			token = v.names[i]
		}
		here := append(slices.Clone(at), token)
		all = append(append(all, here), item.paths(here)...)
	}
	return all
}

func genPath(v value) *rapid.Generator[[]string] {
	return rapid.Custom(func(t *rapid.T) []string {
		known := v.paths(nil)
		var path []string
		if len(known) > 0 && rapid.IntRange(0, 5).Draw(t, "known") > 0 {
			path = slices.Clone(rapid.SampledFrom(known).Draw(t, "path"))
		}
		if len(path) == 0 || rapid.IntRange(0, 2).Draw(t, "longer") == 0 {
			path = append(path, rapid.SampledFrom([]string{"-", "0", "1", "a", "b", "01", "", "é"}).Draw(t, "token"))
		}
		return path
	})
}

// TestDocumentProperty: random patches of random documents do what they do to plain
// trees, and a patch that fails leaves every byte.
func TestDocumentProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genValue(3).Draw(t, "document")
		text := v.spell(t)
		doc, model := NewDocument(Raw(text)), v.tree()
		for range rapid.IntRange(1, 4).Draw(t, "patches") {
			before, changed, ok := doc.Raw().String(), model, true
			var patch Patch
			for range rapid.IntRange(1, 5).Draw(t, "operations") {
				item := genValue(1).Draw(t, "value")
				op := Operator{
					Op:    rapid.SampledFrom(ops).Draw(t, "op"),
					Path:  genPath(v).Draw(t, "path"),
					From:  genPath(v).Draw(t, "from"),
					Value: Raw(item.spell(t)),
				}
				if _, exists := naiveGet(changed, op.Path); ok && exists && op.Op == OpTest && rapid.Bool().Draw(t, "right") {
					op.Value = findRaw(doc, patch, op.Path) // the test holds, and nothing changes
				} else if ok {
					changed, ok = naiveApply(changed, op, item.tree())
				}
				patch = append(patch, op)
			}
			if err := doc.Apply(patch); (err == nil) != ok {
				t.Fatalf("got %v, want applied %v\ndocument %s\npatch %+v", err, ok, before, patch)
			}
			after := doc.Raw().String()
			if !ok {
				if after != before {
					t.Fatalf("a failed patch changed\n%s\nto\n%s\npatch %+v", before, after, patch)
				}
				continue
			}
			model = changed
			if got := showText(t, after); got != show(model) {
				t.Fatalf("got\n%s\nwant\n%s\ndocument %s\npatch %+v", got, show(model), before, patch)
			}
		}
	})
}

// findRaw returns the bytes at a path after a part of a patch.
func findRaw(doc *Document, patch Patch, path []string) Raw {
	scratch := NewDocument(Raw(doc.Raw().String()))
	if scratch.Apply(patch) != nil {
		return Raw("null")
	}
	if n := scratch.find(path); n != nil {
		return n.value()
	}
	return Raw("null")
}

// showText shows a JSON text as the model shows a tree.
func showText(t *rapid.T, text string) string {
	var read func(Raw) tree
	read = func(raw Raw) tree {
		if list, ok := elements(string(raw)); ok {
			items := []tree{}
			for _, item := range list {
				items = append(items, read(Raw(item)))
			}
			return items
		}
		if in, ok := membersOf(string(raw)); ok {
			m := map[string]tree{}
			for _, member := range in.list {
				m[in.name(member)] = read(Raw(in.value(member)))
			}
			return m
		}
		v := value{kind: 'l', text: string(raw)}
		if text, ok := raw.IsString(); ok {
			v = value{kind: '"', text: text}
		} else if startsNumber(raw[0]) {
			v = value{kind: '0', text: string(raw)}
		}
		return v.canonical()
	}
	if err := valid([]byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return show(read(Raw(text)))
}
