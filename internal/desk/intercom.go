package desk

import (
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Intercom is what a session has to do with others (R44).
type Intercom struct {
	// Outbox is what is not delivered yet, in its order.
	Outbox []Outgoing
	// Asking holds its own asks that are open, Asked those that others put to it.
	Asking []Asking
	Asked  []Asked
}

// Outgoing is a fact that another session is to be told of: something that was said, or, under
// the id of the ask, the end of one.
type Outgoing struct {
	MessageID   string
	Sequence    int64
	ToSessionID string
	// AskID is the ask that it is, or that it ends.
	AskID string
	Ends  bool
}

// Next returns what is to be delivered first, leaving out what is for sessions that take
// nothing now. They are told of ends all the same, which make room there; but of none before
// its ask.
func (s *Intercom) Next(except []string) (Outgoing, bool) {
	waits := map[string]bool{}
	for _, o := range s.Outbox {
		switch {
		case o.Ends && !waits[o.AskID], !o.Ends && !slices.Contains(except, o.ToSessionID):
			return o, true
		}
		waits[o.AskID] = true
	}
	return Outgoing{}, false
}

// First reports whether nothing must be delivered before the message with that id.
func (s *Intercom) First(messageID string) bool {
	at := slices.IndexFunc(s.Outbox, func(o Outgoing) bool { return o.MessageID == messageID })
	if at < 0 {
		return false
	}
	is := s.Outbox[at]
	return !slices.ContainsFunc(s.Outbox[:at], func(o Outgoing) bool {
		if is.Ends {
			return !o.Ends && o.AskID == is.AskID
		}
		return !o.Ends && o.ToSessionID == is.ToSessionID
	})
}

// Asking is an ask that waits for its answer.
type Asking struct {
	AskID       string
	MessageID   string
	ToSessionID string
	RunID       string
}

// Asked is an ask that waits for the answer of this session.
type Asked struct {
	AskID         string
	From          string
	FromSessionID string
	Sequence      int64
}

// OpenAsk returns an ask that was put to the session and is open.
func (s *Intercom) OpenAsk(askID string) (Asked, bool) {
	i := slices.IndexFunc(s.Asked, func(a Asked) bool { return a.AskID == askID })
	if i < 0 {
		return Asked{}, false
	}
	return s.Asked[i], true
}

// Asks returns the session's own open ask of that id.
func (s *Intercom) Asks(askID string) (Asking, bool) {
	i := slices.IndexFunc(s.Asking, func(a Asking) bool { return a.AskID == askID })
	if i < 0 {
		return Asking{}, false
	}
	return s.Asking[i], true
}

// AskOf returns the session's own open ask that was sent as a message.
func (s *Intercom) AskOf(messageID string) (Asking, bool) {
	i := slices.IndexFunc(s.Asking, func(a Asking) bool { return a.MessageID == messageID })
	if i < 0 {
		return Asking{}, false
	}
	return s.Asking[i], true
}

func (s *Intercom) apply(c *narad.Custom) {
	switch c.Name {
	case facts.IntercomSent:
		f, _ := facts.Read[facts.Sent](c, c.Name)
		o := Outgoing{MessageID: f.MessageID, Sequence: c.SessionSequence, ToSessionID: f.ToSessionID}
		if f.Kind == facts.Ask {
			o.AskID = f.AskID
		}
		s.Outbox = append(s.Outbox, o)
		if f.Kind == facts.Ask {
			s.Asking = append(s.Asking, Asking{f.AskID, f.MessageID, f.ToSessionID, f.RunID})
		} else {
			s.answered(f.AskID)
		}
	case facts.Intercom:
		f, _ := facts.Read[facts.Told](c, c.Name)
		switch f.Kind {
		case facts.Ask:
			s.Asked = append(s.Asked, Asked{f.AskID, f.From, f.FromSessionID, c.SessionSequence})
		case facts.Answered:
			s.ended(f.AskID)
		}
	case facts.IntercomClosed:
		f, _ := facts.Read[facts.AskClosed](c, c.Name)
		s.answered(f.AskID)
		s.ended(f.AskID)
		if to := f.Tell(); to != "" {
			s.Outbox = append(s.Outbox, Outgoing{f.AskID, c.SessionSequence, to, f.AskID, true})
		}
	case facts.IntercomDelivered:
		f, _ := facts.Read[facts.Delivered](c, c.Name)
		s.Outbox = slices.DeleteFunc(s.Outbox, func(o Outgoing) bool { return o.MessageID == f.MessageID })
		if ask, open := s.AskOf(f.MessageID); open && f.Code != "" {
			s.ended(ask.AskID)
		}
	}
}

func (s *Intercom) answered(askID string) {
	s.Asked = slices.DeleteFunc(s.Asked, func(a Asked) bool { return a.AskID == askID })
}

func (s *Intercom) ended(askID string) {
	s.Asking = slices.DeleteFunc(s.Asking, func(a Asking) bool { return a.AskID == askID })
}

func (s *Intercom) clone() Intercom {
	return Intercom{slices.Clone(s.Outbox), slices.Clone(s.Asking), slices.Clone(s.Asked)}
}

// CloneIntercom is what the session has to do with others, to be changed on its own.
func (s *State) CloneIntercom() Intercom { return s.Intercom.clone() }
