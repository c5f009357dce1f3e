package harness

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func inputText(fields string) string {
	return `{"version":"fak.harness.run/v1","run_id":"r","input_id":"i"` + fields + `}`
}

// TestDecodeInput: what a boundary takes from outside, and what it refuses with which field.
func TestDecodeInput(t *testing.T) {
	long := strings.Repeat("x", MaxReasonBytes+1)
	for _, c := range []struct {
		text  string
		field string // of the refusal; "ok" where there is none
	}{
		{inputText(`,"type":"message.submit","message":{"text":" "}`), "ok"},
		{inputText(`,"type":"message.submit","message":{"text":"t","sensitivity":"odd","x":1},"new_field":[1],"approval":{"approval_id":""},"credit":3`), "ok"},
		{inputText(`,"type":"approval.resolve","approval":{"approval_id":"a","decision":"deny","scope":"s"}`), "ok"},
		{inputText(`,"type":"run.cancel","reason":"r"`), "ok"},
		{inputText(`,"type":"flow.credit","credit":4294967295,"correlation_id":"tail"`), "ok"},
		{inputText(`,"type":"message.submit"`), "message.text"},
		{inputText(`,"type":"message.submit","message":null`), "message.text"},
		{inputText(`,"type":"message.submit","message":{"text":""}`), "message.text"},
		{inputText(`,"type":"message.submit","message":"t"`), "message"},
		{inputText(`,"type":"message.submit","message":{"text":5}`), "message.text"},
		{inputText(`,"type":"message.submit","message":{"Text":"t"}`), "message.text"},
		{inputText(`,"type":"approval.resolve","approval":{"approval_id":"a","decision":"yes"}`), "approval.decision"},
		{inputText(`,"type":"approval.resolve","approval":{"approval_id":"a","decision":"APPROVE"}`), "approval.decision"},
		{inputText(`,"type":"approval.resolve","approval":{"decision":"approve"}`), "approval.approval_id"},
		{inputText(`,"type":"approval.resolve","approval":{"approval_id":"` + strings.Repeat("a", 129) + `","decision":"approve"}`), "approval.approval_id"},
		{inputText(`,"type":"approval.resolve","approval":{"approval_id":"a","decision":"approve","scope":"` + long + `"}`), "approval.scope"},
		{inputText(`,"type":"run.cancel"`), "reason"},
		{inputText(`,"type":"run.cancel","reason":"` + long + `"`), "reason"},
		{inputText(`,"type":"flow.credit"`), "credit"},
		{inputText(`,"type":"flow.credit","credit":4294967296`), "credit"},
		{inputText(`,"type":"flow.credit","credit":-1`), "credit"},
		{inputText(`,"type":"flow.credit","credit":1.5`), "credit"},
		{inputText(`,"type":"flow.credit","credit":1,"correlation_id":"` + strings.Repeat("c", 129) + `"`), "correlation_id"},
		{inputText(`,"type":"vendor.input"`), "type"},
		{inputText(`,"type":"run.cancel","type":"run.cancel","reason":"r"`), ""},
		{inputText(``), "type"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), "v1", "v2", 1), "version"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), `"r"`, `""`, 1), "run_id"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), `"r"`, `"`+strings.Repeat("r", 129)+`"`, 1), "run_id"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), `"i"`, `""`, 1), "input_id"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), `"i"`, `"a b"`, 1), "input_id"},
		{strings.Replace(inputText(`,"type":"run.cancel","reason":"r"`), `"i"`, `"`+strings.Repeat("i", 129)+`"`, 1), "input_id"},
		{inputText(`,"type":"message.submit","message":{"text":"` + strings.Repeat("t", MaxInputBytes) + `"}`), ""},
		{inputText(",\"type\":\"message.submit\",\"message\":{\"text\":\"\xff\"}"), ""},
		{"", ""}, {"null", ""}, {" null ", ""}, {"[]", ""}, {`"x"`, ""}, {"{", ""}, {inputText("") + "x", ""},
		{`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, ""},
	} {
		in, err := DecodeInput([]byte(c.text))
		var refusal *Error
		switch {
		case c.field == "ok" && (err != nil || in.RunID != "r" || in.InputID != "i"):
			t.Errorf("%.200s: got %+v, %v", c.text, in, err)
		case c.field == "ok":
		case !errors.As(err, &refusal) || refusal.Code != CodeInput || refusal.Field != c.field || !reflect.DeepEqual(in, Input{}):
			t.Errorf("%.200s: got %+v, %v; want a refusal of %q", c.text, in, err, c.field)
		case len(err.Error()) > 200:
			t.Errorf("%.200s: a long error: %v", c.text, err)
		}
	}
}

// FuzzInput: nothing panics, and what is taken is valid and within its bounds.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{inputText(`,"type":"run.cancel","reason":"r"`), inputText(`,"type":"approval.resolve","approval":{"approval_id":"a","decision":"deny"}`), "null", "[]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := DecodeInput(text)
		if err == nil && (in.Validate() != nil || len(in.InputID) > 128 || len(in.RunID) > 128) {
			t.Fatalf("%q gives %+v", text, in)
		}
		if err != nil && CodeOf(err) != CodeInput {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// TestRedact: by the letter of the contract, and by the class that a record without one has.
func TestRedact(t *testing.T) {
	for _, c := range []struct {
		class                                    Sensitivity
		letter, letterPrivate, ours, oursPrivate bool // whether the payload is replaced, without and with allowPrivate
	}{
		{Public, false, false, false, false},
		{Private, true, false, true, false},
		{Secret, true, true, true, true},
		{"", false, false, true, false},
		{"SECRET", false, false, true, true},
		{"topsecret", false, false, true, true},
	} {
		e := Event{Version, "r", 1, "e", "c", "d", "t", c.class, []byte(`{"a":1}`)}
		got := [4]bool{}
		for i, r := range []Event{Redact(e, false), Redact(e, true), RedactClassed(e, false), RedactClassed(e, true)} {
			got[i] = string(r.Payload) == `{"redacted":true}`
			if !got[i] && string(r.Payload) != `{"a":1}` || got[i] && !r.Redacted() {
				t.Errorf("%q: the payload is %s", c.class, r.Payload)
			}
			r.Payload = e.Payload
			if !reflect.DeepEqual(r, e) {
				t.Errorf("%q: the envelope became %+v", c.class, r)
			}
		}
		if want := [4]bool{c.letter, c.letterPrivate, c.ours, c.oursPrivate}; got != want {
			t.Errorf("%q: got %v, want %v", c.class, got, want)
		}
	}
	for text, want := range map[string]bool{
		redacted: true, ` { "redacted" : true } `: true, `{"redacted":false}`: false, `{"redacted":true,"x":1}`: false, `{"redacted":"true"}`: false, `{"Redacted":true}`: false, ``: false, `null`: false,
		`{"redacted":true,"redacted":true}`: false, `["redacted"]`: false,
	} {
		e := Event{Sensitivity: Private, Payload: []byte(text)}
		public := Event{Sensitivity: Public, Payload: []byte(text)}
		if e.Redacted() != want || public.Redacted() {
			t.Errorf("%s: got %v and %v", text, e.Redacted(), public.Redacted())
		}
	}
}
