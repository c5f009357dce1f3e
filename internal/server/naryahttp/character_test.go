package naryahttp_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// Case 77. Characters that come one byte at a time, in answers, reasoning and output, are
// whole in every frame; the pieces join to the source. Half a character waits for its rest
// and is replaced at the end alone, and bytes that are no text stop nothing.
func TestCase77WholeCharacters(t *testing.T) {
	const source = "e\u0301 日本語 👩‍👩‍👧 ß 🎵"
	bytewise := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		call, _ := h.StartTool(ctx, agent.Tool{Name: "t"})
		for i := range len(source) {
			one := source[i : i+1]
			for _, err := range []error{h.Thought(ctx, one), h.ToolOutput(ctx, call, one)} {
				if err != nil {
					return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
				}
			}
			<-time.After(150 * time.Millisecond) // longer than pieces are collected
		}
		_ = h.ToolOutput(ctx, call, "|\xff|\xf0\x9f\x8e") // no text, and half a character
		_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		for i := range len(source) {
			_ = h.Text(ctx, source[i:i+1])
			<-time.After(150 * time.Millisecond)
		}
		_ = h.Text(ctx, "|\xff|\xf0\x9f\x8e")
		return done
	})
	joined := map[string]string{}
	var content string
	events := promise(t, bedOptions{agent: bytewise}, func(b *bed) {
		b.create("one", source)
		pass(time.Hour)
		for _, item := range b.allItems(b.session("one") + "/transcript") {
			if text(item, "kind") == "assistant-message" {
				content = text(item, "content")
			}
		}
	})
	for _, e := range events {
		if !utf8.ValidString(e.data) {
			t.Errorf("a frame that is no UTF-8: %q", e.data)
		}
		switch p := e.Payload.(type) {
		case *narya.MessageDelta:
			channel := cmp.Or(p.Channel, narya.ChannelDisplay)
			joined[string(channel)] += p.Delta
		case *narya.ToolCallUpdate:
			joined["output"] += p.Delta
		}
	}
	want := map[string]string{"reasoning": source, "display": source + "|\uFFFD|", "output": source + "|\uFFFD|"}
	for what, want := range want {
		// The half character at the end is a replacement for each of its bytes or for all.
		if got := joined[what]; strings.TrimRight(got, "\uFFFD") != want || what != "reasoning" && got == want {
			t.Errorf("%s: got %q, want %q and a replacement of what was cut", what, got, want)
		}
	}
	if content != joined["display"] {
		t.Errorf("the entry has %q, the pieces %q", content, joined["display"])
	}
}

// Case 78. On the stream the preview of a call's arguments has whole characters, at most 512
// of each text; the entry has them all.
func TestCase78PreviewOnTheStream(t *testing.T) {
	lyre := func(n int) string { return strings.Repeat("🪕", n) }
	args := fmt.Sprintf(`{"a":"%s","b":"%s","c":"%s","d":"%s","deep":{"x":"%[4]s"},"%s":1.0}`,
		lyre(511), lyre(512), lyre(513), lyre(5000), lyre(600))
	want := fmt.Sprintf(`{"a":"%s","b":"%s","c":"%[2]s…","d":"%[2]s…","deep":{"x":"%[3]s"},"%[4]s":1.0}`,
		lyre(511), lyre(512), lyre(5000), lyre(600))
	calls := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		id, err := h.StartTool(ctx, agent.Tool{Name: "t", Args: narad.Raw(args)})
		if err == nil {
			err = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		}
		if err != nil {
			return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
		}
		return done
	})
	entries := 0
	events := promise(t, bedOptions{agent: calls}, func(b *bed) {
		b.create("one", "hello")
		pass(0)
		for _, item := range b.allItems(b.session("one") + "/transcript") {
			if text(item, "kind") == "tool-call" {
				entries++
				if got := text(item, "input"); got != args {
					t.Errorf("the entry has %d bytes of arguments, want %d", len(got), len(args))
				}
			}
		}
	})
	if got := fields(events, narya.TypeToolCallStarted, "input"); len(got) != 1 || got[0] != want || entries != 1 {
		t.Errorf("%d entries, and previews of %d characters, want %d", entries, utf8.RuneCountInString(strings.Join(got, "")), utf8.RuneCountInString(want))
	}
}
