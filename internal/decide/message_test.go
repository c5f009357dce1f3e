package decide_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad/session"
)

// R9: the prompt stands right after the start of its run, in the same batch.
func TestMessageStartsARun(t *testing.T) {
	b := open(t)
	a := b.ok(decide.Message{MessageID: "m-1", Content: "go"})
	b.tells(`
		run.started run-1 idle>running
		message.user.recorded run-1 m-1 session go`)
	if a.RunID != b.runs()[0] {
		t.Errorf("got %+v, want its run", a)
	}
}

func TestMessageRefused(t *testing.T) {
	b := open(t)
	b.refuses(decide.Message{}, decide.Rejected)
	b.refuses(decide.Message{Content: "x", AttachmentIDs: []string{"a"}}, decide.Rejected)
	// What can be queued must fit when it is recorded, however it is spelled in JSON.
	b.refuses(decide.Message{Content: strings.Repeat("x", 500_000)}, decide.Rejected)
	b.refuses(decide.Message{Content: strings.Repeat("\x01", 100_000)}, decide.Rejected)
	b.ok(decide.Message{MessageID: "m", Content: strings.Repeat("x", 262_144)})
	b.refuses(decide.Message{MessageID: "m", Content: "other"}, decide.Conflict)
}

// Freshness of ids: a client cannot begin a message under the id of an assistant's.
func TestMessageIDOfAnother(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Say{RunID: run, MessageID: "said", Text: "hello"})
	b.ok(decide.Ended{RunID: run})
	b.refuses(decide.Message{MessageID: "said", Content: "x"}, decide.Conflict)
}

// R16: while a run is active a message waits, is refused, or steers.
func TestWhenBusy(t *testing.T) {
	b, run := running(t)
	if a := b.refuses(decide.Message{Content: "x", WhenBusy: decide.WhenBusyReject}, decide.Conflict); a.RunID != run {
		t.Errorf("reject: got %+v, want it to name %s", a, run)
	}
	b.refuses(decide.Message{Content: "x", WhenBusy: decide.WhenBusySteer}, decide.Unsupported)
	b.env.CanSteer = true
	b.ok(decide.Message{MessageID: "s", Content: "left", WhenBusy: decide.WhenBusySteer})
	b.ok(decide.Message{Content: "next"})
	b.tells(`
		message.user.recorded run-1 s session left
		mahati.input.queued run-2 follow-up next`)
	b.ok(decide.Stop{})
	b.refuses(decide.Message{Content: "x", WhenBusy: decide.WhenBusySteer}, decide.Conflict)
}

// R16: a follow-up starts in the batch of the terminal before it; there is one change
// of status for the whole chain.
func TestFollowUpsInOrder(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Message{MessageID: "m-2", Content: "two"})
	b.ok(decide.Message{MessageID: "m-3", Content: "three"})
	b.story()
	b.ok(decide.Ended{RunID: run})
	b.tells(`
		run.finished run-1
		run.started run-2
		message.user.recorded run-2 m-2 session two queued`)
	b.ok(decide.Ended{RunID: b.runs()[1], Ending: decide.Ending{State: session.Failed, Code: "x", Message: "y"}})
	b.tells(`
		run.error run-2 x
		run.started run-3
		message.user.recorded run-3 m-3 session three queued`)
	b.ok(decide.Ended{RunID: b.runs()[2]})
	b.tells(`run.finished run-3 running>idle`)
	b.idle()
}

func TestQueueIsBounded(t *testing.T) {
	b, _ := running(t)
	for range b.env.QueueLimit {
		b.ok(decide.Message{Content: "x"})
	}
	b.refuses(decide.Message{Content: "x"}, decide.Conflict)
}

// R16: a stop parks the queue; the next message or a release moves it, in order.
func TestStopParksTheQueue(t *testing.T) {
	for _, move := range []struct {
		name     string
		by       decide.Command
		mayStart bool
		want     string
	}{
		{"release", decide.Release{}, true, `
			mahati.queue.released
			run.started run-2 waiting>running
			message.user.recorded run-2 m-2 session two queued`},
		{"message", decide.Message{Content: "three"}, true, `
			mahati.input.queued run-3 follow-up three
			run.started run-2 waiting>running
			message.user.recorded run-2 m-2 session two queued`},
		{"release without a place", decide.Release{}, false, `mahati.queue.released`},
		{"message without a place", decide.Message{Content: "three"}, false, `mahati.input.queued run-3 follow-up three`},
	} {
		t.Run(move.name, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Message{MessageID: "m-2", Content: "two"})
			b.ok(decide.Stop{})
			b.story()
			b.ok(decide.Ended{RunID: run})
			b.tells(`run.cancelled run-1 stopped running>waiting`)
			if !b.desk.Parked {
				t.Fatal("the queue is not parked")
			}
			b.refuses(decide.StartNext{}, decide.AlreadyApplied)
			b.refuses(decide.Message{Content: "x", WhenBusy: decide.WhenBusyReject}, decide.Conflict)
			b.env.MayStart = move.mayStart
			b.ok(move.by)
			b.tells(move.want)
			if b.desk.Parked {
				t.Error("the queue is still parked")
			}
			if !move.mayStart {
				b.refuses(decide.StartNext{}, decide.AlreadyApplied)
				b.env.MayStart = true
				b.ok(decide.StartNext{})
				b.tells(`
					run.started run-2 waiting>running
					message.user.recorded run-2 m-2 session two queued`)
			}
			b.refuses(decide.Release{}, decide.AlreadyApplied)
		})
	}
}

// A start beyond the places waits (R16), with its status told.
func TestStartWithoutAPlace(t *testing.T) {
	b := open(t)
	b.env.MayStart = false
	run := b.ok(decide.Message{MessageID: "m", Content: "go"}).RunID
	b.ok(decide.Message{Content: "more"})
	b.tells(`
		mahati.input.queued run-1 start go idle>waiting
		mahati.input.queued run-2 follow-up more`)
	b.env.MayStart = true
	b.ok(decide.StartNext{})
	b.tells(`
		run.started run-1 waiting>running
		message.user.recorded run-1 m session go queued`)
	// The place may be lost before the end: the next one waits for another.
	b.env.MayStart = false
	b.ok(decide.Ended{RunID: run})
	b.tells(`run.finished run-1 running>waiting`)
}

// Field case 63: what has not begun is withdrawn, and nothing of it is ever told.
func TestWithdraw(t *testing.T) {
	b, run := running(t)
	second := b.ok(decide.Message{Content: "two"}).RunID
	third := b.ok(decide.Message{Content: "three"}).RunID
	b.story()
	b.ok(decide.Stop{RootRunID: second})
	b.tells(`mahati.input.withdrawn run-2`)
	b.refuses(decide.Stop{RootRunID: second}, decide.AlreadyApplied)
	b.refuses(decide.Withdraw{RunID: second}, decide.AlreadyApplied)
	b.refuses(decide.Withdraw{RunID: run}, decide.Conflict)
	b.refuses(decide.Withdraw{RunID: "nothing"}, decide.NotFound)
	b.ok(decide.Ended{RunID: run})
	b.refuses(decide.Withdraw{RunID: run}, decide.Conflict)
	if got := b.owner.ActiveRootRunID(); got != third {
		t.Errorf("the active run is %s, want %s", got, third)
	}
}
