package field_test

import (
	"net/http"
	"path/filepath"
	"testing"
)

// acpAgent is an agent of the Agent Client Protocol as a shell script: it does what the
// first word of a known kind in its prompt says. It cannot resume a turn.
const acpAgent = `
echo $$ > agent.pid
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a1","update":%s}}\n' "$1"; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
perform() {
  case $1 in
  *open*)
    say 'the root begins'
    update '{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"task","status":"in_progress","rawInput":{"n":1}}'
    update '{"sessionUpdate":"agent_message_chunk","_meta":{"parentToolCallId":"call_1"},"content":{"type":"text","text":"the delegate begins"}}'
    return ;;
  *keyfault*)
    echo "request with $PROVIDER_KEY refused, told by $ARGUMENT" >&2
    printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"401: %s is no key, nor is %s"}}\n' "$id" "$PROVIDER_KEY" "$ARGUMENT"
    return ;;
  *keyexit*)
    echo "giving up: $PROVIDER_KEY" >&2
    echo "no message, but $PROVIDER_KEY"
    exit 3 ;;
  *image*)
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a1","update":{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"shot","status":"completed","rawInput":{"n":1},"content":[{"type":"content","content":{"type":"image","mimeType":"image/png","data":"'
    head -c 15728640 /dev/zero | base64 | tr -d '\n'
    printf '"}}]}}}\n'
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"'
    head -c 2097152 /dev/zero | base64 | tr -d '\n'
    printf '"}}}}\n' ;;
  esac
  say 'that was all'
  answer '{"stopReason":"end_turn"}'
}
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
  *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{}}' ;;
  *'"method":"session/new"'*) answer '{"sessionId":"a1"}' ;;
  *'"method":"session/prompt"'*) perform "$line" ;;
  esac
done
`

// newACPBed starts a host that also has the agent "acp". The words are added to the
// agent's command line.
func newACPBed(t *testing.T, settings ...string) *bed {
	t.Helper()
	b := newBed(t, "script: 1\nsteps: [{say: \"{{prompt}}\"}]\n", settings...)
	agent := filepath.Join(b.home, "agent.sh")
	b.write(agent, acpAgent)
	b.write(filepath.Join(b.home, "config.toml"), `[agents.acp]
kind = "acp"
command = ["/bin/sh", "`+agent+`"]
`)
	b.stop()
	b.start()
	return b
}

// acpSession creates a session of that agent.
func (b *bed) acpSession(id string) (dir string) {
	b.t.Helper()
	dir = b.t.TempDir()
	if a := b.post("/sessions", object{"sessionId": id, "cwd": dir, "agent": "acp"}); a.status != http.StatusCreated {
		b.fatalf("create session: got %v, want 201", a)
	}
	return dir
}
