package flow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Move is what comes next in a workflow: of its fields the ones that are set, in their
// order. The zero value means that nothing does, until a fact or the time comes.
type Move struct {
	Finish *Finish
	Edge   *Edge
	Begin  *Begin
	End    *End
}

// IsZero reports whether there is nothing to do.
func (m Move) IsZero() bool { return m == Move{} }

// Finish ends the running step.
type Finish struct {
	NodeID  string
	Attempt int
	RunID   string
	// Data is what becomes of the working data: values by their names, nil for nothing.
	Data narad.Raw
	// StartedAt is when the step began, Output what it came to, for people.
	StartedAt string
	Output    string
	// Failure says why the step failed, nil if it did not.
	Failure *Failure
}

// Failure is why a step failed. The message is fit for users.
type Failure struct {
	Code    string
	Message string
	// Retry is when the next attempt may start; zero if there is none.
	Retry time.Time
}

// Edge is a path that was chosen (§6.6).
type Edge struct {
	From, To string
	// Case is the index of the condition that held, -1 for the way of a failed step.
	Case    int
	Pointer string
	Op      string
}

// Begin starts a step. A step that neither runs nor asks is finished at once, with Data.
type Begin struct {
	NodeID  string
	Attempt int
	// Run says that an agent works; Agent is its configured name and Prompt what it is
	// told. Both are "" for parallel branches, each of which has its own.
	Run    bool
	Agent  string
	Prompt string
	// Ask is asked of a person.
	Ask  *Ask
	Data narad.Raw
}

// Ask is a question to a person.
type Ask struct {
	// Approval wants a yes or no; otherwise Text is a question.
	Approval       bool
	Title, Message string
	Text           string
	Options        []string
	Recommended    int // -1 for none
	Free           bool
	Expires        time.Duration
}

// End ends the workflow.
type End struct {
	State   EndState
	Code    string
	Message string
	// Output is the result, nil for none.
	Output narad.Raw
}

// EndState is one of the three ways in which a workflow ends.
type EndState uint8

// The ways to end.
const (
	Completed EndState = iota
	Failed
	Cancelled
)

// Next returns what comes next at a time. For a workflow that only waits for a time to
// come, nothing does before.
func (p *Progress) Next(now time.Time) Move {
	switch {
	case p.ended:
		return Move{}
	case p.step.state == stepRunning:
		return p.running(now)
	case p.stopped:
		return Move{End: &End{State: Cancelled, Code: "stopped"}}
	case p.def == nil:
		return failed("definition_unreadable", "The host cannot read the definition of the workflow.")
	case p.step.state == stepNone:
		return p.enter(p.def.Start, 1, nil)
	case p.step.state == stepFailed:
		return p.afterFailure(now)
	}
	return p.onward()
}

func failed(code, message string) Move {
	return Move{End: &End{State: Failed, Code: code, Message: message}}
}

// onward leaves a finished step on the path that its node says.
func (p *Progress) onward() Move {
	n := p.def.nodes[p.step.node]
	i, way := n.choose(p.data)
	if len(n.next) == 1 {
		return p.enter(way.to, 1, nil) // succession is no choice
	}
	edge := &Edge{From: n.id, To: way.to, Case: i, Op: opDefault}
	if way.when != nil {
		edge.Pointer, edge.Op = way.when.pointer, way.when.op
	}
	return p.enter(way.to, 1, edge)
}

// afterFailure tries again, goes where the node says, or fails the workflow.
func (p *Progress) afterFailure(now time.Time) Move {
	n, failure := p.def.nodes[p.step.node], p.step.failure
	switch {
	case !failure.Retry.IsZero() && now.Before(failure.Retry):
		return Move{}
	case !failure.Retry.IsZero():
		return p.enter(n.id, p.step.attempt+1, nil)
	case n.onFailure != "":
		return p.enter(n.onFailure, 1, &Edge{From: n.id, To: n.onFailure, Case: -1, Op: opFailed})
	}
	return failed(failure.Code, failure.Message)
}

// enter comes to a node.
func (p *Progress) enter(id string, attempt int, edge *Edge) Move {
	n := p.def.nodes[id]
	if n.end != nil {
		m := n.end.move(p.data)
		m.Edge = edge
		return m
	}
	if p.steps >= p.def.limit {
		return failed("too_many_steps", "The workflow has taken "+strconv.Itoa(p.steps)+" steps, which is its limit (max_steps).")
	}
	begin, err := n.begin(p.data, attempt)
	if err != nil {
		return failed(codeOf(err), "The node "+id+" cannot start: "+err.Error()+".")
	}
	return Move{Edge: edge, Begin: begin}
}

// codeOf tells what the data lacks from data of which there is too much.
func codeOf(err error) string {
	if errors.As(err, &missing{}) {
		return "data_missing"
	}
	return "data_too_large"
}

func (e *ending) move(d data) Move {
	end := &End{State: Completed}
	if e.failed {
		end.State, end.Code = Failed, orElse(e.code, "failed")
	}
	var err error
	if end.Message, err = e.message.fill(d); err == nil && e.output.given() {
		end.Output, err = e.output.fill(d)
	}
	if err == nil && len(end.Output) > maxResult {
		err = fmt.Errorf("the output is larger than %d bytes", maxResult)
	}
	if err != nil {
		return failed(codeOf(err), "The end of the workflow cannot be told: "+err.Error()+".")
	}
	end.Message = clip(end.Message, longestText)
	return Move{End: end}
}

func (n *node) begin(d data, attempt int) (*Begin, error) {
	b := &Begin{NodeID: n.id, Attempt: attempt}
	var err error
	switch {
	case n.ask != nil:
		b.Ask, err = n.ask.fill(d)
	case n.set != nil:
		b.Data, err = n.assigned(d)
	case n.parallel:
		b.Run = true
		for _, w := range n.work {
			if _, err = w.prompt.fill(d); err != nil {
				break
			}
		}
	default:
		b.Run, b.Agent = true, n.work[0].agent
		b.Prompt, err = n.work[0].prompt.fill(d)
	}
	return b, err
}

func (q *question) fill(d data) (*Ask, error) {
	a := &Ask{
		Approval: q.approval, Options: q.options, Recommended: q.recommended, Free: q.free, Expires: q.expires,
	}
	for _, part := range []struct {
		from template
		to   *string
	}{{q.title, &a.Title}, {q.message, &a.Message}, {q.text, &a.Text}} {
		text, err := part.from.fill(d)
		if err != nil {
			return nil, err
		}
		*part.to = clip(text, 2*longestText)
	}
	return a, nil
}

// assigned returns the values that a node sets. Each sees the data as it was before.
func (n *node) assigned(d data) (narad.Raw, error) {
	set := data{}
	for _, a := range n.set {
		v, err := a.value.fill(d)
		if err != nil {
			return nil, err
		}
		set[a.name] = v
	}
	return set.all(), d.fits(set)
}

// fits says whether the data stays within its bound with some values set.
func (d data) fits(set data) error {
	after := data{}
	for name, v := range d {
		after[name] = v
	}
	for name, v := range set {
		after[name] = v
	}
	if after.size() > MaxData {
		return errTooLarge
	}
	return nil
}

// running ends the step under way when what it waits for has come.
func (p *Progress) running(now time.Time) Move {
	done := &Finish{NodeID: p.step.node, Attempt: p.step.attempt, RunID: p.step.run, StartedAt: p.step.since}
	switch {
	case p.step.run != "" && p.step.end == nil, p.step.asked && p.step.answer == nil:
		return Move{}
	case p.stopped:
		done.Failure = &Failure{Code: "stopped"}
	case p.def == nil:
		done.Failure = &Failure{Code: "definition_unreadable"}
	case p.step.asked:
		p.answered(done)
	default:
		p.worked(done, now)
	}
	return Move{Finish: done}
}

// worked takes the results of agents.
func (p *Progress) worked(done *Finish, now time.Time) {
	n := p.def.nodes[p.step.node]
	failure := p.step.failureOfRun()
	if failure == nil {
		var result narad.Raw
		if result, failure = p.step.result(n); failure == nil {
			set := data{n.as: result}
			if p.data.fits(set) == nil {
				done.Data, done.Output = set.all(), shown(result)
			} else {
				failure = &Failure{Code: "data_too_large", Message: errTooLarge.Error()}
			}
		}
	}
	if failure != nil && p.step.attempt < n.attempts {
		failure.Retry = now.Add(max(n.backoff, time.Millisecond))
	}
	done.Failure = failure
}

// longestShown bounds what is shown of a result, in bytes.
const longestShown = 4 << 10

// shown is a result for people: a text as it is, all else as JSON.
func shown(result narad.Raw) string {
	text, ok := result.IsString()
	if !ok {
		text = string(result)
	}
	return clip(text, longestShown)
}

func (s *step) failureOfRun() *Failure {
	if s.end == nil || s.end.finished {
		return nil
	}
	return &Failure{Code: s.end.code, Message: s.end.message}
}

// result is what the agents of a step said: a text or a value, or an object of these by
// the names of the branches.
func (s *step) result(n *node) (narad.Raw, *Failure) {
	if !n.parallel {
		return n.work[0].result(s.voices[s.run])
	}
	results := data{}
	for run, b := range s.branches {
		for _, w := range n.work {
			if w.name != b.name {
				continue
			}
			result, failure := w.result(s.voices[run])
			if failure != nil {
				failure.Message = "The branch " + b.name + ": " + failure.Message
				return nil, failure
			}
			results[b.name] = result
		}
	}
	return results.all(), nil
}

func (w *work) result(v *voice) (narad.Raw, *Failure) {
	text := ""
	if v != nil {
		text = last(strings.ToValidUTF8(string(v.text), "\uFFFD"), maxResult)
	}
	if !w.json {
		return narad.Quote(text), nil
	}
	if found := jsonIn(text); found != nil {
		return found, nil
	}
	return nil, &Failure{Code: "result_not_json", Message: "The agent was to answer with JSON and did not."}
}

// jsonIn finds the JSON value that a text is, or that stands in its last fenced block.
func jsonIn(text string) narad.Raw {
	const fence = "```"
	candidates := []string{text}
	if parts := strings.Split(text, fence); len(parts) >= 3 {
		block := parts[len(parts)-2]
		if len(parts)%2 == 0 { // the last fence has no end
			block = parts[len(parts)-3]
		}
		if _, rest, ok := strings.Cut(block, "\n"); ok {
			candidates = append(candidates, rest)
		}
	}
	for _, c := range candidates {
		v := jsontext.Value(strings.TrimSpace(c))
		if v.IsValid() && len(v) > 0 {
			return narad.Raw(v)
		}
	}
	return nil
}

// answered takes a person's decision. A step whose question was not answered, or whose
// approval was not given, has failed: nobody said that the workflow may go on.
func (p *Progress) answered(done *Finish) {
	n, a := p.def.nodes[p.step.node], p.step.answer
	set := data{n.as: n.ask.answer(a)}
	if p.data.fits(set) == nil {
		done.Data, done.Output = set.all(), a.Decision
	} else {
		done.Failure = &Failure{Code: "data_too_large", Message: errTooLarge.Error()}
		return
	}
	switch a.Decision {
	case "deny":
		done.Failure = &Failure{Code: "denied", Message: a.Reason}
	case "dismiss":
		done.Failure = &Failure{Code: "dismissed", Message: a.Reason}
	case narad.DecisionExpired:
		done.Failure = &Failure{Code: narad.DecisionExpired, Message: a.Reason}
	}
}

// answer is a decision as it stands in the data.
func (q *question) answer(a *narad.InterruptResolved) narad.Raw {
	type told struct {
		Decision string `json:"decision"`
		Answer   string `json:"answer,omitzero"`
		Reason   string `json:"reason,omitzero"`
	}
	is := told{Decision: a.Decision, Reason: clip(a.Reason, longestText)}
	if !q.approval {
		is.Answer = clip(q.words(a), maxResult)
	}
	out, err := json.Marshal(is)
	if err != nil {
		return narad.Raw(`{}`) // a reason that is no text
	}
	return out
}

// words is what a person has answered: an option, or a text.
func (q *question) words(a *narad.InterruptResolved) string {
	if i, err := strconv.Atoi(a.Decision); err == nil && i >= 0 && i < len(q.options) {
		return q.options[i]
	}
	given, _ := facts.Answers(&a.Event).Elements()
	if len(given) == 0 {
		return ""
	}
	if text, _ := given[0].Field("text").IsString(); text != "" {
		return text
	}
	chosen, _ := given[0].Field("options").Elements()
	if len(chosen) == 1 {
		if i, err := strconv.Atoi(string(chosen[0])); err == nil && i >= 0 && i < len(q.options) {
			return q.options[i]
		}
	}
	return ""
}

// clip cuts a text that is too long, at a character.
func clip(text string, most int) string {
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text[:most])
		if utf8.ValidString(text[most-size : most]) {
			return text[:most]
		}
		most--
	}
	return text
}

// last keeps the end of a text that is too long, from a character on.
func last(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
