package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// inquiry gets the decision of one interrupt from a person, line by line.
type inquiry struct {
	id        string
	actions   []string
	members   []packMember
	questions []asking
	answers   []client.QuestionAnswer // those given so far
}

func newInquiry(i session.Interrupt) *inquiry {
	return &inquiry{id: i.InterruptID, actions: i.Actions, members: packOf(i.Input), questions: questionsOf(i.Input)}
}

// The words of questions (R13).
const (
	wordAnswer  = "answer"
	wordDismiss = "dismiss"
)

// prompt is what stands before the cursor.
func (q *inquiry) prompt() string {
	switch {
	case q.wantsAnswers():
		text := "answer"
		if len(q.questions) > 1 {
			text += fmt.Sprintf(" %d of %d", len(q.answers)+1, len(q.questions))
		}
		return text + " (or dismiss): "
	case len(q.questions) > 0:
		text := "the number, or dismiss"
		if best := q.questions[0].recommended; best >= 0 {
			text += fmt.Sprintf(" [%d]", best)
		}
		return text + ": "
	case len(q.members) > 0:
		return short(strings.Join(q.actions, ", "), 60) + ", or MEMBER DECISION: "
	}
	return short(strings.Join(q.actions, ", "), 70) + "? "
}

// wantsAnswers says that one word does not do.
func (q *inquiry) wantsAnswers() bool {
	return len(q.questions) > 0 && slices.Contains(q.actions, wordAnswer)
}

// take reads a line. It returns the command once there is one; an error says what is
// wrong with the line, nil and nil that more lines are needed.
func (q *inquiry) take(line string) (*client.ResolveInterrupt, error) {
	line = strings.TrimSpace(line)
	switch {
	case q.wantsAnswers() && line != wordDismiss:
		return q.answer(line)
	case line == "" && len(q.questions) == 1 && q.questions[0].recommended >= 0:
		line = strconv.Itoa(q.questions[0].recommended)
	case line == "":
		return nil, errors.New("it stays open until somebody decides; Ctrl-C leaves it open")
	}
	word, rest, _ := strings.Cut(line, " ")
	command := &client.ResolveInterrupt{InterruptID: q.id}
	if slices.ContainsFunc(q.members, func(m packMember) bool { return m.id == word }) {
		decision, err := q.action(rest)
		command.Decision, command.Members = decision, []client.MemberDecision{{RequestID: word, Decision: decision}}
		return command, err
	}
	decision, err := q.action(word)
	command.Decision, command.Reason = decision, strings.TrimSpace(rest)
	return command, err
}

// action finds the action that a word stands for: itself, a beginning of it, yes or no.
func (q *inquiry) action(word string) (string, error) {
	word = strings.ToLower(strings.TrimSpace(word))
	switch word {
	case "y", "yes":
		word = "approve"
	case "n", "no":
		word = "deny"
	}
	var fits []string
	for _, action := range q.actions {
		if action == word {
			return action, nil
		}
		if word != "" && strings.HasPrefix(action, word) {
			fits = append(fits, action)
		}
	}
	slices.SortFunc(fits, func(a, b string) int { return len(a) - len(b) })
	if len(fits) == 0 || !allBegin(fits, fits[0]) {
		return "", fmt.Errorf("one of: %s", strings.Join(q.actions, ", "))
	}
	return fits[0], nil
}

func allBegin(words []string, with string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, with) })
}

// answer takes the answer to the next question: numbers of options, or a text.
func (q *inquiry) answer(line string) (*client.ResolveInterrupt, error) {
	answer, err := q.questions[len(q.answers)].answer(line)
	if err != nil {
		return nil, err
	}
	q.answers = append(q.answers, answer)
	if len(q.answers) < len(q.questions) {
		return nil, nil
	}
	answers := q.answers
	q.answers = nil // should the host refuse them, they are asked again
	return &client.ResolveInterrupt{InterruptID: q.id, Decision: wordAnswer, Answers: answers}, nil
}

// asking is one question to a person.
type asking struct {
	text        string
	options     []string
	recommended int // -1 for none
	multiple    bool
}

func questionsOf(input narad.Raw) []asking {
	var list []asking
	items, _ := input.Field("questions").Elements()
	for _, item := range items {
		q := asking{recommended: -1, multiple: string(item.Field("multiple")) == "true"}
		q.text, _ = item.Field("text").IsString()
		options, _ := item.Field("options").Elements()
		for _, o := range options {
			text, _ := o.IsString()
			q.options = append(q.options, text)
		}
		if n, err := strconv.Atoi(string(item.Field("recommended"))); err == nil && n >= 0 && n < len(q.options) {
			q.recommended = n
		}
		list = append(list, q)
	}
	return list
}

// words shows a question and its options, by the numbers that decide them.
func (q asking) words(number int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d. %s", number, oneLine(q.text))
	for i, option := range q.options {
		fmt.Fprintf(&b, "\n   %d) %s", i, oneLine(option))
		if i == q.recommended {
			b.WriteString(" (recommended)")
		}
	}
	if q.multiple {
		b.WriteString("\n   several with commas")
	}
	return b.String()
}

// answer reads numbers of options with commas, or takes the line as a text.
func (q asking) answer(line string) (client.QuestionAnswer, error) {
	if line == "" {
		if q.recommended < 0 {
			return client.QuestionAnswer{}, errors.New("an answer is needed, or dismiss")
		}
		line = strconv.Itoa(q.recommended)
	}
	answer := client.QuestionAnswer{Options: []string{}}
	if len(q.options) == 0 {
		answer.Text = line
		return answer, nil
	}
	for part := range strings.SplitSeq(line, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return client.QuestionAnswer{Options: []string{}, Text: line}, nil
		}
		if n < 0 || n >= len(q.options) {
			return answer, fmt.Errorf("there is no option %d", n)
		}
		answer.Options = append(answer.Options, strconv.Itoa(n))
	}
	return answer, nil
}

// packMember is one of several things that are asked together (R12).
type packMember struct{ id, tool, action, resource, detail, quorum string }

func packOf(input narad.Raw) []packMember {
	var list []packMember
	items, _ := input.Field("members").Elements()
	for _, item := range items {
		word := func(name string) string { s, _ := item.Field(name).IsString(); return s }
		m := packMember{word("requestId"), word("toolName"), word("action"), word("resource"), word("detail"), quorumWords(item)}
		if m.id != "" {
			list = append(list, m)
		}
	}
	return list
}

func (m packMember) words() string {
	return oneLine(m.id + ": " + joined(" ", m.tool, m.action, m.resource, m.detail, m.quorum))
}

// quorumWords says how many must approve, where that is more than one (R12).
func quorumWords(input narad.Raw) string {
	n, err := strconv.Atoi(string(input.Field("quorum")))
	if err != nil || n < 2 {
		return ""
	}
	return fmt.Sprintf("(takes %d approvals)", n)
}
