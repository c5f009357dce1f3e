package script_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

func builtin(t *testing.T, name string) agent.Kind {
	t.Helper()
	kind, err := script.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// demo answers what the demo asks.
func demo(i session.Interrupt) (agenttest.Decision, bool) {
	if i.Kind == "question" {
		return agenttest.Decision{Decision: "0"}, true
	}
	return agenttest.Decision{Decision: "approve"}, true
}

func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		host := agenttest.New(t, agenttest.Options{Answer: demo})
		a := host.Open(builtin(t, "demo"))
		ending := host.Do(a, "The day report is wrong abroad.")
		closeTwice(t, a)
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("got a demo of %s, want 10 to 15 s", took)
		}
		if ending.Outcome != agent.Finished || ending.Usage == nil {
			t.Errorf("got ending %+v, want finished with usage", ending)
		}
		o := outlineOf(host.Facts())
		if len(o.Calls) < 4 || len(o.Decisions) != 2 || len(o.Runs) != 3 {
			t.Errorf("got calls %v, decisions %v, runs %v; want an explorer, a search, an edit with its gate, a question and tests", o.Calls, o.Decisions, o.Runs)
		}
		closed(t, host)
	})
}

// TestDemoCut kills the host at every place of the demo.
func TestDemoCut(t *testing.T) {
	kind := builtin(t, "demo")
	s := &scenario{name: "demo", kind: kind, prompts: []string{"fix it"}}
	s.answers = map[string]agenttest.Decision{"": {Decision: "0"}, "Change report/day.go?": {Decision: "approve"}}
	var want outline
	batches := 0
	synctest.Test(t, func(t *testing.T) {
		host := s.play(t, agenttest.Options{}, never)
		want, batches = outlineOf(host.Facts()), host.Batches()
	})
	for n := 2; n <= batches; n++ {
		for _, cut := range []agenttest.Cut{{After: n}, {Before: n}} {
			synctest.Test(t, func(t *testing.T) {
				host := s.play(t, agenttest.Options{Cut: cut}, never)
				s.same(t, host, want)
			})
			if t.Failed() {
				t.Fatalf("cut %+v", cut)
			}
		}
	}
}

func TestEcho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{})
		a := host.Open(builtin(t, "echo"))
		host.Do(a, "héllo\nthere")
		closeTwice(t, a)
		messages := host.Snapshot().Messages
		if len(messages) != 2 || !strings.HasPrefix(messages[1].Content, "You said: héllo\nthere\n") {
			t.Errorf("got messages %+v, want the prompt and an answer with it", messages)
		}
	})
}

func TestSteerRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := scriptOf(t, script.Options{}, `delay: 10s`, `say: done`)
		if kind.Steers() {
			t.Error("got Steers true of a script without a steered step")
		}
		host := agenttest.New(t, agenttest.Options{})
		a := host.Open(kind)
		message := agent.Message{MessageID: "m", Content: "hey"}
		if err := a.Steer(context.Background(), message); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("steer an idle agent: got %v, want unsupported", err)
		}
		run := host.Start(a, "go")
		synctest.Wait()
		if err := run.Steer(a, "hey"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("steer: got %v, want unsupported", err)
		}
		run.Wait()
	})
}

func TestSteerable(t *testing.T) {
	if !scriptOf(t, script.Options{}, `steered: {within: 1s}`).Steers() {
		t.Error("got Steers false of a script with a steered step")
	}
}

// TestCrashHappensOnce: a crash step ends the host the first time it is come to.
func TestCrashHappensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crashes := 0
		var host *agenttest.Session
		kind := scriptOf(t, script.Options{Crash: func() { crashes++; host.Cut() }},
			`say: before`, `crash: true`, `say: between`, `repeat: {times: 2, steps: [{crash: true}]}`, `say: after`)
		host = agenttest.New(t, agenttest.Options{})
		a := host.Open(kind)
		host.Do(a, "go")
		for lives := 0; host.Dead() && lives < 10; lives++ {
			closeTwice(t, a)
			a = host.Open(kind)
			host.Resume(a, agenttest.Cut{}).Wait()
		}
		closeTwice(t, a)
		if crashes != 3 {
			t.Errorf("got %d crashes, want 3", crashes)
		}
		if got := outlineOf(host.Facts()).Texts["root 1"]; strings.Join(got, ",") != "before,between,after" {
			t.Errorf("got texts %q, want each once", got)
		}
		closed(t, host)
	})
}

// TestWaitsBehindAreNotRepeated: a delay that was waited for before a restart is not
// waited for again, and one that was not is.
func TestWaitsBehindAreNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := scriptOf(t, script.Options{}, `delay: 1h`, `say: one`, `delay: 1m`, `say: two`)
		host := agenttest.New(t, agenttest.Options{Cut: agenttest.Cut{After: 2}}) // the first message
		a := host.Open(kind)
		host.Do(a, "go")
		closeTwice(t, a)
		a = host.Open(kind)
		began := time.Now()
		host.Resume(a, agenttest.Cut{}).Wait()
		closeTwice(t, a)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("got %s after the restart, want the second delay alone", took)
		}
		if got := outlineOf(host.Facts()).Texts["root 1"]; strings.Join(got, ",") != "one,two" {
			t.Errorf("got texts %q, want one,two; facts:\n%s", got, host.Story())
		}
	})
}

// TestStopThenCrash: a stop that was recorded stands over a crash (R14).
func TestStopThenCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := scriptOf(t, script.Options{}, `tool: {name: slow, delay: 1h}`, `say: wrong`)
		host := agenttest.New(t, agenttest.Options{Cut: agenttest.Cut{After: 3}})
		a := host.Open(kind)
		run := host.Start(a, "go")
		synctest.Wait()
		run.Stop()
		run.Wait()
		closeTwice(t, a)
		a = host.Open(kind)
		if run := host.Resume(a, agenttest.Cut{}); run != nil {
			t.Error("the stopped run goes on")
		}
		closeTwice(t, a)
		if state := host.Snapshot().Runs[run.RunID].State; state != session.Cancelled {
			t.Errorf("got state %s, want cancelled", state)
		}
		closed(t, host)
	})
}

// TestOpenQuestionSurvivesRestart: what was open stays open and is decided after the
// restart, by hand (R17).
func TestOpenQuestionSurvivesRestart(t *testing.T) {
	for name, step := range map[string]string{
		"ask":      `ask: {title: t, as: it}`,
		"question": `question: {text: "what?", options: [a, b], as: it}`,
		"permit":   `tool: {name: x, permit: {title: t}, as: it}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kind := scriptOf(t, script.Options{}, step, `say: "{{it.decision}}"`)
				host := agenttest.New(t, agenttest.Options{})
				a := host.Open(kind)
				run := host.Start(a, "go")
				synctest.Wait()
				before := host.Waiting()
				host.Cut()
				run.Wait()
				closeTwice(t, a)
				a = host.Open(kind)
				run = host.Resume(a, agenttest.Cut{})
				synctest.Wait()
				after := host.Waiting()
				if len(before) != 1 || len(after) != 1 || before[0].InterruptID != after[0].InterruptID {
					t.Fatalf("got open %+v before and %+v after, want the same one", before, after)
				}
				decision := after[0].Actions[0]
				if err := host.Resolve(after[0].InterruptID, agenttest.Decision{Decision: decision}); err != nil {
					t.Fatal(err)
				}
				run.Wait()
				closeTwice(t, a)
				if got := outlineOf(host.Facts()).Texts["root 1"]; len(got) != 1 || got[0] != decision {
					t.Errorf("got texts %q, want %q; facts:\n%s", got, decision, host.Story())
				}
				closed(t, host)
			})
		})
	}
}

// TestFaults: what a script cannot do ends its run with a fault, legally.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct{ step, code string }{
		"arguments too large": {`tool: {name: x, args: {text: "{{prompt}}{{prompt}}"}}`, "too_large"},
		"text too long":       {`say: "` + strings.Repeat("{{prompt}}", 20) + `"`, "too_large"},
		"endless":             {`repeat: {times: 10000, steps: [{repeat: {times: 10000, steps: [{delay: 0s}]}}]}`, "script_endless"},
		"own code":            {`fail: {code: mine, message: "{{turn}}"}`, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := agenttest.New(t, agenttest.Options{})
				a := host.Open(scriptOf(t, script.Options{}, `progress: {label: busy}`, `agent: {name: a, steps: [{say: x}]}`, test.step))
				ending := host.Do(a, strings.Repeat("long ", 60_000))
				closeTwice(t, a)
				if ending.Outcome != agent.Failed || ending.Code != test.code {
					t.Errorf("got ending %+v, want failed with %s", ending, test.code)
				}
				closed(t, host)
				if last, ok := host.Facts()[len(host.Facts())-1].(*narad.RunError); !ok || last.Code != test.code {
					t.Errorf("got last fact %+v, want run.error %s", last, test.code)
				}
			})
		})
	}
}
