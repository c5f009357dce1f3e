package acp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
)

// An agent is asked to run on what was chosen, once, in the way in which it lets its client
// choose; one that cannot fails the run.
func TestChosenModel(t *testing.T) {
	chosen := agent.Chosen{Provider: "p", Model: "two", Variant: "high"}
	for _, tt := range []struct {
		name, words string
		chosen      agent.Chosen
		want, code  string
	}{
		{"settings", "models=one,two levels=low,high", chosen, "session/set_config_option the-model two; session/set_config_option the-thought_level high", ""},
		{"by both names", "models=p/one,p/two", chosen, "session/set_config_option the-model p/two", ""},
		{"what it has", "models=two,one levels=high,low", chosen, "", ""},
		{"a preset that it has not", "models=one,two levels=low", chosen, "session/set_config_option the-model two", ""},
		{"before there were settings", "oldmodels=one,two", chosen, "session/set_model two ", ""},
		{"nobody chose", "models=one,two", agent.Chosen{Style: "Be brief."}, "", ""},
		{"another model", "models=one,three", chosen, "", agent.CodeNoModel},
		{"no choice", "stderr=x", chosen, "", agent.CodeNoModel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := set(t, agenttest.Options{Chosen: tt.chosen}, strings.Fields(tt.words)...)
			first := s.Do(s.agent, "chosen")
			if first.Code != tt.code || strings.TrimSpace(s.says()) != strings.TrimSpace(tt.want) {
				t.Fatalf("got %q and code %q, want %q and %q", s.says(), first.Code, tt.want, tt.code)
			}
			if tt.code != "" {
				return
			}
			s.Do(s.agent, "chosen") // it is not told twice
			if got := s.says(); strings.TrimSpace(got) != strings.TrimSpace(tt.want+tt.want) && tt.words != "models=one,two levels=low" {
				t.Errorf("after the second run it was told %q", got)
			}
			round := "acp one" // what the agent says to have, where nobody chose
			if tt.chosen.Model != "" {
				round = "p two"
			}
			for _, f := range s.Facts() {
				if r, ok := facts.Read[facts.Rounded](f, facts.Round); ok && r.Provider+" "+r.Model != round {
					t.Errorf("the round is %+v, want %s", r, round)
				}
			}
		})
	}
}

// What an agent can run on is configured, or what its last session told.
func TestOfferedModels(t *testing.T) {
	s := set(t, agenttest.Options{}, "models=one,p/two", "levels=low,high")
	offers := s.kind.(agent.Offers)
	if list, known := offers.Models(); known || len(list) > 0 {
		t.Errorf("before any session: %v %v", list, known)
	}
	s.Do(s.agent, "say x")
	levels := []string{"low", "high"}
	want := []agent.Model{{Provider: "acp", ID: "one", Variants: levels}, {Provider: "p", ID: "two", Variants: levels}}
	list, known := offers.Models()
	if diff := cmp.Diff(want, list); diff != "" || !known {
		t.Error(known, diff)
	}
	if m, ok := offers.DefaultModel(); ok {
		t.Errorf("what an agent told is given to who chose nothing: %v", m)
	}
	fixed := []agent.Model{{Provider: "p", ID: "m"}}
	s = setWith(t, agenttest.Options{}, acp.Options{Command: acptest.Command("models=one"), Models: fixed})
	if list, known := s.kind.(agent.Offers).Models(); !known || !slices.EqualFunc(list, fixed, func(a, b agent.Model) bool { return a.ID == b.ID }) {
		t.Errorf("configured: %v %v", list, known)
	}
	if m, ok := s.kind.(agent.Offers).DefaultModel(); !ok || m.ID != "m" {
		t.Errorf("the default is %v %v", m, ok)
	}
}

// The style and what was said before stand in front of the prompt.
func TestPreface(t *testing.T) {
	s := set(t, agenttest.Options{
		Chosen: agent.Chosen{Style: "Be brief."}, Before: []agent.Said{{Role: "user", Content: "earlier"}},
	})
	s.Do(s.agent, "preface")
	want := "This conversation goes on from an earlier one. Its last messages were:||user: earlier|; How to answer: Be brief.; "
	if got := s.says(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
