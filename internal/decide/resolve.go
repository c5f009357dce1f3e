package decide

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Resolve decides an interrupt, or some members of a pack (R11-R13, R22).
type Resolve struct {
	InterruptID string
	Decision    string
	Reason      string
	// ExpectedRevision is the session revision that the decider saw; 0 if not told.
	ExpectedRevision int64
	// Members names the members that the decision is for; none means all that are open.
	Members []string
	// Answers are the answers to questions, by position.
	Answers []QuestionAnswer
}

// QuestionAnswer is the answer to one question.
type QuestionAnswer struct {
	Options []int  `json:"options,omitempty"`
	Text    string `json:"text,omitzero"`
}

func (r Resolve) propose(d *draft) Answer {
	i, open := d.state.Interrupt(r.InterruptID)
	if !open || !i.Open {
		return r.closed(d)
	}
	if answer, ok := r.check(d, i); !ok {
		return answer
	}
	d.closing = true
	if expiry, err := time.Parse(time.RFC3339Nano, i.ExpiresAt); err == nil && !d.env.Now.Before(expiry) && !r.decided(d) {
		return d.expire(i) // the timer is late: the deadline counts
	}
	if ballot, several := ballotOf(i); several {
		return r.vote(d, ballot)
	}
	if len(r.Members) > 0 {
		return refuse(Rejected, "the interrupt has no members")
	}
	d.resolve(i, resolution{decision: r.Decision, reason: r.Reason, answers: r.answers()})
	return Answer{Status: Accepted, Decision: r.Decision, RequestID: i.InterruptID, RunID: i.RunID}
}

// decided reports whether the command names nothing but members that were decided before.
func (r Resolve) decided(d *draft) bool {
	return len(r.Members) > 0 && !slices.ContainsFunc(r.Members, func(id string) bool {
		return d.desk.Votes[r.InterruptID][id] == ""
	})
}

// closed answers a decision that comes too late (R22).
func (r Resolve) closed(d *draft) Answer {
	if d.env.Interrupt == nil {
		return refuse(NotFound, "no such interrupt")
	}
	was, known := d.env.Interrupt(r.InterruptID)
	if !known {
		return refuse(NotFound, "no such interrupt")
	}
	answer := Answer{
		Status: Conflict, Decision: was.late(), RequestID: r.InterruptID,
		SessionSequence: was.SessionSequence, Detail: "the interrupt was decided before",
	}
	if own, all := r.ofMembers(was); len(r.Members) > 0 && all {
		answer.Decision = own
	}
	switch {
	case answer.Decision == narad.DecisionExpired:
		answer.Status, answer.Detail = Expired, was.lapsed("nobody decided the interrupt")
	case answer.Decision == r.Decision && r.answersAlike(was):
		answer.Status, answer.Detail = AlreadyApplied, ""
	}
	return answer
}

// answersAlike reports whether the answers of the command are those that were given.
func (r Resolve) answersAlike(was Closed) bool {
	if r.Decision != actionAnswer {
		return true
	}
	_, answers, known := was.asked()
	return known && alike(r.Answers, answers)
}

// ofMembers returns what was decided for the members that the command names: its own
// word if it is that of them all, else the first other one.
func (r Resolve) ofMembers(was Closed) (decision string, known bool) {
	for _, id := range r.Members {
		switch was.Members[id] {
		case "":
			return "", false
		case r.Decision:
		default:
			return was.Members[id], true
		}
	}
	return r.Decision, true
}

// check refuses a decision that was not offered, or that was made on a state of the
// session that the decider cannot have seen.
func (r Resolve) check(d *draft, i session.Interrupt) (Answer, bool) {
	switch {
	case r.Decision == narad.DecisionExpired:
		return refuse(Rejected, "only the host can let an interrupt expire"), false
	case !slices.Contains(i.Actions, r.Decision):
		return refuse(Rejected, "the decision is not one of the interrupt's actions: "+strings.Join(i.Actions[:min(len(i.Actions), 16)], ", ")), false
	case r.ExpectedRevision != 0 && (r.ExpectedRevision < i.RequestedSequence || r.ExpectedRevision > d.state.Last()):
		return refuse(Conflict, "expectedRevision is not a revision since the request"), false
	}
	return r.checkAnswers(i)
}

// checkAnswers demands one answer for each question, by position (R13).
func (r Resolve) checkAnswers(i session.Interrupt) (Answer, bool) {
	questions, _ := i.Input.Field("questions").Elements()
	if r.Decision != actionAnswer || len(questions) == 0 {
		if len(r.Answers) > 0 {
			return refuse(Rejected, "the decision takes no answers"), false
		}
		return Answer{}, true
	}
	if len(r.Answers) != len(questions) {
		return refuse(Rejected, "there are "+strconv.Itoa(len(questions))+" questions, and each wants an answer"), false
	}
	for n, q := range questions {
		if rule := r.Answers[n].fits(q); rule != "" {
			return refuse(Rejected, "answer "+strconv.Itoa(n)+": "+rule), false
		}
	}
	return Answer{}, true
}

// fits says what is wrong with an answer, "" for nothing.
func (a QuestionAnswer) fits(question narad.Raw) string {
	options, _ := question.Field("options").Elements()
	free := len(options) == 0 || string(question.Field("free")) == "true"
	many := string(question.Field("multiple")) == "true"
	switch {
	case len(a.Options) == 0 && a.Text == "":
		return "an option or a text is required"
	case a.Text != "" && !free:
		return "only the offered options are allowed"
	case len(a.Options) > 1 && !many:
		return "only one option is allowed"
	case len(a.Options) > 0 && a.Text != "" && !many:
		return "only one answer is allowed: an option or a text"
	}
	for n, o := range a.Options {
		if o < 0 || o >= len(options) {
			return "no such option"
		}
		if slices.Contains(a.Options[:n], o) {
			return "an option stands twice"
		}
	}
	return ""
}

func (r Resolve) answers() narad.Raw {
	if len(r.Answers) == 0 {
		return nil
	}
	data, _ := json.Marshal(r.Answers) // ints and strings
	return data
}

// resolution is how an interrupt ends.
type resolution struct {
	decision string
	reason   string
	members  []narad.MemberDecision
	answers  narad.Raw
	actor    *facts.Actor // nil means who commands
}

// resolve closes an interrupt, resumes its run, and ends what was there only to ask:
// a gate run, or the call of a question.
func (d *draft) resolve(i session.Interrupt, r resolution) {
	actor := d.env.Actor
	if r.actor != nil {
		actor = *r.actor
	}
	who, _ := facts.Value(actor)
	resolved := &narad.InterruptResolved{
		InterruptID: i.InterruptID, WaitID: i.WaitID, Decision: r.decision, Reason: r.reason,
		Members: r.members, Actor: who,
	}
	facts.SetAnswers(&resolved.Event, r.answers)
	if i.Scope == narad.ScopeWorkflow {
		d.resolveWorkflow(i, resolved)
		return
	}
	run, _ := d.run(i.RunID)
	d.in(run, resolved)
	d.in(run, &narad.RunResumed{WaitID: i.WaitID})
	if d.gate(run) {
		d.in(run, gateEnd(run.StopRequested))
	} else if t, asked := d.askedBy(i); asked {
		d.in(run, d.answered(t, r))
	}
}

// askedBy returns the open call through which a question was asked.
func (d *draft) askedBy(i session.Interrupt) (session.Tool, bool) {
	if i.Kind != kindQuestion {
		return session.Tool{}, false
	}
	id, _ := i.Input.Field("toolCallId").IsString()
	t, known := d.state.Tool(id)
	return t, known && t.Open && t.RunID == i.RunID && t.ToolName == askUser
}

// gateEnd is the terminal of a gate run.
func gateEnd(stopped bool) narad.Authority {
	if stopped {
		return &narad.RunCancelled{Code: "stopped"}
	}
	return &narad.RunFinished{}
}

// answered ends the call through which a question was asked.
func (d *draft) answered(t session.Tool, r resolution) *narad.ToolCallFinished {
	type response struct {
		Decision string    `json:"decision"`
		Answers  narad.Raw `json:"answers,omitzero"`
	}
	value, _ := facts.Value(response{r.decision, r.answers})
	outcome, code := narad.OutcomeSuccess, ""
	switch r.decision {
	case actionDismiss:
		outcome, code = narad.OutcomeCancelled, "dismissed"
	case narad.DecisionExpired:
		outcome, code = narad.OutcomeCancelled, "expired"
	}
	return d.finish(t, outcome, value, code, "")
}

// Expire lets an interrupt expire when its time has come. It does nothing to one that
// is closed, or whose time has not come.
type Expire struct{ InterruptID string }

func (e Expire) propose(d *draft) Answer {
	i, known := d.state.Interrupt(e.InterruptID)
	if !known || !i.Open {
		return Answer{Status: AlreadyApplied}
	}
	due, err := time.Parse(time.RFC3339Nano, i.ExpiresAt)
	if err != nil || d.env.Now.Before(due) {
		return Answer{Status: AlreadyApplied}
	}
	d.closing = true
	answer := d.expire(i)
	answer.Status = Accepted
	return answer
}

// expire closes an interrupt whose time is over. To who came to decide it, it has
// expired; the facts stand all the same.
func (d *draft) expire(i session.Interrupt) Answer {
	d.lapse(i, reasonExpired)
	return Answer{
		Status: Expired, Decision: narad.DecisionExpired, RequestID: i.InterruptID,
		Detail: "nobody decided in time", keep: true,
	}
}

// reasonExpired is the reason of an interrupt whose time was over.
const reasonExpired = "expired"

// lapse closes an interrupt that nobody has decided.
func (d *draft) lapse(i session.Interrupt, reason string) {
	decision, members := d.lapsed(i)
	d.resolve(i, resolution{decision: decision, reason: reason, actor: &hostActor, members: members})
}

// hostActor is who decides what no person and no rule has decided.
var hostActor = facts.Actor{ID: "host"}

// since returns the milliseconds from a timestamp to now, 0 where the clock jumped.
func since(at string, now time.Time) int64 {
	start, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return 0
	}
	return max(now.Sub(start).Milliseconds(), 0)
}
