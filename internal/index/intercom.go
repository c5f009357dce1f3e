package index

import (
	"strconv"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// OutboxTimerID names the timer that is due while a session has something to deliver to
// another one.
const OutboxTimerID = "intercom"

// IntercomName names the row that leads from the name of a session to the session (R44).
func IntercomName(name string) journal.Key { return journal.AliasKey("intercom.name", name) }

// IntercomGone names the row that keeps the name of a deleted session from being given again.
// It is of no session.
func IntercomGone(name string) journal.Key { return journal.AliasKey("intercom.gone", name) }

// IntercomAsk names the row that leads from an ask to the session that was asked.
func IntercomAsk(askID string) journal.Key { return journal.AliasKey("intercom.ask", askID) }

// AskEnd names the row that says where the answer to an ask stands, or its end without one,
// in the session that asked: its id is the sequence of the fact.
func AskEnd(askID string) journal.Key { return journal.AliasKey("intercom.end", askID) }

// named keeps the name of a new session.
func (c *changes) named(f *narad.Custom) {
	created, _ := facts.Read[facts.Created](f, f.Name)
	if created.IntercomName == "" {
		return
	}
	key := IntercomName(created.IntercomName)
	c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: f.SessionID, ID: f.SessionID})
}

func (c *changes) intercom(f *narad.Custom) {
	switch f.Name {
	case facts.IntercomSent:
		c.outbox()
	case facts.Intercom:
		told, _ := facts.Read[facts.Told](f, f.Name)
		switch told.Kind {
		case facts.Ask:
			key := IntercomAsk(told.AskID)
			c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: f.SessionID, ID: told.AskID})
		case facts.Answered:
			c.place(AskEnd(told.AskID))
		}
	case facts.IntercomClosed:
		closed, _ := facts.Read[facts.AskClosed](f, f.Name)
		if _, asks := c.desk.Asks(closed.AskID); asks || closed.ToSessionID != "" {
			c.place(AskEnd(closed.AskID))
		}
		if closed.Tell() != "" {
			c.outbox()
		}
	case facts.IntercomDelivered:
		delivered, _ := facts.Read[facts.Delivered](f, f.Name)
		if ask, open := c.desk.AskOf(delivered.MessageID); open && delivered.Code != "" {
			c.place(AskEnd(ask.AskID))
		}
		if len(c.after().Outbox) == 0 {
			c.remove(journal.TimerKey(f.SessionID, OutboxTimerID))
		}
	}
}

// outbox sets the timer by which what was sent is delivered: at once. Each time is another
// one, also within a millisecond: a timer that has fired at its time rests.
func (c *changes) outbox() {
	due, err := time.Parse(time.RFC3339Nano, c.e.Timestamp)
	if err != nil {
		return // every fact has its time
	}
	due = due.Add(-time.Duration(c.e.SessionSequence%1000) * time.Microsecond)
	at := strconv.FormatInt(c.e.SessionSequence, 10)
	c.put(journal.TimerRow{Session: c.e.SessionID, ID: OutboxTimerID, Due: due, Value: []byte(at)})
}
