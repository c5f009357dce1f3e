package session_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad/session"
)

// §9.2: whose messages are shown.
func TestTranscript(t *testing.T) {
	p := newPlayer(session.Options{}, true)
	for _, line := range []string{
		"run.started run=r1",
		"message.user.recorded msg=ask run=r1",
		"message.text.started msg=aside1 messageScope=run run=r1", "message.text.completed msg=aside1 run=r1",
		"run.started run=n1 root=r1 parent=r1",
		"message.text.started msg=below messageScope=run run=n1 root=r1", "message.text.completed msg=below run=n1 root=r1",
		"run.finished run=n1 root=r1",
		"run.finished run=r1",
		"message.user.recorded msg=between",
		"run.started run=r2",
		"message.text.started msg=aside2 messageScope=run run=r2", "message.text.completed msg=aside2 run=r2",
	} {
		mustPlay(t, p, line, "applied")
	}
	want := map[string]string{
		"": "ask between aside2", "r1": "ask aside1", "n1": "below", "r2": "aside2", "none": "",
	}
	check := func(when string) {
		t.Helper()
		for run, ids := range want {
			var got []string
			for _, m := range p.state.Transcript(run) {
				got = append(got, m.MessageID)
			}
			if strings.Join(got, " ") != ids {
				t.Errorf("%s, opened %q: got %v, want %s", when, run, got, ids)
			}
		}
	}
	check("while the second run is active")
	mustPlay(t, p, "run.finished run=r2", "applied")
	check("after it")
}
