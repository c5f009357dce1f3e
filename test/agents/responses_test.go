package agents_test

import (
	"encoding/json"
	"net/http"
)

// responses speaks the Responses API of OpenAI.
func (m *model) responses(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Tools []struct{ Name string }
		Input []struct{ Type string }
	}
	_ = json.Unmarshal(body, &in)
	var names []string
	for _, t := range in.Tools {
		names = append(names, t.Name)
	}
	a := ask{shell: pick(names)}
	if n := len(in.Input); n > 0 {
		a.answered = in.Input[n-1].Type == "function_call_output"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s := responseStream{w: w}
	s.send("response.created", object{"response": object{"id": "resp_1"}})
	switch {
	case a.answered || a.shell == "":
		s.message(lastWords)
	default:
		s.reasoning(thought)
		s.beginMessage(firstWords)
		if m.pause(r) {
			return
		}
		s.endMessage(firstWords)
		s.item("response.output_item.done", object{
			"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": a.shell, "arguments": m.arguments(a.shell),
		})
	}
	s.send("response.completed", object{"response": object{"id": "resp_1", "usage": object{
		"input_tokens": 11, "input_tokens_details": nil, "output_tokens": 5, "output_tokens_details": nil, "total_tokens": 16}}})
}

// responseStream writes the events of one response.
type responseStream struct {
	w     http.ResponseWriter
	items int
}

func (s *responseStream) send(name string, v object) {
	v["type"] = name
	event(s.w, name, v)
}

func (s *responseStream) item(name string, item object) {
	s.send(name, object{"output_index": s.items, "item": item})
	if name == "response.output_item.done" {
		s.items++
	}
}

func (s *responseStream) reasoning(text string) {
	item := object{"type": "reasoning", "id": "rs_1", "summary": []any{}}
	s.item("response.output_item.added", item)
	s.send("response.reasoning_summary_part.added", object{"item_id": "rs_1", "output_index": s.items, "summary_index": 0})
	s.send("response.reasoning_summary_text.delta", object{"item_id": "rs_1", "output_index": s.items, "summary_index": 0, "delta": text})
	item["summary"] = []any{object{"type": "summary_text", "text": text}}
	s.item("response.output_item.done", item)
}

func (s *responseStream) message(text string) {
	s.beginMessage(text)
	s.endMessage(text)
}

func (s *responseStream) beginMessage(text string) {
	s.item("response.output_item.added", object{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{}})
	s.send("response.output_text.delta", object{"item_id": "msg_1", "output_index": s.items, "content_index": 0, "delta": text})
}

func (s *responseStream) endMessage(text string) {
	s.item("response.output_item.done", object{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{
		object{"type": "output_text", "text": text, "annotations": []any{}}}})
}
