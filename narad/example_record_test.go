package narad

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests got into their expectation files")

// decoders are the two strictnesses.
var decoders = []Decoder{{}, {Strict: true}}

// refusalOf returns the refusal behind err, or an empty one.
func refusalOf(err error) Error {
	var refusal *Error
	if errors.As(err, &refusal) {
		return *refusal
	}
	return Error{}
}

// object is a JSON object that a test changes field by field.
type object []Member

// parseObject takes a JSON object apart with jsontext, not with the code under test.
func parseObject(t testing.TB, text string) object {
	t.Helper()
	dec := jsontext.NewDecoder(strings.NewReader(text))
	if kind := dec.PeekKind(); kind != '{' {
		t.Fatalf("no object: %s", text)
	}
	dec.ReadToken()
	var o object
	for dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		text := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		o = append(o, Member{text, Raw(bytes.Clone(value))})
	}
	return o
}

func (o object) get(name string) string {
	for _, m := range o {
		if m.Name == name {
			return string(m.Value)
		}
	}
	return ""
}

func (o object) without(names ...string) object {
	var kept object
	for _, m := range o {
		drop := false
		for _, name := range names {
			drop = drop || m.Name == name
		}
		if !drop {
			kept = append(kept, m)
		}
	}
	return kept
}

// with replaces a field, or adds it at the end.
func (o object) with(name, value string) object {
	changed := append(object(nil), o...)
	for i := range changed {
		if changed[i].Name == name {
			changed[i].Value = Raw(value)
			return changed
		}
	}
	return append(changed, Member{name, Raw(value)})
}

func (o object) text() string {
	var b strings.Builder
	for i, m := range o {
		b.WriteString([]string{",", "{"}[btoi(i == 0)])
		b.Write(Quote(m.Name))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	if len(o) == 0 {
		return "{}"
	}
	return b.String() + "}"
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var loadExamples = sync.OnceValues(func() (map[Type][]string, error) {
	found := map[Type][]string{}
	names, err := filepath.Glob("testdata/valid/*.jsonl")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for lines.Scan() {
			text := lines.Text()
			kind := text[strings.Index(text, `"type":"`)+len(`"type":"`):]
			kind = kind[:strings.IndexByte(kind, '"')]
			found[Type(kind)] = append(found[Type(kind)], text)
		}
	}
	return found, nil
})

// examples returns the records of testdata/valid by type.
func examples(t testing.TB) map[Type][]string {
	t.Helper()
	all, err := loadExamples()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// example returns the first record of a type, which has every field of the type
// that can stand beside the others.
func example(t testing.TB, kind Type) object {
	t.Helper()
	all := examples(t)[kind]
	if len(all) == 0 {
		t.Fatalf("no example of %s in testdata/valid", kind)
	}
	return parseObject(t, all[0])
}

func mustDecode(t testing.TB, d Decoder, text string) Record {
	t.Helper()
	rec, err := d.Decode([]byte(text))
	if err != nil {
		t.Fatalf("decode, strict %v: %v\n%s", d.Strict, err, text)
	}
	return rec
}

func mustEncode(t testing.TB, rec Record) string {
	t.Helper()
	out, err := Encode(rec)
	if err != nil {
		t.Fatalf("encode %s: %v", rec.Type(), err)
	}
	return string(out)
}

// plain takes the fingerprint away, which belongs to bytes and not to content.
func plain(rec Record) Record {
	switch r := rec.(type) {
	case Authority:
		r.Envelope().print = 0
	case *Revision:
		r.print = 0
	}
	return rec
}
