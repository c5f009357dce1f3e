package decide_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
)

// R8: a session is made once, and put away only when nothing is active or waits.
func TestCreateArchiveRestore(t *testing.T) {
	b := newBed(t)
	for _, c := range []decide.Command{
		decide.Archive{}, decide.Restore{}, decide.Message{Content: "x"}, decide.Stop{}, decide.Release{},
		decide.Withdraw{RunID: "r"}, decide.Redact{MessageID: "m", Reason: "r"},
	} {
		b.refuses(c, decide.NotFound)
	}
	b.ok(decide.Create{Payload: created("default")})
	b.refuses(decide.Create{Payload: created("default")}, decide.AlreadyApplied)
	b.refuses(decide.Create{Payload: created("elsewhere")}, decide.Conflict)
	b.refuses(decide.Restore{}, decide.AlreadyApplied)

	run := b.ok(decide.Message{Content: "go"}).RunID
	b.refuses(decide.Archive{}, decide.Conflict)
	b.env.MayStart = false
	waiting := b.ok(decide.Message{Content: "later"}).RunID
	b.ok(decide.Ended{RunID: run})
	b.refuses(decide.Archive{}, decide.Conflict)
	b.ok(decide.Withdraw{RunID: waiting})

	b.ok(decide.Archive{})
	b.refuses(decide.Archive{}, decide.AlreadyApplied)
	b.refuses(decide.Message{Content: "x"}, decide.Conflict)
	b.ok(decide.Restore{})
	b.env.MayStart = true
	b.ok(decide.Message{Content: "x"})
}

// R24: what was recorded is redacted, with a reason; what waits is withdrawn instead.
func TestRedact(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "hello"})
	b.ok(decide.Message{MessageID: "waits", Content: "later"})
	b.refuses(decide.Redact{MessageID: "m"}, decide.Rejected)
	b.refuses(decide.Redact{MessageID: "other", Reason: "r"}, decide.NotFound)
	b.refuses(decide.Redact{MessageID: "waits", Reason: "r"}, decide.NotFound)
	replacement := ""
	b.story()
	b.ok(decide.Redact{MessageID: "m", Reason: "r", DisplayReplacement: &replacement})
	b.tells(`message.redacted m`)
	b.ok(decide.Ended{RunID: run})
	b.ok(decide.Redact{MessageID: "m", Reason: "again"}) // after the run too (R15)
}

// R1: the command that caused a fact stands in it.
func TestFactsNameTheirCommand(t *testing.T) {
	b := open(t)
	b.env.CommandID, b.env.InputID = "c-1", "i-1"
	b.ok(decide.Message{Content: "go"})
	for _, f := range b.list[b.shown:] {
		if e := f.Envelope(); facts.Caused(e) != "c-1" || facts.InputID(e) != "i-1" {
			t.Errorf("%s: caused by %q, input %q", f.Type(), facts.Caused(e), facts.InputID(e))
		}
	}
}

// R1: the facts of a run that waited name the command that brought its message, whoever
// moved the queue; all others name who did.
func TestFollowUpsNameTheirOwnCommand(t *testing.T) {
	says := func(b *bed, n string, c decide.Command) {
		b.env.CommandID, b.env.InputID = "", ""
		if n != "" {
			b.env.CommandID, b.env.InputID = "c-"+n, "i-"+n
		}
		b.ok(c)
	}
	for _, tt := range []struct {
		name    string
		waiting string // who brought the message, "" for one without an id
		stopped bool
		by      decide.Command // moves the queue; nil: the end of the run before
		want    string
	}{
		{"the end of the run before", "2", false, nil, "run.finished: run.started:2 message.user.recorded:2"},
		{"the end, without an id", "", false, nil, "run.finished: run.started: message.user.recorded:"},
		{"a release", "2", true, decide.Release{}, "session.custom:4 run.started:2 message.user.recorded:2"},
		{"another message", "2", true, decide.Message{Content: "x"}, "session.custom:4 run.started:2 message.user.recorded:2"},
		{"another message, without an id", "", true, decide.Message{Content: "x"}, "session.custom:4 run.started: message.user.recorded:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			says(b, tt.waiting, decide.Message{Content: "waits"})
			if tt.stopped {
				says(b, "3", decide.Stop{})
				says(b, "", decide.Ended{RunID: run})
			}
			b.story()
			shown := len(b.list)
			if tt.by == nil {
				says(b, "", decide.Ended{RunID: run})
			} else {
				says(b, "4", tt.by)
			}
			var got []string
			for _, f := range b.list[shown:] {
				e := f.Envelope()
				command, input := strings.TrimPrefix(facts.Caused(e), "c-"), strings.TrimPrefix(facts.InputID(e), "i-")
				if command != input {
					t.Errorf("%s: command %q, input %q", f.Type(), facts.Caused(e), facts.InputID(e))
				}
				got = append(got, string(f.Type())+":"+command)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
