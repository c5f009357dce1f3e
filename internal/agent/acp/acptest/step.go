package acptest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

var repeated = regexp.MustCompile(`@[0-9]+@`)

// perform performs a prompt and answers it.
func (a *fake) perform(m message) {
	var preface string
	for m.Params.Prompt[0].Type == "text" && isPreface(m.Params.Prompt[0].Text) {
		preface += m.Params.Prompt[0].Text + "; "
		m.Params.Prompt = m.Params.Prompt[1:]
	}
	var script strings.Builder
	for _, b := range m.Params.Prompt {
		script.WriteString(b.Text)
	}
	answered := false
	for line := range strings.Lines(script.String()) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "":
		case "error":
			code, text, _ := strings.Cut(rest, " ")
			a.fail(m.ID, number(code), text)
			answered = true
		case "end":
			reason, usage, _ := strings.Cut(rest, " ")
			if usage == "" {
				usage = "null"
			}
			a.answer(m.ID, fmt.Sprintf(`{"stopReason":%q,"usage":%s}`, reason, usage))
			answered = true
		case "prompt":
			a.sayPrompt(m)
		case "preface":
			a.chunk("agent_message_chunk", strings.ReplaceAll(preface, "\n", "|"))
		case "chosen":
			a.mu.Lock()
			chosen := strings.Join(a.chosen, "; ")
			a.mu.Unlock()
			a.chunk("agent_message_chunk", chosen)
		case "after":
			a.chunk("agent_message_chunk", rest)
		default:
			a.step(verb, rest)
		}
	}
	if !answered {
		a.answer(m.ID, fmt.Sprintf(`{"stopReason":%q}`, a.reason()))
	}
}

// isPreface reports whether a part of a prompt is no script: the host put it in front.
func isPreface(text string) bool {
	for _, begins := range []string{"This conversation goes on", "How to answer: ", "A message from another session", "A question from another session"} {
		if strings.HasPrefix(text, begins) {
			return true
		}
	}
	return false
}

// sayPrompt says what stands in a prompt besides text. What it is linked to it reads.
func (a *fake) sayPrompt(m message) {
	for _, b := range m.Params.Prompt[1:] {
		said := b.Type + " " + b.MimeType + b.Name + " " + b.Data + b.Resource.Text + b.Resource.Blob
		if link, err := url.Parse(b.URI); err == nil && link.Scheme == "file" {
			content, err := os.ReadFile(link.Path)
			said += fmt.Sprintf("%s %v", content, err)
		}
		a.chunk("agent_message_chunk", said+"; ")
	}
}

func (a *fake) reason() string {
	select {
	case <-a.cancelled():
		return "cancelled"
	default:
		return "end_turn"
	}
}

func (a *fake) cancelled() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cancel
}

func (a *fake) step(verb, rest string) {
	switch verb {
	case "say":
		a.chunk("agent_message_chunk", rest)
	case "think":
		a.chunk("agent_thought_chunk", rest)
	case "send":
		a.update(repeated.ReplaceAllStringFunc(rest, func(s string) string {
			return strings.Repeat("h", number(strings.Trim(s, "@")))
		}))
	case "raw":
		a.line("%s", strings.ReplaceAll(rest, "SESSION", a.session))
	case "bytes":
		text, err := strconv.Unquote(rest)
		if err != nil {
			text = "no Go string: " + rest
		}
		a.chunk("agent_message_chunk", text)
	case "garbage":
		a.garbage(number(rest))
	case "many":
		for range number(rest) {
			a.chunk("agent_message_chunk", "x")
		}
	case "huge":
		a.chunk("agent_message_chunk", strings.Repeat("h", number(rest)))
	case "ask":
		a.ask(rest)
	case "cancel":
		a.line(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%q}}`, rest)
	case "call":
		a.call(rest)
	case "offered":
		a.chunk("agent_message_chunk", inside(string(a.offered)))
	case "wait":
		a.chunk("agent_message_chunk", inside("["+rest+": "+<-a.waiter(rest)+"]"))
	default:
		a.misbehave(verb, rest)
	}
}

func (a *fake) misbehave(verb, rest string) {
	switch verb {
	case "spawn":
		a.spawn(rest)
	case "cancelled":
		<-a.cancelled()
	case "hang":
		select {}
	case "stderr":
		fmt.Fprintln(os.Stderr, rest)
	case "servers":
		fmt.Fprintf(os.Stderr, "servers %s\n", a.servers)
	case "exit":
		os.Exit(number(rest))
	case "mute":
		os.Stdout.Close()
		select {}
	default:
		fmt.Fprintln(os.Stderr, "unknown step", verb)
		os.Exit(8)
	}
}

func (a *fake) chunk(kind, text string) {
	a.update(fmt.Sprintf(`{"sessionUpdate":%q,"content":{"type":"text","text":"%s"}}`, kind, text))
}

// inside is a text as the inside of a JSON string.
func inside(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic("acptest: a text is JSON: " + err.Error())
	}
	return string(data[1 : len(data)-1])
}

func (a *fake) garbage(n int) {
	for i := range n {
		a.line("no message, but line %d with MARKER-STDOUT", i)
	}
}

// ask sends a request for a permission.
func (a *fake) ask(rest string) {
	words := strings.SplitN(rest, " ", 3)
	var options []string
	for i, kind := range strings.Split(words[1], ",") {
		options = append(options, fmt.Sprintf(`{"optionId":"o%d-%s","name":"Option %d","kind":%q}`, i, kind, i, kind))
	}
	a.line(`{"jsonrpc":"2.0","id":%q,"method":"session/request_permission","params":{"sessionId":%q,"options":[%s],"toolCall":%s}}`,
		words[0], a.session, strings.Join(options, ","), words[2])
}

// spawn starts a grandchild that outlives the agent, if nobody sees to it. It carries
// nothing by which it could be known.
func (a *fake) spawn(path string) {
	cmd := exec.Command("/bin/sh", "-c", `exec >"$0" 2>/dev/null; trap "" HUP; while :; do echo alive; sleep 0.05; done`, path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "spawn:", err)
		os.Exit(8)
	}
}

func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		fmt.Fprintln(os.Stderr, "not a number:", s)
		os.Exit(8)
	}
	return n
}
