package naradhttp

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// resolution is the body of a decision (§2.2); the host finds the interrupt's session.
type resolution struct {
	InterruptID      string       `json:"interruptId"`
	Decision         string       `json:"decision"`
	Reason           string       `json:"reason"`
	ExpectedRevision *int64       `json:"expectedRevision"`
	Members          []memberName `json:"members"`
	Answers          []answer     `json:"answers"`
	CommandID        string       `json:"commandId"`
}

func (q resolution) request() (host.Request, error) {
	return host.Request{Action: access.ResolveInterrupt, CommandID: q.CommandID, Command: q.command()}, cmp.Or(
		checkID("interruptId", q.InterruptID),
		checkRequired("decision", q.Decision),
		checkText("decision", q.Decision, maxName, oneLine),
		checkText("reason", q.Reason, maxReason, anyLines),
		q.checkRevision(),
		checkCount("members", len(q.Members)),
		checkCount("answers", len(q.Answers)),
		q.checkMembers(),
	)
}

func (q resolution) checkRevision() error {
	if q.ExpectedRevision != nil && *q.ExpectedRevision < 0 {
		return badField("expectedRevision", "must be a session sequence")
	}
	return nil
}

func checkRequired(field, value string) error {
	if value == "" {
		return badField(field, "is required")
	}
	return nil
}

func checkCount(field string, n int) error {
	if n > maxMembers {
		return badField(field, fmt.Sprintf("may have at most %d entries", maxMembers))
	}
	return nil
}

// checkMembers demands names. A member may repeat the command's decision: there is one
// decision for all that are named.
func (q resolution) checkMembers() error {
	if q.Members != nil && len(q.Members) == 0 {
		return badField("members", "must name a member; leave it out to decide all that are open")
	}
	for i, m := range q.Members {
		field := server.Item("members", i)
		if m.id == "" {
			return badField(field, "must name a member")
		}
		if err := checkText(field, m.id, maxName, oneLine); err != nil {
			return err
		}
		if m.decision != "" && m.decision != q.Decision {
			return badField(field, "must have the decision of the command: others take a command of their own")
		}
	}
	return nil
}

func (q resolution) command() decide.Resolve {
	c := decide.Resolve{InterruptID: q.InterruptID, Decision: q.Decision, Reason: q.Reason, ExpectedRevision: q.revision()}
	for _, m := range q.Members {
		c.Members = append(c.Members, m.id)
	}
	for _, a := range q.Answers {
		c.Answers = append(c.Answers, decide.QuestionAnswer{Options: a.options, Text: a.text})
	}
	return c
}

// revision is what the decider saw, 0 if that is not told. Who saw an empty session
// cannot have seen the request (R22), and says so as a revision that none has.
func (q resolution) revision() int64 {
	switch {
	case q.ExpectedRevision == nil:
		return 0
	case *q.ExpectedRevision == 0:
		return -1
	}
	return *q.ExpectedRevision
}

// memberName names a member of a pack: by its id, or as an object with its id and the
// command's decision.
type memberName struct{ id, decision string }

// UnmarshalJSON reads either form.
func (m *memberName) UnmarshalJSON(data []byte) error {
	if jsontext.Value(data).Kind() == '"' {
		return json.Unmarshal(data, &m.id)
	}
	var object struct {
		RequestID string `json:"requestId"`
		Decision  string `json:"decision"`
	}
	err := json.Unmarshal(data, &object)
	m.id, m.decision = object.RequestID, object.Decision
	return err
}

// answer is the answer to one question: indexes of options, as numbers or as the
// action words of a single question, and a text.
type answer struct {
	options []int
	text    string
}

// UnmarshalJSON reads indexes in either form.
func (a *answer) UnmarshalJSON(data []byte) error {
	var object struct {
		Options []optionIndex `json:"options"`
		Text    string        `json:"text"`
	}
	err := json.Unmarshal(data, &object)
	a.text = object.Text
	for _, n := range object.Options {
		a.options = append(a.options, int(n))
	}
	return err
}

// optionIndex is the place of an option, as a number or as that number's text.
type optionIndex int

var errNoIndex = errors.New("an option is named by its place")

// UnmarshalJSON reads either form.
func (o *optionIndex) UnmarshalJSON(data []byte) error {
	text := string(data)
	if jsontext.Value(data).Kind() == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errNoIndex // the value is the client's, and stays out of errors
	}
	*o = optionIndex(n)
	return nil
}
