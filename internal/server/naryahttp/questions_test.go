package naryahttp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narya"
)

// inquires asks questions, and says what came of it.
func inquires(questions ...agent.Question) agent.Kind {
	return acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		answer, err := h.Ask(ctx, agent.Ask{Title: "About the export", Questions: questions, ExpiresIn: time.Hour})
		if err != nil {
			return ending(err)
		}
		_ = h.Text(ctx, answer.Decision+" "+string(answer.Answers))
		return done
	})
}

var (
	oneOf  = agent.Question{Text: "Which?", Options: []string{"a", "b", "c"}, Recommended: 2}
	typing = agent.Question{Text: "Where?", Options: []string{"here"}, Recommended: -1, Free: true}
)

// asking is the one question that waits.
func (b *bed) asking() reply {
	b.t.Helper()
	synctest.Wait()
	items := b.want(b.get("/v1/questions"), 200).items("items")
	if len(items) != 1 {
		b.t.Fatalf("%d questions wait, want one", len(items))
	}
	return reply{body: items[0]}
}

func (b *bed) reply(id, body string) reply {
	b.t.Helper()
	return b.post("/v1/questions/"+id+"/answer", body)
}

// said is what the agent says in events.
func said(events []event) (text string) {
	for _, e := range events {
		if p, ok := e.Payload.(*narya.MessageDelta); ok {
			text += p.Delta
		}
	}
	return text
}

// Field case 30: a question is listed for whoever comes later, as the stream told of it,
// and answered by the places in which its options are drawn.
func TestQuestion(t *testing.T) {
	bubble(t, bedOptions{agent: inquires(oneOf)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "go")
		asked := b.asking()
		want := `[{"header":"About the export","question":"Which?","options":[{"value":"c","recommended":true},{"value":"a"},{"value":"b"}]}]`
		if asked.field("questions") != want || asked.field("sessionId") != uuid("s1") || asked.field("laneId") != narya.MainLaneID("s1") || asked.field("expiresAt") == "" {
			t.Errorf("got %s", asked.body)
		}
		var told *narya.QuestionAsked
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.QuestionAsked); ok {
				told = p
			}
		}
		id := asked.field("questionId")
		if told == nil || told.QuestionID != id || told.ToolCallID != asked.field("toolCallId") {
			t.Fatalf("the stream told of %+v, the list of %s", told, asked.body)
		}
		b.wantError(b.decide(id, "deny", ""), narya.CodePermissionNotFound)
		if got := b.pendingIDs(""); len(got) != 0 {
			t.Errorf("a question is a permission: %v", got)
		}
		for _, body := range []string{
			`{"answers":[{"options":[3]}]}`, `{"answers":[{"options":[-1]}]}`, `{"answers":[{"options":[0,1]}]}`,
			`{"answers":[{"text":"own"}]}`, `{"answers":[{}]}`,
		} {
			b.wantError(b.reply(id, body), narya.CodeInvalid, "answers[0]")
		}
		for _, body := range []string{`{}`, `{"answers":[]}`, `{"answers":[{"options":[0]},{"options":[0]}]}`, `{"answers":[{"options":[0]}],"dismiss":true}`} {
			b.wantError(b.reply(id, body), narya.CodeInvalid, "answers")
		}
		b.wantError(b.reply(id, `{"answers":[{"options":["0"]}]}`), narya.CodeInvalid, "answers[0].options[0]")
		b.wantError(b.reply(id, `no`), narya.CodeMalformed)
		if len(stream.now()) != 0 {
			t.Error("a refusal was told on the stream")
		}
		first := b.want(b.reply(id, `{"answers":[{"options":[1]}]}`), 200)
		events := stream.now()
		if said(events) != "0 " || count(events, narya.TypeToolCallFinished) != 1 || count(events, narya.TypePermissionDecided) != 0 {
			t.Errorf("said %q, got %v", said(events), kinds(events))
		}
		if again := b.want(b.reply(id, `{"answers":[{"options":[1]}]}`), 200); again.body != first.body {
			t.Errorf("told again: got %s, want %s", again, first)
		}
		if other := b.want(b.as("other", access.Grant{Roles: []access.Role{access.Decide}}).reply(id, `{"answers":[{"options":[1]}]}`), 200); other.body != first.body {
			t.Errorf("answered alike by somebody else: got %s, want %s", other, first)
		}
		b.wantError(b.reply(id, `{"answers":[{"options":[0]}]}`), narya.CodeAlreadyDecided)
		b.wantError(b.reply(id, `{"dismiss":true}`), narya.CodeAlreadyDecided)
		b.want(b.get("/v1/questions"), 200)
		if len(stream.now()) != 0 {
			t.Error("what came too late was told on the stream")
		}
	})
}

func TestQuestionsAnsweredByTyping(t *testing.T) {
	bubble(t, bedOptions{agent: inquires(oneOf, typing)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "go")
		asked := b.asking()
		if !strings.Contains(asked.field("questions"), `{"value":"Something else","other":true}`) {
			t.Errorf("got %s, want a row for typing", asked.body)
		}
		id := asked.field("questionId")
		b.wantError(b.reply(id, `{"answers":[{"options":[0]},{"options":[1]}]}`), narya.CodeInvalid, "answers[1]")
		b.wantError(b.reply(id, `{"answers":[{"options":[0]},{"text":"\u0007"}]}`), narya.CodeInvalid, "answers[1].text")
		b.want(b.reply(id, `{"answers":[{"options":[0]},{"options":[1],"text":"there"}]}`), 200)
		if got := said(stream.now()); got != `answer [{"options":[2]},{"text":"there"}]` {
			t.Errorf("got %s", got)
		}
	})
}

func TestQuestionDismissedAndExpired(t *testing.T) {
	bubble(t, bedOptions{agent: inquires(oneOf)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		id := b.asking().field("questionId")
		if got := b.want(b.reply(id, `{"dismiss":true}`), 200); got.field("dismissed") != "true" {
			t.Errorf("got %s", got)
		}
		b.want(b.withKey("k", "POST", "/v1/questions/"+id+"/answer", `{"dismiss":true}`), 200)
		b.wantError(b.reply(id, `{"answers":[{"options":[0]}]}`), narya.CodeAlreadyDecided)
		b.say("s1", "again")
		id = b.asking().field("questionId")
		pass(2 * time.Hour)
		b.wantError(b.reply(id, `{"answers":[{"options":[0]}]}`), narya.CodeExpired)
		b.wantError(b.reply(id, `{"dismiss":true}`), narya.CodeExpired)
		if got := b.want(b.get("/v1/permissions/decisions"), 200); len(got.items("items")) != 0 {
			t.Errorf("a question stands in the audit of permissions: %s", got)
		}
	})
}

// Field case 31: a question of an agent that can resume is asked still after a restart.
func TestQuestionAfterRestart(t *testing.T) {
	const text = "script: 1\nsteps:\n- question: {text: Which one, options: [a, b], recommended: 1, as: q}\n- say: \"{{q.decision}}\"\n"
	bubble(t, bedOptions{agent: scripted(t, text)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		before := b.asking()
		b.close()
		b = begin(t, bedOptions{agent: scripted(t, text), before: b})
		stream := b.stream("", "")
		after := b.asking()
		if after.body != before.body {
			t.Fatalf("got %s, want %s", after.body, before.body)
		}
		b.want(b.reply(after.field("questionId"), `{"answers":[{"options":[0]}]}`), 200)
		if events := stream.now(); count(events, narya.TypeQuestionAsked) != 0 || count(events, narya.TypeTurnFinished) != 1 {
			t.Errorf("got %v", kinds(events))
		}
	})
}
