package field_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Case 121. What a reader does not know of a newer host. Fields that it does not know are
// passed over and kept. A type that it does not know fails closed, if its profile was
// claimed or is nobody's; one of a profile that was not claimed takes its place in the
// order and decides nothing. A known type with a broken body and another version of the
// protocol are refused. Reading goes on, and comes to the same result each time.
func TestCase121UnknownTypes(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{ask: {title: \"Sure?\", as: a}}, {say: \"{{a.decision}}\"}]\n")
	b.session("s1")
	run := b.say("s1", "go")
	asked := b.awaitAsk("s1", 1)
	b.eventually("the run is paused", func() bool { return b.head("s1") == asked.SessionSequence+1 })
	real := b.facts("s1") // up to the pause
	n := int64(len(real))

	event := func(at int64, kind, more string) narad.Raw {
		return narad.Raw(fmt.Sprintf(
			`{"type":%q,"protocolVersion":"narad/v1","eventId":"%d.xxxxxxxx","timestamp":"2026-08-05T00:00:00Z","sessionId":"s1","sessionSequence":%d%s}`,
			kind, at, at, more))
	}
	inRun := fmt.Sprintf(`,"rootRunId":%q,"runId":%q,"sequence":%d`, run, run, 1_000)
	custom := `,"name":"newer.fact","value":{"n":1.10},"later":{"field":[1]}`
	for _, tt := range []struct {
		name string
		fact narad.Raw
		// what becomes of it for one who claimed every profile, and for one who claimed none
		all, core string
	}{
		{"type of nobody's profile", event(n+1, "foo.bar", ""), "rejected unknown_event", "rejected unknown_event"},
		{"type in the place of core", event(n+1, "run.granted", inRun), "rejected unknown_event", "rejected unknown_event"},
		{"approval.granted", event(n+1, "approval.granted", `,"interruptId":"`+asked.InterruptID+`","decision":"approve"`), "rejected unknown_event", "rejected unknown_event"},
		{"interrupt.granted", event(n+1, "interrupt.granted", inRun+`,"interruptId":"`+asked.InterruptID+`"`), "rejected unknown_event", "rejected unknown_event"},
		{"type of a profile", event(n+1, "message.sung", inRun), "rejected unknown_event", "ignored profile_not_negotiated"},
		{"unknown fields", event(n+1, "session.custom", custom), "applied", "ignored profile_not_negotiated"},
		{"broken body of a known type", event(n+1, "interrupt.resolved", inRun+`,"interruptId":7,"decision":"approve"`), "rejected invalid_record", "rejected invalid_record"},
		{"another version", narad.Raw(strings.Replace(string(event(n+1, "session.custom", custom)), "narad/v1", "narad/v2", 1)), "rejected unsupported_protocol", "rejected unsupported_protocol"},
	} {
		trace := append(append([]narad.Raw{}, real...), tt.fact)
		// What follows a fact that was refused stands at its place, what follows one that was
		// taken behind it.
		for claim, want := range map[string]string{"all": tt.all, "core": tt.core} {
			next := n + 1
			if !strings.HasPrefix(want, "rejected") {
				next++
			}
			lines := append(trace, event(next, "session.custom", `,"name":"after.all","value":1`))
			for round := range 2 {
				results, state := judge(t, lines, claim)
				if got := results[n]; got != want {
					t.Errorf("%s, profiles %s, round %d: got %q, want %q", tt.name, claim, round, got, want)
				}
				if last := results[n+1]; !strings.HasPrefix(last, "applied") && !strings.HasPrefix(last, "ignored profile") {
					t.Errorf("%s, profiles %s: what follows is %q, want it to be read", tt.name, claim, last)
				}
				if i, ok := state.Interrupt(asked.InterruptID); !ok || !i.Open || i.Decision != "" {
					t.Errorf("%s, profiles %s: the question is %+v, want it open: nothing was granted", tt.name, claim, i)
				}
				for _, m := range state.Messages() {
					if m.Role == narad.RoleAssistant {
						t.Errorf("%s, profiles %s: shown as prose: %q", tt.name, claim, m.Content)
					}
				}
			}
			b.checkAgrees(tt.name, claim, lines, n, want)
		}
	}

	record, err := narad.DecodeStrict(event(1, "session.custom", custom))
	if err != nil {
		t.Fatal(err)
	}
	written, err := narad.Encode(record)
	if err != nil || !strings.Contains(string(written), `"later":{"field":[1]}`) || !strings.Contains(string(written), "1.10") {
		t.Errorf("unknown fields are not kept: %s, %v", written, err)
	}
	b.resolve(asked.InterruptID, "deny", "")
	b.awaitEnd("s1", run)
}

// judge reads a trace as a host must and returns what became of each line.
func judge(t *testing.T, lines []narad.Raw, claim string) (results []string, state *session.State) {
	t.Helper()
	var without narad.Profile
	if claim == "core" {
		without = narad.AllProfiles
	}
	state = session.New(session.Options{Without: without, Remember: session.RememberAll})
	for _, line := range lines {
		got := state.ApplyJSON(line, true)
		results = append(results, strings.TrimSpace(got.Kind.String()+" "+string(got.Code)))
	}
	return results, state
}

// checkAgrees demands the same of the command "narad check", in both strictnesses.
func (b *bed) checkAgrees(name, claim string, lines []narad.Raw, at int64, want string) {
	b.t.Helper()
	var text strings.Builder
	for _, line := range lines {
		text.Write(line)
		text.WriteByte('\n')
	}
	file := filepath.Join(b.t.TempDir(), "trace.jsonl")
	b.write(file, text.String())
	profiles := []string{}
	if claim == "core" {
		profiles = []string{"--profiles", "core"}
	}
	for _, how := range [][]string{nil, {"--lenient"}} {
		args := append(append([]string{"narad", "check", "--json"}, append(how, profiles...)...), file)
		out, code := b.mahati(args...)
		verdicts := strings.Split(out, "\n")
		if int64(len(verdicts)) <= at {
			b.t.Errorf("%s, narad check %v %v: got %s, want a verdict on each line", name, how, profiles, out)
			continue
		}
		line := verdicts[at]
		result, _ := narad.Raw(line).Field("result").IsString()
		reason, _ := narad.Raw(line).Field("code").IsString()
		if got := strings.TrimSpace(result + " " + reason); got != want {
			b.t.Errorf("%s, narad check %v %v: got %q, want %q", name, how, profiles, got, want)
		}
		if refused := strings.HasPrefix(want, "rejected"); refused != (code != 0) {
			b.t.Errorf("%s, narad check %v %v: exit code %d, refused: %v", name, how, profiles, code, refused)
		}
	}
}
