package cli

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

var (
	approval = session.Interrupt{InterruptID: "i", Actions: []string{"approve", "approve_always", "deny"}}
	pack     = session.Interrupt{InterruptID: "i", Actions: []string{"approve", "deny"}, Input: narad.Raw(`{"members":[{"requestId":"tag"},{"requestId":"push"}]}`)}
	choice   = session.Interrupt{InterruptID: "i", Kind: "question", Actions: []string{"0", "1", "dismiss"},
		Input: narad.Raw(`{"questions":[{"text":"Which?","options":["a","b"],"recommended":1}]}`)}
	several = session.Interrupt{InterruptID: "i", Kind: "question", Actions: []string{"answer", "dismiss"},
		Input: narad.Raw(`{"questions":[{"text":"Which?","options":["a","b","c"],"multiple":true},{"text":"Else?","free":true}]}`)}
)

// TestInquiry: what people type, and the command that it becomes. Lines that are not
// understood are said so and change nothing.
func TestInquiry(t *testing.T) {
	for _, c := range []struct {
		name    string
		asked   session.Interrupt
		refused []string // lines before that are not understood
		lines   []string
		want    client.ResolveInterrupt
	}{
		{"the word", approval, []string{"", "perhaps", "approval"}, []string{"approve"}, client.ResolveInterrupt{Decision: "approve"}},
		{"the longer word", approval, nil, []string{"approve_always"}, client.ResolveInterrupt{Decision: "approve_always"}},
		{"a beginning of two words is the shorter", approval, nil, []string{" A "}, client.ResolveInterrupt{Decision: "approve"}},
		{"a beginning of one word", approval, nil, []string{"approve_"}, client.ResolveInterrupt{Decision: "approve_always"}},
		{"no, with a reason", approval, nil, []string{"n  not today"}, client.ResolveInterrupt{Decision: "deny", Reason: "not today"}},
		{"a pack as a whole", pack, nil, []string{"yes"}, client.ResolveInterrupt{Decision: "approve"}},
		{"a member", pack, []string{"tag", "tag maybe", "other deny"}, []string{"tag deny"},
			client.ResolveInterrupt{Decision: "deny", Members: []client.MemberDecision{{RequestID: "tag", Decision: "deny"}}}},
		{"a choice", choice, []string{"2", "a"}, []string{"0"}, client.ResolveInterrupt{Decision: "0"}},
		{"the recommended choice", choice, nil, []string{""}, client.ResolveInterrupt{Decision: "1"}},
		{"no choice", choice, nil, []string{"dis"}, client.ResolveInterrupt{Decision: "dismiss"}},
		{"several answers", several, []string{"", "0,3"}, []string{"0, 2", "only the parser"}, client.ResolveInterrupt{
			Decision: "answer", Answers: []client.QuestionAnswer{{Options: []string{"0", "2"}}, {Options: []string{}, Text: "only the parser"}},
		}},
		{"no answers, after one", several, nil, []string{"1", "dismiss"}, client.ResolveInterrupt{Decision: "dismiss"}},
	} {
		q := newInquiry(c.asked)
		for _, line := range c.refused {
			if _, err := q.take(line); err == nil {
				t.Errorf("%s: %q was understood", c.name, line)
			}
		}
		var got *client.ResolveInterrupt
		for n, line := range c.lines {
			var err error
			if got, err = q.take(line); err != nil || (got != nil) != (n == len(c.lines)-1) {
				t.Fatalf("%s: line %q: got command %v, error %v", c.name, line, got, err)
			}
		}
		c.want.InterruptID = "i"
		if diff := cmp.Diff(c.want, *got); diff != "" {
			t.Errorf("%s: %q (-want +got):\n%s", c.name, c.lines, diff)
		}
	}
}

// TestInquiryIsSafeWithAnyInput: what an agent asks is text of others.
func TestInquiryIsSafeWithAnyInput(t *testing.T) {
	for _, input := range []string{`null`, `{"questions":[null,1,{}]}`, `{"questions":[{"options":[1,{}],"recommended":99}]}`, `{"members":[{},{"requestId":7}]}`} {
		if err := json.Unmarshal([]byte(input), new(any)); err != nil {
			t.Fatal(err)
		}
		for _, actions := range [][]string{nil, {"answer"}, {"0"}, {"\x1b[2J"}} {
			q := newInquiry(session.Interrupt{InterruptID: "i", Actions: actions, Input: narad.Raw(input)})
			for _, line := range []string{"", "0", "answer", "x y"} {
				if got := q.prompt(); escape(got) != got {
					t.Errorf("%s %q: prompt %q", input, actions, got)
				}
				_, _ = q.take(line)
			}
		}
	}
}
