package session_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad/session"
)

// TestNothingOfAnEndedExecutionIsKept plays one workflow after the other, each with a run
// and with states of both, and holds that a state of open work costs the same behind each.
func TestNothingOfAnEndedExecutionIsKept(t *testing.T) {
	p := newPlayer(session.Options{NoDisplay: true}, true)
	var first string
	for n := range 3 {
		for _, text := range []string{
			"workflow.started wf=w@",
			"state.snapshot scope=workflow wf=w@ rev=1",
			"ui.state.snapshot scope=workflow wf=w@ rev=1",
			"run.started run=r@ wf=w@",
			"state.snapshot scope=run run=r@ wf=w@ rev=1",
			"ui.state.snapshot scope=run run=r@ wf=w@ rev=1",
			"run.finished run=r@ wf=w@",
			"workflow.finished wf=w@",
		} {
			mustPlay(t, p, strings.ReplaceAll(text, "@", strconv.Itoa(n)), "applied")
		}
		place := fmt.Sprintf(`"Last":%d,`, p.state.Last())
		kept := strings.Replace(string(p.state.EncodeControl()), place, "", 1)
		if first == "" {
			first = kept
		}
		if kept != first {
			t.Fatalf("behind workflow %d the open work is\n%s\nbehind the first it was\n%s", n, kept, first)
		}
	}
}
