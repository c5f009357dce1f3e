package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// A Call is one tool call that an executor is to run.
type Call struct {
	Executor   string
	Session    string
	Workspace  string // of the session
	RunID      string
	ToolCallID string
	ToolName   string
	// Args are those of the call's tool.call.started, byte for byte (§11.3 rule 3).
	Args narad.Raw
}

// A Grant is a call with its token: Row goes into the batch of the facts that issue it,
// and when they are durable the grant goes to [Executors.Deliver].
type Grant struct {
	Call Call
	Row  journal.TokenRow
	// ExpiresAt is when the token ends.
	ExpiresAt time.Time

	lease hash
	// record is the client.tool.execute, with its secrets.
	record []byte
}

// token is the stored form of a token. Only fields are added to it.
type token struct {
	Token     hash   `json:"token"`
	Lease     hash   `json:"lease"`
	Principal string `json:"principal"`
	RunID     string `json:"runId"`
	// Expires is in microseconds since 1970.
	Expires int64 `json:"expires"`
	// Finish is the hash of the finish that was accepted.
	Finish hash `json:"finish,omitzero"`
	// Closed is why the call ended without one.
	Closed Closing `json:"closed,omitzero"`
}

// Closing is why a call ended without a finish of its executor.
type Closing string

// The closings.
const (
	// Expired: no finish came in time.
	Expired Closing = "expired"
	// Undelivered: no connection took the call.
	Undelivered Closing = "undelivered"
	// Cancelled: its run was stopped, or ended.
	Cancelled Closing = "cancelled"
)

func row(c Call, t token) (journal.TokenRow, error) {
	value, err := json.Marshal(t, json.Deterministic(true))
	if err != nil {
		return journal.TokenRow{}, fmt.Errorf("encode token: %w", err)
	}
	return journal.TokenRow{Executor: c.Executor, ID: c.ToolCallID, Session: c.Session, Value: value}, nil
}

func read(r journal.TokenRow) (token, error) {
	var t token
	if err := json.Unmarshal(r.Value, &t); err != nil {
		return t, errors.New("a stored token does not decode")
	}
	return t, nil
}

// Verdict is what a finish means.
type Verdict int

// The verdicts, with the statuses of R33.
const (
	// Accept: the finish ends the call (accepted).
	Accept Verdict = iota + 1
	// Repeat: the same finish was accepted before (already_applied).
	Repeat
	// Differs: the call ended otherwise (conflict).
	Differs
	// Late: the token's time is over (expired).
	Late
	// Foreign: the token is not that of the call, or not the caller's (forbidden).
	Foreign
)

// Judge says what a finish means to the row of its call's token, now.
func Judge(r journal.TokenRow, p access.Principal, f *narad.ClientToolFinish, now time.Time) (Verdict, error) {
	t, err := read(r)
	if err != nil {
		return 0, err
	}
	ours := t.Token.fits(f.ExecutionToken)
	if !ours || !t.Lease.fits(f.LeaseID) || r.Executor != f.ClientExecutorID || t.Principal != p.ID() {
		return Foreign, nil
	}
	content, err := contentOf(f)
	if err != nil {
		return 0, err
	}
	switch {
	case t.Finish == content:
		return Repeat, nil
	case t.Finish != "", t.Closed == Cancelled, t.Closed == Undelivered:
		return Differs, nil
	case t.Closed == Expired, now.UnixMicro() >= t.Expires:
		return Late, nil
	}
	return Accept, nil
}

// Finished is the row of a token whose finish was accepted. It stays, so that a repeat
// is known as one for as long as the session exists.
func Finished(r journal.TokenRow, f *narad.ClientToolFinish) (journal.TokenRow, error) {
	content, err := contentOf(f)
	if err != nil {
		return r, err
	}
	return settled(r, func(t *token) { t.Finish = content })
}

// Closed is the row of a token whose call ended without a finish.
func Closed(r journal.TokenRow, why Closing) (journal.TokenRow, error) {
	return settled(r, func(t *token) { t.Closed = why })
}

// Open reports whether a row's call has not ended, and when its token expires.
func Open(r journal.TokenRow) (expires time.Time, open bool, err error) {
	t, err := read(r)
	if err != nil {
		return time.Time{}, false, err
	}
	return time.UnixMicro(t.Expires), t.Finish == "" && t.Closed == "", nil
}

func settled(r journal.TokenRow, change func(*token)) (journal.TokenRow, error) {
	t, err := read(r)
	if err != nil {
		return r, err
	}
	if t.Finish != "" || t.Closed != "" {
		return r, errors.New("the token is settled")
	}
	change(&t)
	return row(Call{Executor: r.Executor, Session: r.Session, ToolCallID: r.ID}, t)
}

// contentOf hashes what a finish says. White space between the tokens of a response says
// nothing.
func contentOf(f *narad.ClientToolFinish) (hash, error) {
	response := jsontext.Value(f.Response).Clone()
	if err := response.Compact(); err != nil {
		return "", errors.New("the response is not JSON")
	}
	sum := sha256.New()
	_, _ = sum.Write([]byte(f.Outcome))
	_, _ = sum.Write([]byte{0})
	_, _ = sum.Write(response)
	return hash(hex.EncodeToString(sum.Sum(nil))), nil
}
