package naryahttp

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// asked is a question that waits.
type asked struct {
	QuestionID string     `json:"questionId"`
	SessionID  string     `json:"sessionId"`
	LaneID     string     `json:"laneId,omitzero"`
	ToolCallID string     `json:"toolCallId,omitzero"`
	Questions  []question `json:"questions"`
	AskedAt    string     `json:"askedAt"`
	ExpiresAt  string     `json:"expiresAt,omitzero"`
}

type question struct {
	Header   string   `json:"header,omitzero"`
	Question string   `json:"question"`
	Multiple bool     `json:"multiple,omitzero"`
	Options  []option `json:"options"`
}

type option struct {
	Value       string `json:"value"`
	Recommended bool   `json:"recommended,omitzero"`
	Preview     string `json:"preview,omitzero"`
	Other       bool   `json:"other,omitzero"`
}

// questions lists the questions that wait, in the order in which they were asked.
func (b *Binding) questions(w http.ResponseWriter, r *request) error {
	return writeAsked(b, w, r, "questions", func(e narya.Event, f *narad.InterruptRequested) (asked, bool) {
		p, ok := e.Payload.(*narya.QuestionAsked)
		if !ok {
			return asked{}, false
		}
		one := asked{
			QuestionID: p.QuestionID, SessionID: e.SessionID, LaneID: e.LaneID, ToolCallID: p.ToolCallID,
			AskedAt: f.Timestamp, ExpiresAt: f.ExpiresAt,
		}
		for _, q := range p.Questions {
			shown := question{Header: q.Header, Question: q.Question, Multiple: q.Multiple, Options: []option{}}
			for _, o := range q.Options {
				shown.Options = append(shown.Options, option(o))
			}
			one.Questions = append(one.Questions, shown)
		}
		return one, true
	})
}

// The bounds of an answer.
const (
	maxAnswers = 32
	maxChosen  = 256
	maxTyped   = 64 << 10 // bytes
)

func (b *Binding) answerQuestion(w http.ResponseWriter, r *request) error {
	var body struct {
		Answers []decide.QuestionAnswer `json:"answers"`
		Dismiss bool                    `json:"dismiss"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	if err := checkAnswers(body.Answers, body.Dismiss); err != nil {
		return err
	}
	uuid, _ := narya.ParseUUID(r.PathValue("questionId"))
	session, id, err := b.host.Alias(r.Context(), r.principal(), narya.KindInterrupt, uuid)
	if errors.Is(err, host.ErrNotFound) {
		return refuse(narya.CodeQuestionNotFound, "")
	}
	if err != nil {
		return err
	}
	a, err := b.do(r, host.Request{
		Action: access.ResolveInterrupt, Session: session,
		Command: decide.AnswerQuestion{InterruptID: id, Answers: body.Answers, Dismiss: body.Dismiss},
	})
	if err == nil {
		err = answerRefused(a)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, struct {
		QuestionID string `json:"questionId"`
		Dismissed  bool   `json:"dismissed"`
	}{uuid, body.Dismiss})
}

// checkAnswers bounds what is told before anything is looked for.
func checkAnswers(answers []decide.QuestionAnswer, dismiss bool) error {
	var wrong checked
	switch {
	case dismiss && len(answers) > 0:
		wrong.add("answers", "a question that is dismissed has none")
	case !dismiss && len(answers) == 0:
		wrong.add("answers", "must have one for each question")
	case len(answers) > maxAnswers:
		wrong.add("answers", "may have at most "+strconv.Itoa(maxAnswers))
	default:
		for i, a := range answers {
			field := server.Item("answers", i)
			wrong.note(server.CheckText(field+".text", a.Text, maxTyped, true))
			if len(a.Options) > maxChosen {
				wrong.add(field+".options", "may have at most "+strconv.Itoa(maxChosen))
			}
		}
	}
	return wrong.err()
}

// answerRefused is what the answer to an answer means.
func answerRefused(a host.Answer) error {
	switch {
	case a.Status == decide.NotFound:
		return refuse(narya.CodeQuestionNotFound, "")
	case a.Status == decide.Rejected && a.Err == decide.RefusedAnswer:
		return invalid(a.Field, a.Detail)
	case a.Status == decide.Conflict && a.Err == "":
		return refuse(narya.CodeAlreadyDecided, "the question was settled before")
	}
	return answer(a)
}
