package decide_test

import (
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
