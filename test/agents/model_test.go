package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// model is an endpoint that plays a model: asked with tools it calls the shell once, and
// when it is told the outcome it is done. It speaks the chat and the Responses API of OpenAI,
// that of Gemini and that of Anthropic.
type model struct {
	*httptest.Server
	command string
	hang    chan struct{} // not nil: the first words are all that comes until it is closed

	mu       sync.Mutex
	requests []string // guarded by mu: method and path of each
}

func newModel(t *testing.T, command string) *model {
	m := &model{command: command}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// ask is what matters of a request, whatever the API.
type ask struct {
	shell    string // the name of the tool that runs commands, "" for none
	answered bool   // the last message tells the outcome of a call
}

const thought, firstWords, lastWords = "The user wants a file.", "I will make the file. ", "The model is done."

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 32<<20))
	if err != nil {
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, r.Method+" "+r.URL.Path)
	m.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		m.openAI(w, r, body)
	case strings.Contains(r.URL.Path, "GenerateContent"), strings.Contains(r.URL.Path, "generateContent"):
		m.gemini(w, r, body)
	case strings.HasSuffix(r.URL.Path, "/responses"):
		m.responses(w, r, body)
	case strings.HasSuffix(r.URL.Path, "/v1/messages"):
		m.anthropic(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

// shells are the names under which agents offer a shell.
var shells = []string{"bash", "run_shell_command", "Bash", "exec_command", "shell"}

func pick(names []string) string {
	for _, shell := range shells {
		for _, name := range names {
			if name == shell {
				return name
			}
		}
	}
	return ""
}

// arguments are those of a shell. Some agents refuse one that they do not know, one that
// others demand.
func (m *model) arguments(shell string) string {
	args := object{"command": m.command, "description": "Makes a file"}
	switch shell {
	case "run_shell_command":
		args["is_background"] = false
	case "exec_command": // codex asks where the model does
		args = object{"cmd": m.command, "sandbox_permissions": "require_escalated", "justification": "Makes a file"}
	}
	return string(encode(args))
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// event writes one event of a stream.
func event(w http.ResponseWriter, name string, v any) {
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", encode(v))
	w.(http.Flusher).Flush()
}

// pause waits, if the model is to hang, until the client is gone.
func (m *model) pause(r *http.Request) bool {
	if m.hang == nil {
		return false
	}
	select {
	case <-m.hang:
	case <-r.Context().Done():
	}
	return true
}

type object = map[string]any

func (m *model) openAI(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Stream bool
		Tools  []struct{ Function struct{ Name string } }
		// The rest of a message has several shapes.
		Messages []struct{ Role string }
	}
	_ = json.Unmarshal(body, &in)
	var names []string
	for _, t := range in.Tools {
		names = append(names, t.Function.Name)
	}
	a := ask{shell: pick(names), answered: len(in.Messages) > 0 && in.Messages[len(in.Messages)-1].Role == "tool"}
	usage := object{"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
	if !in.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(object{"id": "x", "object": "chat.completion", "model": "scripted", "usage": usage, "choices": []any{
			object{"index": 0, "finish_reason": "stop", "message": object{"role": "assistant", "content": "A title"}}}}))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta object, finish any) {
		event(w, "", object{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{
			object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	switch {
	case a.answered || a.shell == "":
		send(object{"role": "assistant", "content": lastWords[:9]}, nil)
		send(object{"content": lastWords[9:]}, "stop")
	default:
		send(object{"role": "assistant", "reasoning_content": thought}, nil)
		send(object{"content": firstWords}, nil)
		if m.pause(r) {
			return
		}
		send(object{"tool_calls": []any{object{"index": 0, "id": "call_1", "type": "function", "function": object{
			"name": a.shell, "arguments": m.arguments(a.shell)}}}}, nil)
		send(object{}, "tool_calls")
	}
	event(w, "", object{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{}, "usage": usage})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *model) gemini(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Tools []struct {
			FunctionDeclarations []struct{ Name string }
		}
		Contents []struct {
			Parts []struct{ FunctionResponse json.RawMessage }
		}
	}
	_ = json.Unmarshal(body, &in)
	var names []string
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			names = append(names, f.Name)
		}
	}
	a := ask{shell: pick(names)}
	if n := len(in.Contents); n > 0 {
		for _, p := range in.Contents[n-1].Parts {
			a.answered = a.answered || p.FunctionResponse != nil
		}
	}
	answer := func(finish string, parts ...any) object {
		c := object{"index": 0, "content": object{"role": "model", "parts": parts}}
		if finish != "" {
			c["finishReason"] = finish
		}
		return object{"candidates": []any{c}, "modelVersion": "scripted", "usageMetadata": object{
			"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}}
	}
	if !strings.Contains(r.URL.Path, "stream") {
		w.Header().Set("Content-Type", "application/json")
		text := `{"model_choice":"flash","reasoning":"simple","next_speaker":"user","complexity_score":1,"complexity_reasoning":"simple"}`
		_, _ = w.Write(encode(answer("STOP", object{"text": text})))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if a.answered || a.shell == "" {
		event(w, "", answer("STOP", object{"text": lastWords}))
		return
	}
	event(w, "", answer("", object{"text": thought, "thought": true}))
	event(w, "", answer("", object{"text": firstWords}))
	if m.pause(r) {
		return
	}
	var args any
	_ = json.Unmarshal([]byte(m.arguments(a.shell)), &args)
	event(w, "", answer("STOP", object{"functionCall": object{"name": a.shell, "args": args}}))
}

func (m *model) anthropic(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &in)
	var names []string
	for _, t := range in.Tools {
		names = append(names, t.Name)
	}
	a := ask{shell: pick(names)}
	if n := len(in.Messages); n > 0 {
		a.answered = bytes.Contains(in.Messages[n-1].Content, []byte(`"tool_result"`))
	}
	usage := object{"input_tokens": 11, "output_tokens": 5}
	message := object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil, "usage": usage}
	if !in.Stream {
		w.Header().Set("Content-Type", "application/json")
		message["content"], message["stop_reason"] = []any{object{"type": "text", "text": "A title"}}, "end_turn"
		_, _ = w.Write(encode(message))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", object{"type": "message_start", "message": message})
	block := func(i int, start, delta object) {
		event(w, "content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
		event(w, "content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
	}
	stop := func(i int) { event(w, "content_block_stop", object{"type": "content_block_stop", "index": i}) }
	reason := "end_turn"
	if a.answered || a.shell == "" {
		block(0, object{"type": "text", "text": ""}, object{"type": "text_delta", "text": lastWords})
		stop(0)
	} else {
		reason = "tool_use"
		block(0, object{"type": "text", "text": ""}, object{"type": "text_delta", "text": firstWords})
		if m.pause(r) {
			return
		}
		stop(0)
		block(1, object{"type": "tool_use", "id": "toolu_1", "name": a.shell, "input": object{}},
			object{"type": "input_json_delta", "partial_json": m.arguments(a.shell)})
		stop(1)
	}
	event(w, "message_delta", object{"type": "message_delta", "delta": object{"stop_reason": reason}, "usage": usage})
	event(w, "message_stop", object{"type": "message_stop"})
}
