package decide

import (
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The commands of this file are what the Narya contract decides and answers. Each is
// hashed as it was told, so that what was told again is known when what it meant is not.

// The two words of a decision.
const (
	Allow = "allow"
	Deny  = "deny"
)

// DecidePermission decides a permission: an interrupt that asks for one, or one member of
// a pack (R11, R12).
type DecidePermission struct {
	InterruptID string
	// RequestID names the member; "" where the interrupt is no pack.
	RequestID string
	// Decision is Allow or Deny.
	Decision string
	// Remember is empty, or how far the decision holds for what is asked later for the
	// very same: facts.ForSession or facts.ForLane.
	Remember string
	Reason   string
}

func (p DecidePermission) propose(d *draft) Answer {
	i, known := d.state.Interrupt(p.InterruptID)
	if !known || !i.Open {
		return p.closed(d)
	}
	input, is := p.input(i)
	if !is {
		return noPermission()
	}
	if was := d.desk.Votes[p.InterruptID][p.RequestID]; p.RequestID != "" && was != "" {
		return p.late(d, Closed{Decision: was})
	}
	rule, refusal, ok := p.rule(d, i, input)
	if !ok {
		return refusal
	}
	resolve := Resolve{InterruptID: p.InterruptID, Decision: p.plain(), Reason: p.Reason}
	if p.RequestID != "" {
		resolve.Members = []string{p.RequestID}
	}
	if !slices.Contains(i.Actions, resolve.Decision) {
		return Answer{
			Status: Unsupported, RequestID: i.InterruptID, Err: RefusedNotOffered,
			Detail: "the agent takes no plain " + p.Decision + " for this",
		}
	}
	answer := resolve.propose(d)
	if rule != nil && answer.Status.Accepted() && answer.Decision != "" {
		d.add(facts.Session(facts.PermissionRemembered, *rule))
	}
	return answer
}

// plain is the decision as interrupts offer it: for once, whatever is remembered, since the
// agent is told of none of that (R11).
func (p DecidePermission) plain() string {
	if p.Decision == Allow {
		return actionApprove
	}
	return actionDeny
}

// input returns what the interrupt's request says of the permission, false where it asks
// for no such one.
func (p DecidePermission) input(i session.Interrupt) (narad.Raw, bool) {
	if facts.AsksFor(i.Kind, i.Actions) != facts.AsksPermission {
		return nil, false
	}
	members := membersOf(i)
	if len(members) == 0 {
		return i.Input, p.RequestID == ""
	}
	items, _ := i.Input.Field("members").Elements()
	at := slices.IndexFunc(items, func(item narad.Raw) bool { return word(item, "requestId") == p.RequestID })
	if at < 0 || p.RequestID == "" {
		return nil, false
	}
	return items[at], true
}

func noPermission() Answer {
	return Answer{Status: NotFound, Detail: "no such permission was asked for", Err: RefusedApproval}
}

// closed answers a decision that comes too late (R22).
func (p DecidePermission) closed(d *draft) Answer {
	if d.env.Interrupt == nil {
		return noPermission()
	}
	was, known := d.env.Interrupt(p.InterruptID)
	if !known || was.Kind == kindQuestion || (len(was.Members) > 0) != (p.RequestID != "") {
		return noPermission()
	}
	if p.RequestID != "" {
		was.Decision = was.Members[p.RequestID]
	}
	if was.Decision != narad.DecisionExpired && !slices.Contains(permissionWords, was.Decision) {
		return noPermission()
	}
	return p.late(d, was)
}

// late answers a decision of what is decided. One that would have been remembered is not
// the same as one that was not.
func (p DecidePermission) late(d *draft, was Closed) Answer {
	answer := Answer{
		Status: Conflict, Decision: was.Decision, RequestID: p.InterruptID, SessionSequence: was.SessionSequence,
		Detail: "the permission was decided before: " + was.Decision,
	}
	switch {
	case was.Decision == narad.DecisionExpired:
		answer.Status, answer.Detail = Expired, was.lapsed("nobody decided the permission")
	case plainWord(was.Decision) == p.plain() && (p.Remember == "" || d.remembers(p)):
		answer.Status, answer.Detail = AlreadyApplied, ""
	}
	return answer
}

// maxRules bounds what a session remembers.
const maxRules = 256

// rule is what is to be remembered, nil for nothing.
func (p DecidePermission) rule(d *draft, i session.Interrupt, input narad.Raw) (*facts.PermissionRule, Answer, bool) {
	if p.Remember == "" {
		return nil, Answer{}, true
	}
	subject, can := facts.SubjectOf(input)
	run, ok := d.run(i.RunID)
	if !can || !ok || i.Scope == narad.ScopeWorkflow {
		return nil, Answer{
			Status: Rejected, RequestID: i.InterruptID, Err: RefusedRemember,
			Detail: "this cannot be remembered: its agent names no resource (or a very long one), or several people must agree each time",
		}, false
	}
	rule := &facts.PermissionRule{
		Rule: rememberedRule + d.env.NewID(), Scope: p.Remember, Subject: subject, Decision: p.plain(),
		InterruptID: p.InterruptID, RequestID: p.RequestID,
	}
	if p.Remember == facts.ForLane {
		rule.RunID = d.lane(run)
	}
	if len(d.desk.Rules) >= maxRules && !slices.ContainsFunc(d.desk.Rules, rule.Same) {
		return nil, Answer{Status: Conflict, RequestID: i.InterruptID, Detail: "the session remembers as many decisions as it may", Err: RefusedRemember}, false
	}
	return rule, Answer{}, true
}

// rememberedRule begins the names of rules that people have made by a decision.
const rememberedRule = "remembered:"

// remembers reports whether a decision was remembered as it says, whatever became of its
// rule since. Those that hold are known without the row, which older stores do not have.
func (d *draft) remembers(p DecidePermission) bool {
	if d.env.Remembered != nil {
		if was, known := d.env.Remembered(p.InterruptID, p.RequestID); known {
			return was.Scope == p.Remember
		}
	}
	return slices.ContainsFunc(d.desk.Rules, func(r facts.PermissionRule) bool {
		return r.InterruptID == p.InterruptID && r.RequestID == p.RequestID && r.Scope == p.Remember
	})
}

// lane returns the run of the lane in which a run asks, "" for the session's main one. A
// gate asks in the lane of the run above it (R10, R41).
func (d *draft) lane(run session.Run) string {
	if d.gate(run) {
		run.RunID = run.ParentRunID
	}
	if run.RunID == run.RootRunID && run.WorkflowID == "" {
		return ""
	}
	return run.RunID
}

// remembered returns what a decision before has to say of what a run asks for, nil for
// nothing. Where two have, the one that refuses counts.
func (d *draft) remembered(run session.Run, input narad.Raw) *Ruling {
	if len(d.desk.Rules) == 0 {
		return nil
	}
	subject, can := facts.SubjectOf(input)
	if !can {
		return nil
	}
	var found *Ruling
	lane := d.lane(run)
	for _, r := range d.desk.Rules {
		if r.Covers(lane, subject) && (found == nil || r.Decision == actionDeny) {
			found = &Ruling{Rule: r.Rule, Decision: r.Decision}
		}
	}
	return found
}

// rememberedOf is what is remembered of an ask that asks for one permission.
func (d *draft) rememberedOf(run session.Run, a Ask) *Ruling {
	if len(a.Members) > 0 || facts.AsksFor(a.Kind, a.Actions) != facts.AsksPermission {
		return nil
	}
	return d.remembered(run, a.Input)
}

// rememberedMember is what is remembered of a member of a pack.
func (d *draft) rememberedMember(run session.Run, m member) *Ruling {
	input, err := facts.Value(m)
	if err != nil {
		return nil
	}
	return d.remembered(run, input)
}

// ForgetPermission takes a remembered decision back: what is asked from now on is asked of
// people again. What it has decided stands.
type ForgetPermission struct{ Rule string }

func (f ForgetPermission) propose(d *draft) Answer {
	if !slices.ContainsFunc(d.desk.Rules, func(r facts.PermissionRule) bool { return r.Rule == f.Rule }) {
		return refuse(NotFound, "nothing is remembered under that name")
	}
	d.add(facts.Session(facts.PermissionForgotten, facts.Forgotten{Rule: f.Rule}))
	return Answer{Status: Accepted}
}

// AnswerQuestion answers a question, or dismisses it (R13).
type AnswerQuestion struct {
	InterruptID string
	// Answers are by position. Their options are places in the order in which the options
	// are drawn: facts.OptionOrder, and behind these the row that takes typing.
	Answers []QuestionAnswer
	Dismiss bool
}

func (a AnswerQuestion) propose(d *draft) Answer {
	i, known := d.state.Interrupt(a.InterruptID)
	if !known || !i.Open {
		return a.closed(d)
	}
	if facts.AsksFor(i.Kind, i.Actions) != facts.AsksQuestion {
		return noQuestion()
	}
	command := Resolve{InterruptID: a.InterruptID, Decision: actionDismiss}
	if !a.Dismiss {
		var refusal Answer
		if command, refusal, known = a.onto(i); !known {
			return refusal
		}
	}
	if !slices.Contains(i.Actions, command.Decision) {
		return Answer{
			Status: Unsupported, RequestID: i.InterruptID, Err: RefusedNotOffered,
			Detail: "what is asked cannot be dismissed",
		}
	}
	return command.propose(d)
}

func noQuestion() Answer {
	return Answer{Status: NotFound, Detail: "no such question was asked", Err: RefusedApproval}
}

// closed answers what comes too late (R22).
func (a AnswerQuestion) closed(d *draft) Answer {
	if d.env.Interrupt == nil {
		return noQuestion()
	}
	was, known := d.env.Interrupt(a.InterruptID)
	if !known || was.Kind != kindQuestion && slices.Contains(permissionWords, was.Decision) {
		return noQuestion()
	}
	answer := Answer{
		Status: Conflict, Decision: was.Decision, RequestID: a.InterruptID, SessionSequence: was.SessionSequence,
		Detail: "the question was settled before",
	}
	switch {
	case was.Decision == narad.DecisionExpired:
		answer.Status, answer.Detail = Expired, was.lapsed("nobody answered the question")
	case a.same(was):
		answer.Status, answer.Detail = AlreadyApplied, ""
	}
	return answer
}

// same reports whether a question was answered just so.
func (a AnswerQuestion) same(was Closed) bool {
	if a.Dismiss {
		return was.Decision == actionDismiss
	}
	i, answers, known := was.asked()
	if !known {
		return false
	}
	command, _, fits := a.onto(i)
	return fits && command.Decision == was.Decision && alike(command.Answers, answers)
}

// onto says the answers as the decision that the interrupt offers for them.
func (a AnswerQuestion) onto(i session.Interrupt) (Resolve, Answer, bool) {
	questions, _ := i.Input.Field("questions").Elements()
	own := len(questions) == 0 // a choice of the agent's own words
	if own {
		actions, _ := facts.Value(map[string]any{"options": i.Actions})
		questions = []narad.Raw{actions}
	}
	command := Resolve{InterruptID: i.InterruptID, Decision: actionAnswer}
	if len(a.Answers) != len(questions) {
		return command, wrongAnswer(i, "answers", "there are "+strconv.Itoa(len(questions))+" questions, and each wants an answer"), false
	}
	for n, q := range questions {
		answer, rule := a.Answers[n].chosen(q)
		if rule == "" {
			rule = answer.fits(q)
		}
		if rule != "" {
			return command, wrongAnswer(i, "answers["+strconv.Itoa(n)+"]", rule), false
		}
		command.Answers = append(command.Answers, answer)
	}
	switch {
	case own:
		command.Decision, command.Answers = i.Actions[command.Answers[0].Options[0]], nil
	case !slices.Contains(i.Actions, actionAnswer): // one of several options is the decision
		command.Decision, command.Answers = strconv.Itoa(command.Answers[0].Options[0]), nil
	}
	return command, Answer{}, true
}

func wrongAnswer(i session.Interrupt, field, rule string) Answer {
	return Answer{Status: Rejected, RequestID: i.InterruptID, Err: RefusedAnswer, Field: field, Detail: rule}
}

// chosen says the places of an answer as the agent's own indexes. The place of the row
// that takes typing says that the text is the answer, or a part of it.
func (a QuestionAnswer) chosen(question narad.Raw) (QuestionAnswer, string) {
	options, _ := question.Field("options").Elements()
	free := len(options) == 0 || string(question.Field("free")) == "true"
	var recommended *int
	if n, err := strconv.Atoi(string(question.Field("recommended"))); err == nil {
		recommended = &n
	}
	order := facts.OptionOrder(len(options), recommended)
	out := QuestionAnswer{Text: a.Text}
	for n, place := range a.Options {
		switch {
		case slices.Contains(a.Options[:n], place):
			return out, "an option stands twice"
		case place >= 0 && place < len(order):
			out.Options = append(out.Options, order[place])
		case place != len(order) || !free:
			return out, "no such option"
		case a.Text == "":
			return out, "a text is required"
		}
	}
	if len(a.Options) > 1 && string(question.Field("multiple")) != "true" {
		return out, "only one option is allowed"
	}
	return out, ""
}

func (DecidePermission) word() string { return "decide-permission" }
func (AnswerQuestion) word() string   { return "answer-question" }
func (ForgetPermission) word() string { return "forget-permission" }

func (f ForgetPermission) tell(to *content) { to.text("rule", f.Rule) }

func (p DecidePermission) tell(to *content) {
	to.text("interruptId", p.InterruptID)
	to.text("requestId", p.RequestID)
	to.text("decision", p.Decision)
	to.text("remember", p.Remember)
	to.text("reason", p.Reason)
}

func (a AnswerQuestion) tell(to *content) {
	to.text("interruptId", a.InterruptID)
	if a.Dismiss {
		to.must("dismiss", "true")
	}
	for _, one := range a.Answers {
		to.must("answer", one.told())
	}
}
