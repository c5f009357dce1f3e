package desk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
)

// That the desk is what the facts add up to is proved in internal/decide, beside every
// decision. Here is what single facts mean.

func add(d *desk.State, list ...narad.Authority) *desk.State {
	for _, f := range list {
		d.Apply(f)
	}
	return d
}

func queued(run string) narad.Authority {
	return facts.Session(facts.InputQueued, facts.Queued{MessageID: "m-" + run, RunID: run, Kind: facts.FollowUp, Content: "x"})
}

func event(run string) narad.Event { return narad.Event{RootRunID: "root", RunID: run} }

func started(run string) *narad.RunStarted { return &narad.RunStarted{Event: event(run)} }

func stop(target string) narad.Authority {
	return &narad.RunStopRequested{Event: event("root"), TargetRunID: target}
}

func TestParking(t *testing.T) {
	cancelled := &narad.RunCancelled{Event: event("root")}
	tests := []struct {
		name string
		list []narad.Authority
		want bool
	}{
		{"a stop with messages waiting", []narad.Authority{started("root"), queued("b"), stop("root"), cancelled}, true},
		{"a stop alone", []narad.Authority{started("root"), stop("root"), cancelled}, false},
		{"not yet ended", []narad.Authority{started("root"), queued("b"), stop("root")}, false},
		{"queued while stopping", []narad.Authority{started("root"), stop("root"), queued("b"), cancelled}, true},
		{"the stop of a nested run", []narad.Authority{started("root"), queued("b"), stop("child"), cancelled}, false},
		{"a new message", []narad.Authority{started("root"), queued("b"), stop("root"), cancelled, queued("c")}, false},
		{"released", []narad.Authority{started("root"), queued("b"), stop("root"), cancelled, facts.Session(facts.QueueReleased, facts.Released{})}, false},
		{"the last was withdrawn", []narad.Authority{started("root"), queued("b"), stop("root"), cancelled, facts.Session(facts.InputWithdrawn, facts.Withdrawn{RunID: "b"})}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := add(&desk.State{}, tt.list...); d.Parked != tt.want {
				t.Errorf("parked %v, want %v: %+v", d.Parked, tt.want, d)
			}
		})
	}
}

func TestQueued(t *testing.T) {
	d := add(&desk.State{}, queued("a"), queued("b"))
	if q, ok := d.Queued("b"); !ok || q.MessageID != "m-b" {
		t.Errorf("got %+v %v, want that of b", q, ok)
	}
	if _, ok := d.Queued("c"); ok {
		t.Error("found what does not wait")
	}
}

func TestEncodeAndDecode(t *testing.T) {
	caused := facts.Session(facts.InputQueued, facts.Queued{MessageID: "m", RunID: "c", Kind: facts.FollowUp, Content: "x"})
	facts.SetCaused(&caused.Event, "command")
	facts.SetInputID(&caused.Event, "input")
	d := add(&desk.State{},
		facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w", RequiredProfiles: []string{"p"}}),
		facts.Session(facts.Posture, facts.Postured{Posture: facts.Detached}),
		facts.Session(facts.AgentRemembered, facts.Remembered{Ref: "r"}),
		started("root"), queued("b"), caused, stop("root"),
		facts.Run("root", "root", facts.Decision, facts.Decided{InterruptID: "i", Members: []facts.MemberDecided{{RequestID: "a", Decision: "deny"}}}),
	)
	again, err := desk.Decode(d.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if w, _ := again.Queued("c"); w.CommandID != "command" || w.InputID != "input" {
		t.Errorf("what waits was brought by %+v, want command and input", w)
	}
	if !again.Detached() || again.Exists() { // the created fact had no time yet
		t.Errorf("detached %v, exists %v", again.Detached(), again.Exists())
	}
	for _, broken := range []string{"", "{}", `{"Version":999,"State":{}}`, `{"Version":2,"State":{"Renamed":1}}`, "[1]"} {
		if _, err := desk.Decode([]byte(broken)); err == nil {
			t.Errorf("decoded %q", broken)
		}
	}
}
