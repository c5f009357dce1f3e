package field_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// permitScript asks before its one call.
const permitScript = `
script: 1
steps:
  - tool: {name: edit, kind: edit, args: {path: report.txt}, permit: true, respond: {ok: true}}
  - say: "that was all"
`

// permitAgent does the same by the Agent Client Protocol.
const permitAgent = `
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a1","update":%s}}\n' "$1"; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
perform() {
  prompt=$id
  update '{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"edit","kind":"edit","status":"pending","rawInput":{"path":"report.txt"}}'
  printf '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"a1","toolCall":{"toolCallId":"call_1"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}\n'
  while read -r line; do
    case $line in
    *'"cancelled"'*) id=$prompt; answer '{"stopReason":"cancelled"}'; return ;;
    *'"optionId"'*) break ;;
    esac
  done
  id=$prompt
  update '{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed"}'
  update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"that was all"}}'
  answer '{"stopReason":"end_turn"}'
}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
  *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{}}' ;;
  *'"method":"session/new"'*) answer '{"sessionId":"a1"}' ;;
  *'"method":"session/prompt"'*) perform ;;
  esac
done
`

// A session is the same on all three contracts, whichever began it and whatever performs
// its runs: each is followed, decided and stopped over the other two.
func TestSessionsAreTheSameOnAllContracts(t *testing.T) {
	t.Parallel()
	b := newBed(t, permitScript, "MAHATI_NARYA_TCP=true")
	agent := filepath.Join(b.home, "agent.sh")
	b.write(agent, permitAgent)
	b.write(filepath.Join(b.home, "config.toml"), "[agents.acp]\nkind = \"acp\"\ncommand = [\"/bin/sh\", \""+agent+"\"]\n")
	b.stop()
	b.start()
	for _, agent := range []string{"script", "acp"} {
		t.Run(agent, func(t *testing.T) {
			for name, of := range map[string]func(contracts){
				"begun by Narya, decided over Narad":                     contracts.decidedOverNarad,
				"begun by Narad, decided over Narya":                     contracts.decidedOverNarya,
				"begun by the headless contract, interrupted over Narya": contracts.interruptedOverNarya,
				"begun by Narya, cancelled over the headless contract":   contracts.cancelledHeadless,
			} {
				t.Run(name, func(t *testing.T) {
					own := *b
					own.t = t
					of(contracts{&own, agent})
				})
			}
		})
	}
}

type contracts struct {
	*bed
	agent string
}

// narya sends one request of the Narya contract and demands the status.
func (c contracts) narya(method, path string, body any, want int) answer {
	c.t.Helper()
	a, err := c.exchange(method, c.url+"/v1"+path, body)
	if err != nil || a.status != want {
		c.t.Fatalf("%s %s: got %v, %v, want %d", method, path, a, err, want)
	}
	return a
}

// create makes a session over Narya. The script that a bed plays is its default agent.
func (c contracts) create(id string) {
	c.t.Helper()
	body := object{"sessionId": id, "repository": c.t.TempDir()}
	if c.agent != "script" {
		body["agent"] = c.agent
	}
	c.narya(http.MethodPost, "/sessions", body, http.StatusCreated)
}

func shown(session string) string { return narya.UUID(narya.KindSession, session) }

// told is what Narya's stream has of a session until its turn ends.
func (c contracts) told(session string) (types []narya.Type, end *narya.TurnFinished) {
	c.t.Helper()
	first, _ := narya.ParseID((&day{b: c.bed}).host("oldestEventId"))
	request, err := http.NewRequestWithContext(c.context(), http.MethodGet, c.url+"/v1/events?sessionId="+shown(session), nil)
	c.must(err)
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Last-Event-ID", narya.FormatID(first-1))
	response, err := c.http.Do(request)
	c.must(err)
	defer response.Body.Close()
	for in := sse.NewReader(response.Body, sse.Options{}); ; {
		frame, err := in.Next()
		if err != nil {
			c.t.Fatalf("the stream ended before the turn: %v", err)
		}
		e, err := narya.Decode(frame.Data)
		c.must(err)
		types = append(types, e.Type())
		if end, ok := e.Payload.(*narya.TurnFinished); ok {
			return types, end
		}
	}
}

// permission waits until one waits in a session, and returns its id.
func (c contracts) permission(session string) (id string) {
	c.t.Helper()
	c.eventually("a permission waits", func() bool {
		a := c.narya(http.MethodGet, "/permissions?sessionId="+shown(session), nil, http.StatusOK)
		items, _ := narad.Raw(a.body).Field("items").Elements()
		if len(items) == 1 {
			id, _ = items[0].Field("permissionId").IsString()
		}
		return id != ""
	})
	return id
}

// ended demands that the run has ended alike on all contracts.
func (c contracts) ended(session, run string, narada narad.Type, headless harness.Type, reason narya.StopReason, decision string) {
	c.t.Helper()
	if got := c.awaitEnd(session, run).Type(); got != narada {
		c.t.Errorf("Narad: the run ended with %s, want %s", got, narada)
	}
	log := c.whole(session, run)
	c.sound(session, run, log)
	if kinds := log.kinds(); kinds[len(kinds)-2] != headless {
		c.t.Errorf("headless: the log ends with %v, want %s", kinds, headless)
	}
	types, end := c.told(session)
	if end.TurnID != run || end.StopReason != reason {
		c.t.Errorf("Narya: the turn %s ended %s, want %s and %s", end.TurnID, end.StopReason, run, reason)
	}
	for _, want := range []narya.Type{narya.TypePermissionAsked, narya.TypePermissionDecided, narya.TypeToolCallFinished} {
		if n := strings.Count(" "+strings.Join(text(types), " ")+" ", " "+string(want)+" "); n != 1 {
			c.t.Errorf("Narya told %d times of %s: %v", n, want, types)
		}
	}
	if c.agent == "acp" && !slices.Contains(types, narya.TypeMessageStart) {
		c.t.Errorf("Narya told of no round: %v", types)
	}
	audit := c.narya(http.MethodGet, "/permissions/decisions?sessionId="+shown(session), nil, http.StatusOK)
	if !strings.Contains(string(audit.body), `"decision":"`+decision+`"`) {
		c.t.Errorf("the audit has %s, want %s", audit.body, decision)
	}
}

func text(types []narya.Type) (words []string) {
	for _, one := range types {
		words = append(words, string(one))
	}
	return words
}

func (c contracts) decidedOverNarad() {
	session := c.agent + ".1"
	c.create(session)
	a := c.narya(http.MethodPost, "/sessions/"+shown(session)+"/messages", object{"content": "go"}, http.StatusAccepted)
	run := a.field("turnId")
	asked := c.awaitAsk(session, 1)
	if id := c.awaitApproval(run, 1); id != asked.InterruptID || c.permission(session) != id {
		c.t.Errorf("the approval is %s, the interrupt %s", id, asked.InterruptID)
	}
	if a := c.resolve(asked.InterruptID, "approve", ""); a.status != http.StatusAccepted {
		c.t.Fatalf("resolve: got %v", a)
	}
	c.ended(session, run, narad.TypeRunFinished, harness.RunCompleted, narya.StopCompleted, "allow")
}

func (c contracts) decidedOverNarya() {
	session := c.agent + ".2"
	body := object{"sessionId": session, "cwd": c.t.TempDir()}
	if c.agent != "script" {
		body["agent"] = c.agent
	}
	if a := c.post("/sessions", body); a.status != http.StatusCreated {
		c.t.Fatalf("create: got %v", a)
	}
	run := c.say(session, "go")
	c.narya(http.MethodPost, "/permissions/"+c.permission(session)+"/decision", object{"decision": "allow"}, http.StatusOK)
	c.ended(session, run, narad.TypeRunFinished, harness.RunCompleted, narya.StopCompleted, "allow")
}

func (c contracts) interruptedOverNarya() {
	session := c.agent + ".3"
	c.create(session)
	run := c.starts(session, "go")
	c.permission(session)
	c.narya(http.MethodPost, "/sessions/"+shown(session)+"/interrupt", object{"turnId": run}, http.StatusAccepted)
	c.ended(session, run, narad.TypeRunCancelled, harness.RunCanceled, narya.StopInterrupted, "expired")
}

func (c contracts) cancelledHeadless() {
	session := c.agent + ".4"
	c.create(session)
	run := c.narya(http.MethodPost, "/sessions/"+shown(session)+"/messages", object{"content": "go"}, http.StatusAccepted).field("turnId")
	c.awaitApproval(run, 1)
	if a := c.tell(run, "stop", cancels("enough")); a.status/100 != 2 {
		c.t.Fatalf("cancel: got %v", a)
	}
	c.ended(session, run, narad.TypeRunCancelled, harness.RunCanceled, narya.StopInterrupted, "expired")
}
