package script

import (
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// maxTail bounds what of a call's output tells why it failed, in bytes.
const maxTail = 1 << 10

// tail is the end of a call's output. Programs say last what went wrong.
type tail struct{ held []byte }

func (t *tail) add(text string) {
	t.held = append(t.held, text...)
	if n := len(t.held) - maxTail; n > 0 {
		t.held = append(t.held[:0], t.held[n:]...)
	}
}

// reason is why a call failed that gives no reason: its response, if that is a text, else
// what it said last.
func (t *tail) reason(response narad.Raw) string {
	if text, ok := response.IsString(); ok {
		return text
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(t.held), ""))
}
