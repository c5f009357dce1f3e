package decide_test

import (
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// R12: an approval that takes several deciders is no decision until they are there; each
// votes once, and who refuses decides alone.
func TestQuorum(t *testing.T) {
	by := func(b *bed, who string) *bed { b.env.Actor = facts.Actor{ID: who}; return b }
	ask := func(t *testing.T) *bed {
		b, run := running(t)
		a := approval(run)
		a.Actions = []string{"approve", "approve_always", "deny"}
		a.Input = narad.Raw(`{"quorum":3}`)
		b.ok(a)
		b.story()
		return b
	}
	word := func(w string) decide.Resolve { return decide.Resolve{InterruptID: "i", Decision: w} }
	t.Run("enough", func(t *testing.T) {
		b := ask(t)
		if a := by(b, "ada").ok(word("approve")); a.Decision != "" || a.Detail != "1 of 3 approvals" {
			t.Errorf("got %+v, want a vote", a)
		}
		if a := b.refuses(word("approve"), decide.AlreadyApplied); a.Decision != "" || a.Detail != "1 of 3 approvals" {
			t.Errorf("got %+v, want what became of the vote", a)
		}
		if a := b.refuses(word("deny"), decide.Conflict); a.Decision != "" || !strings.Contains(a.Detail, "approve") {
			t.Errorf("got %+v, want that ada has voted, and no decision", a)
		}
		by(b, "bob").ok(word("approve_always"))
		b.tells(`
			mahati.decision run-1 i i:approve
			mahati.decision run-1 i i:approve_always`)
		if a := by(b, "cid").ok(word("approve")); a.Decision != "approve" {
			t.Errorf("got %+v, want the decision", a)
		}
		b.tells(`
			interrupt.resolved run-1 i approve
			run.resumed run-1`)
		by(b, "dan").refuses(word("approve"), decide.AlreadyApplied)
		b.refuses(word("deny"), decide.Conflict)
		if len(b.desk.Ballots) > 0 {
			t.Errorf("votes are kept: %v", b.desk.Ballots)
		}
	})
	t.Run("refused", func(t *testing.T) {
		b := ask(t)
		by(b, "ada").ok(word("approve"))
		by(b, "bob").ok(word("deny"))
		b.tells(`
			mahati.decision run-1 i i:approve
			interrupt.resolved run-1 i deny
			run.resumed run-1`)
	})
	t.Run("no pack", func(t *testing.T) {
		b := ask(t)
		by(b, "ada").refuses(decide.Resolve{InterruptID: "i", Decision: "approve", Members: []string{"i"}}, decide.Rejected)
	})
}

// Of a pack each member has its own quorum, and the pack is settled by the last of them.
func TestQuorumOfMembers(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Members = members("a", "b")
	ask.Members[1].Quorum = 2
	b.ok(ask)
	b.story()
	b.env.Actor = facts.Actor{ID: "ada"}
	if a := b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"}); a.Decision != "" {
		t.Errorf("got %+v, want that not all is decided", a)
	}
	b.tells(`mahati.decision run-1 i a:approve b:approve`)
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve"}, decide.AlreadyApplied)
	b.env.Actor = facts.Actor{ID: "bob"}
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	b.tells(`
		mahati.decision run-1 i b:approve
		interrupt.resolved run-1 i approve a:approve b:approve
		run.resumed run-1`)
}

// The policy decides the members that it has a word for; people decide the rest.
func TestPolicyDecidesMembers(t *testing.T) {
	ruled := func(word string) *decide.Ruling { return &decide.Ruling{Rule: "rule " + word, Decision: word} }
	b, run := running(t)
	ask := approval(run)
	ask.Members = members("a", "b", "c")
	ask.Members[0].Ruling, ask.Members[2].Ruling = ruled("approve"), ruled("deny")
	b.ok(ask)
	b.tells(`
		interrupt.requested run-1 i approval approve,deny
		run.paused run-1
		mahati.decision run-1 i a:approve
		mahati.decision run-1 i c:deny`)
	if a := b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve", Members: []string{"c"}}, decide.Conflict); a.Decision != "deny" {
		t.Errorf("got %+v, want the policy's word", a)
	}
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	b.tells(`
		mahati.decision run-1 i b:approve
		interrupt.resolved run-1 i deny a:approve b:approve c:deny
		run.resumed run-1`)

	ask.InterruptID, ask.WaitID = "j", "wj"
	ask.Members[1].Ruling = ruled("approve")
	if a := b.ok(ask); a.Decision != "deny" {
		t.Errorf("got %+v, want that the policy has decided all", a)
	}
	if _, open := b.owner.Interrupt("j"); open {
		if i, _ := b.owner.Interrupt("j"); i.Open {
			t.Error("somebody is asked")
		}
	}
}
