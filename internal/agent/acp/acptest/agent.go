package acptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Arg is the first argument of a test binary that is to be the agent.
const Arg = "acp-test-agent"

// Command returns the command line of the agent. Words change what it does before the
// first prompt:
//
//	load             it can load sessions, and tells their history when it does
//	load=refuse      it says that it can, and cannot
//	load=late        it tells the history after its answer
//	mcp=http         it says that it reaches servers over HTTP
//	prompt=LIST      it takes these in prompts, separated by commas: image, audio, embeddedContext
//	auth             it wants somebody to sign in, with the method "key"
//	version=N        it speaks this version of the protocol
//	initialize=exit  it exits with status 7 when it is greeted
//	initialize=hang  it does not answer
//	deaf             it reads nothing after it has made a session
//	garbage=N        it writes so many lines that are no messages before anything else
//	models=LIST      it lets its client choose one of these, separated by commas
//	oldmodels=LIST   it does so in the way of before there were settings
//	levels=LIST      it lets its client choose how much it thinks
//	stderr=TEXT      it says something in its own log
//	environment      it writes its whole environment into its own log
func Command(words ...string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic("acptest: find the test binary: " + err.Error())
	}
	// A binary with the race detector sleeps a second before it exits, unless told not to.
	return append([]string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", exe, Arg}, words...)
}

// Main becomes the agent, and does not return, if the process was started by [Command].
// The steps of a prompt are:
//
//	say TEXT, think TEXT    a chunk; TEXT is the inside of a JSON string
//	bytes "TEXT"            a chunk; TEXT is a Go string and may hold any bytes
//	send JSON               any update; @N@ in it stands for so many bytes
//	raw TEXT                a line; SESSION in it stands for the session's id
//	garbage N               so many lines that are no messages
//	many N                  so many chunks "x"
//	huge N                  one chunk of so many bytes
//	ask ID KINDS JSON       asks a permission with options of these kinds, separated by
//	                        commas, for a tool call; it goes on at once
//	cancel ID               takes the request back
//	call ID METHOD JSON     asks for a file or a terminal; SESSION in it stands for the session's
//	                        id, and @ID@ for what the call ID was answered as its terminal
//	wait ID                 waits for the answer and says it
//	offered                 says what the client is able to do
//	spawn PATH              starts a grandchild that writes to PATH as long as it lives
//	cancelled               waits for session/cancel
//	hang                    waits for ever
//	stderr TEXT             says something in its own log
//	chosen                  says what its client has chosen
//	preface                 says what the host put in front of the prompt
//	prompt                  says what else stands in the prompt
//	servers                 says in its own log of which MCP servers it was told
//	exit N                  exits
//	mute                    closes its output and lives on
//	error CODE TEXT         answers with an error
//	end REASON [USAGE]      answers with a stop reason
//	after TEXT              a chunk after the answer
//
// Without an answer the turn ends with end_turn, or with cancelled if that was asked for.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != Arg {
		return
	}
	a := &fake{
		out: bufio.NewWriter(os.Stdout), words: os.Args[2:], answers: map[string]chan string{}, calls: map[string]string{},
		session: fmt.Sprintf("session-%d", os.Getpid()), cancel: make(chan struct{}),
	}
	a.boot()
	a.serve()
	os.Exit(0)
}

// fake is the agent.
type fake struct {
	words   []string
	session string
	servers json.RawMessage // as it was told of them
	offered json.RawMessage // what the client is able to do

	mu       sync.Mutex
	out      *bufio.Writer          // guarded by mu
	answers  map[string]chan string // guarded by mu: to permission requests
	cancel   chan struct{}          // guarded by mu: closed by session/cancel
	chosen   []string               // guarded by mu: by its client
	signedIn bool
	calls    map[string]string // guarded by mu: by id, the terminal that was answered
}

func (a *fake) has(word string) bool { return slices.Contains(a.words, word) }

// value returns what follows NAME= among the words.
func (a *fake) value(name string) (string, bool) {
	for _, w := range a.words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func (a *fake) boot() {
	if text, ok := a.value("stderr"); ok {
		fmt.Fprintln(os.Stderr, text)
	}
	if a.has("environment") {
		for _, v := range os.Environ() {
			fmt.Fprintln(os.Stderr, v)
		}
	}
	if n, ok := a.value("garbage"); ok {
		a.garbage(number(n))
	}
}

// message is a line of the host.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Params struct {
		SessionID string `json:"sessionId"`
		MethodID  string `json:"methodId"`
		ModelID   string `json:"modelId"`
		ConfigID  string `json:"configId"`
		Value     string `json:"value"`
		// MCPServers are the servers that it is told of.
		MCPServers json.RawMessage `json:"mcpServers"`
		// ClientCapabilities are what the client is able to do.
		ClientCapabilities json.RawMessage `json:"clientCapabilities"`
		Prompt             []struct {
			Text     string `json:"text"`
			Type     string `json:"type"`
			Data     string `json:"data"`
			MimeType string `json:"mimeType"`
			Name     string `json:"name"`
			URI      string `json:"uri"`
			Resource struct {
				Text string `json:"text"`
				Blob string `json:"blob"`
				URI  string `json:"uri"`
			} `json:"resource"`
		} `json:"prompt"`
	} `json:"params"`
}

// serve reads what the host says until it says no more.
func (a *fake) serve() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintln(os.Stderr, "the host wrote no message")
			os.Exit(9)
		}
		a.take(m)
		if m.Method == "session/new" && a.has("deaf") {
			<-time.After(time.Hour)
		}
	}
}

func (a *fake) take(m message) {
	switch m.Method {
	case "initialize":
		a.initialize(m)
	case "authenticate":
		a.signedIn = m.Params.MethodID == "key"
		a.answer(m.ID, `{}`)
	case "session/new":
		a.servers = m.Params.MCPServers
		if a.has("auth") && !a.signedIn {
			a.fail(m.ID, -32000, "sign in first")
			return
		}
		a.answer(m.ID, fmt.Sprintf(`{"sessionId":%q%s}`, a.session, a.choices()))
	case "session/load":
		a.load(m)
	case "session/set_model", "session/set_config_option":
		a.choose(m)
	case "session/prompt":
		a.mu.Lock()
		a.cancel = make(chan struct{})
		a.mu.Unlock()
		go a.perform(m)
	case "session/cancel":
		a.mu.Lock()
		close(a.cancel)
		a.mu.Unlock()
	case "":
		a.route(m)
	}
}

func (a *fake) initialize(m message) {
	a.offered = m.Params.ClientCapabilities
	switch v, _ := a.value("initialize"); v {
	case "exit":
		os.Exit(7)
	case "hang":
		return
	}
	version, ok := a.value("version")
	if !ok {
		version = "1"
	}
	loads := a.has("load") || a.has("load=refuse") || a.has("load=late")
	takes, _ := a.value("prompt")
	var prompt []string
	for word := range strings.SplitSeq(takes, ",") {
		prompt = append(prompt, fmt.Sprintf("%q:true", word))
	}
	a.answer(m.ID, fmt.Sprintf(
		`{"protocolVersion":%s,"agentCapabilities":{"loadSession":%t,"promptCapabilities":{%s},"mcpCapabilities":{"http":%t}},"authMethods":[{"id":"key","name":"Key"}]}`,
		version, loads, strings.Join(prompt, ","), a.has("mcp=http")))
}

func (a *fake) load(m message) {
	if a.has("load=refuse") {
		a.fail(m.ID, -32602, "no such session")
		return
	}
	a.session = m.Params.SessionID
	if a.has("load=late") {
		a.answer(m.ID, `{}`)
		<-time.After(200 * time.Millisecond)
		a.replay()
		return
	}
	a.replay()
	a.answer(m.ID, strings.Replace("{"+a.choices()+"}", "{,", "{", 1))
}

// replay tells what was told before.
func (a *fake) replay() {
	a.update(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"told before"}}`)
	a.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said before"}}`)
	a.update(`{"sessionUpdate":"tool_call","toolCallId":"old","title":"old","status":"completed"}`)
}

// route hands an answer of the host to who waits for it.
func (a *fake) route(m message) {
	var id string
	_ = json.Unmarshal(m.ID, &id)
	if a.called(id, m.Result) {
		said := string(m.Result)
		if m.Error != nil {
			said = fmt.Sprint(m.Error.Code, " ", m.Error.Message)
		}
		a.waiter(id) <- said
		return
	}
	var answer struct {
		Outcome struct {
			Outcome  string `json:"outcome"`
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	}
	said := "error"
	switch {
	case m.Error != nil && m.Error.Code == -32800:
		said = "taken back"
	case m.Error == nil && json.Unmarshal(m.Result, &answer) == nil:
		said = answer.Outcome.Outcome + answer.Outcome.OptionID
	}
	a.waiter(id) <- said
}

// called reports whether an answer is that of a call, and notes its terminal.
func (a *fake) called(id string, result json.RawMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.calls[id]
	var r struct {
		TerminalID string `json:"terminalId"`
	}
	if ok && json.Unmarshal(result, &r) == nil {
		a.calls[id] = r.TerminalID
	}
	return ok
}

// call asks for a file or a terminal.
func (a *fake) call(rest string) {
	words := strings.SplitN(rest, " ", 3)
	a.mu.Lock()
	params := strings.ReplaceAll(words[2], "SESSION", a.session)
	for id, terminal := range a.calls {
		params = strings.ReplaceAll(params, "@"+id+"@", terminal)
	}
	a.calls[words[0]] = ""
	a.mu.Unlock()
	a.line(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, words[0], words[1], params)
}

func (a *fake) waiter(id string) chan string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers[id] == nil {
		a.answers[id] = make(chan string, 1)
	}
	return a.answers[id]
}

func (a *fake) line(format string, values ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.out, format+"\n", values...)
	a.out.Flush()
}

func (a *fake) answer(id json.RawMessage, result string) {
	a.line(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (a *fake) fail(id json.RawMessage, code int, text string) {
	a.line(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)
}

func (a *fake) update(update string) {
	a.line(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, a.session, update)
}
