package script

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// question asks a person one thing or several (R13).
type question struct {
	title   template
	list    []oneQuestion
	expires time.Duration
	as      string
	on      branches
}

type oneQuestion struct {
	text           template
	options        []template
	recommended    int
	multiple, free bool
}

// dismiss is the decision not to answer.
const dismiss = "dismiss"

func readQuestion(r *reader, n *yaml.Node, m manner) action {
	r.alone(n, "question")
	o := r.object(n, "question")
	q := &question{list: []oneQuestion{r.oneQuestion(n, o)}}
	q.readEnd(r, o, m)
	o.close("text", "options", "recommended", "multiple", "free", "title", "expires", "as", "on")
	return q
}

func readQuestions(r *reader, n *yaml.Node, m manner) action {
	r.alone(n, "questions")
	o := r.object(n, "questions")
	q := &question{}
	list := o.take("list")
	if list == nil || len(list.Content) == 0 {
		r.fail(n, "questions must have a list")
		return q
	}
	for _, item := range r.items(list, "questions: list", maxMembers) {
		inner := r.object(item, "a question")
		q.list = append(q.list, r.oneQuestion(item, inner))
		inner.close("text", "options", "recommended", "multiple", "free")
	}
	q.readEnd(r, o, m)
	o.close("list", "title", "expires", "as", "on")
	return q
}

func (r *reader) oneQuestion(n *yaml.Node, o *object) oneQuestion {
	q := oneQuestion{text: o.template("text"), recommended: -1, multiple: o.yes("multiple"), free: o.yes("free")}
	if q.text == nil {
		r.fail(n, "a question must have a text")
	}
	if list := o.take("options"); list != nil {
		for _, item := range r.items(list, "question: options", maxMembers) {
			q.options = append(q.options, r.template(item, "question: options"))
		}
	}
	if best := o.take("recommended"); best != nil {
		q.recommended = r.number(best, "question: recommended", 0, len(q.options)-1)
	}
	return q
}

// readEnd reads what one question and several have in common.
func (q *question) readEnd(r *reader, o *object, m manner) {
	q.title, q.expires = o.template("title"), o.duration("expires")
	q.as = r.as(o)
	results := []string{"answer", dismiss, narad.DecisionExpired}
	if len(q.list) == 1 {
		for i := range q.list[0].options {
			results = append(results, strconv.Itoa(i))
		}
	}
	q.on = r.on(o, m, results...)
}

func (q *question) perform(ctx context.Context, sc *scene, at spot) error {
	answer, err := sc.decided(ctx, at, func() (agent.Ask, error) { return q.fill(sc, at) })
	if err != nil {
		return err
	}
	answers, err := q.answers(sc, at, answer)
	if err != nil {
		return err
	}
	sc.play.vars.set(q.as, result{decision: answer.Decision, reason: answer.Reason, answer: strings.Join(answers, "; ")})
	words := []string{answer.Decision}
	if answer.Decision != dismiss && answer.Decision != narad.DecisionExpired {
		words = append(words, "answer")
	}
	return q.on.follow(ctx, sc, at, words...)
}

func (q *question) fill(sc *scene, at spot) (agent.Ask, error) {
	out := agent.Ask{AgentID: at.path, Kind: "question", ExpiresIn: q.expires}
	for _, one := range q.list {
		asked := agent.Question{Recommended: one.recommended, Multiple: one.multiple, Free: one.free}
		var err error
		if asked.Text, err = one.text.fill(sc, at); err != nil {
			return out, err
		}
		for i := range one.options {
			text, err := one.options[i].fill(sc, at)
			if err != nil {
				return out, err
			}
			asked.Options = append(asked.Options, text)
		}
		out.Questions = append(out.Questions, asked)
	}
	var err error
	out.Title, err = q.title.fill(sc, at)
	return out, err
}

// answers returns the answer to each question in words.
func (q *question) answers(sc *scene, at spot, given agent.Answer) ([]string, error) {
	if i, err := strconv.Atoi(given.Decision); err == nil {
		text, err := q.list[0].option(sc, at, i)
		return []string{text}, err
	}
	elements, _ := given.Answers.Elements()
	var list []string
	for i, e := range elements[:min(len(elements), len(q.list))] {
		text, err := q.list[i].answer(sc, at, e)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// option returns the text of an option, "" for one that was never offered.
func (q *oneQuestion) option(sc *scene, at spot, i int) (string, error) {
	if i < 0 || i >= len(q.options) {
		return "", nil
	}
	return q.options[i].fill(sc, at)
}

// answer reads {options, text?}.
func (q *oneQuestion) answer(sc *scene, at spot, given narad.Raw) (string, error) {
	var parts []string
	chosen, _ := given.Field("options").Elements()
	for _, c := range chosen {
		i, err := strconv.Atoi(string(c))
		if err != nil {
			continue
		}
		text, err := q.option(sc, at, i)
		if err != nil {
			return "", err
		}
		parts = append(parts, text)
	}
	if text, ok := given.Field("text").IsString(); ok && text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, ", "), nil
}
