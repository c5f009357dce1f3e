package decide

import (
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/facts"
)

// The commands of this file change what a session's next run works with. A run under way
// keeps what it has. What is so already is already_applied; the host has checked that the
// directory, the model or the style is there.

// Retitle gives the session another title, "" for none.
type Retitle struct{ Title string }

func (t Retitle) propose(d *draft) Answer {
	return d.setUp(t.Title == d.desk.Title, facts.SessionTitled, facts.Titled{Title: t.Title, Was: d.desk.Title})
}

// Move lets the session work in another directory.
type Move struct{ Cwd string }

func (m Move) propose(d *draft) Answer {
	return d.setUp(m.Cwd == d.desk.Cwd, facts.SessionMoved, facts.Moved{Cwd: m.Cwd, Was: d.desk.Cwd})
}

// ChooseModel chooses a model and its preset. The preset of the model before means
// nothing to another one.
type ChooseModel struct{ Provider, Model, Variant string }

func (m ChooseModel) propose(d *draft) Answer {
	is := d.desk.Setup
	same := m.Provider == is.Provider && m.Model == is.Model && m.Variant == is.Variant
	return d.setUp(same, facts.SessionModel, facts.Modelled{
		Provider: m.Provider, Model: m.Model, WasProvider: is.Provider, WasModel: is.Model, Variant: m.Variant,
	})
}

// ChooseVariant chooses a preset of the model, "" for the model's own defaults.
type ChooseVariant struct{ Variant string }

func (v ChooseVariant) propose(d *draft) Answer {
	return d.setUp(v.Variant == d.desk.Variant, facts.SessionVariant, facts.Varied{Variant: v.Variant, Was: d.desk.Variant})
}

// ChooseStyle chooses the style of the answers, "" for the agent's own.
type ChooseStyle struct{ Style string }

func (s ChooseStyle) propose(d *draft) Answer {
	return d.setUp(s.Style == d.desk.Style, facts.SessionStyle, facts.Styled{Style: s.Style, Was: d.desk.Style})
}

// SetPosture records whether anybody is there to answer (R18).
type SetPosture struct{ Posture string }

func (p SetPosture) propose(d *draft) Answer {
	if p.Posture != facts.Attended && p.Posture != facts.Detached {
		return refuse(Rejected, "posture must be attended or detached")
	}
	return d.setUp(p.Posture == d.desk.Posture, facts.Posture, facts.Postured{Posture: p.Posture, Was: d.desk.Posture})
}

// SetWarming records whether a provider's cache is to be kept while nobody uses the
// session, and what that may cost.
type SetWarming struct {
	Enabled bool
	// CeilingUSD is in US dollars, of the session's whole life.
	CeilingUSD float64
}

func (w SetWarming) propose(d *draft) Answer {
	if w.CeilingUSD < 0 {
		return refuse(Rejected, "ceilingUsd must not be negative")
	}
	is, now := d.desk.Warming, facts.Warmed{Enabled: w.Enabled, CeilingUSD: w.CeilingUSD}
	return d.setUp(is != nil && *is == now, facts.SessionWarming, now)
}

// setUp records a change of the session's setup, unless it is none.
func (d *draft) setUp(same bool, name string, payload any) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return Answer{Status: Conflict, Detail: "the session is archived", Err: RefusedArchived}
	case same:
		return Answer{Status: AlreadyApplied}
	}
	d.add(facts.Session(name, payload))
	return Answer{Status: Accepted}
}

// MarkViewed records that somebody has seen what had happened until now. Where nothing
// has happened since the last time it records nothing.
type MarkViewed struct{}

func (MarkViewed) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Seen:
		return Answer{Status: AlreadyApplied}
	}
	d.add(facts.Session(facts.SessionViewed, facts.Viewed{}))
	return Answer{Status: Accepted}
}

// Branch makes a session that goes on from another one. The host fills in what it is made
// with from the parent as that is now; the other fields are what the client tells.
type Branch struct {
	ParentSessionID string
	// Through is the sequence of the last fact whose conversation is taken over; 0 takes
	// all that there is.
	Through    int64
	Title      string
	ClientKind string
	Session    facts.Created
}

func (b Branch) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return Create{Payload: b.Session}.propose(d)
	case d.desk.Created.ParentSessionID != b.ParentSessionID:
		return refuse(Conflict, "the id was given to another session")
	}
	return Answer{Status: AlreadyApplied}
}

// Model names one that an agent offers.
type Model struct{ Provider, Model string }

// settleModel chooses another model for the run that starts, where the agent no longer
// offers the one that was chosen: the first that it does.
func (d *draft) settleModel() {
	is := d.desk.Setup
	offered := d.env.Models
	if is.Model == "" || len(offered) == 0 || slices.Contains(offered, Model{is.Provider, is.Model}) {
		return
	}
	if len(d.facts) == 0 {
		d.about = 1 // the answer is about the run
	}
	d.add(facts.Session(facts.SessionModel, facts.Modelled{
		Provider: offered[0].Provider, Model: offered[0].Model, WasProvider: is.Provider, WasModel: is.Model,
		Reason: facts.Substituted,
	}))
}

func (Retitle) word() string       { return "title-session" }
func (Move) word() string          { return "move-session" }
func (ChooseModel) word() string   { return "choose-model" }
func (ChooseVariant) word() string { return "choose-variant" }
func (ChooseStyle) word() string   { return "choose-style" }
func (SetPosture) word() string    { return "set-posture" }
func (SetWarming) word() string    { return "set-warming" }
func (MarkViewed) word() string    { return "view-session" }
func (MarkViewed) tell(*content)   {}
func (Branch) word() string        { return "branch-session" }

func (t Retitle) tell(to *content) { to.text("title", t.Title) }
func (m Move) tell(to *content)    { to.text("cwd", m.Cwd) }

func (m ChooseModel) tell(to *content) {
	to.text("provider", m.Provider)
	to.text("model", m.Model)
	to.text("variant", m.Variant)
}

func (v ChooseVariant) tell(to *content) { to.text("variant", v.Variant) }
func (s ChooseStyle) tell(to *content)   { to.text("style", s.Style) }
func (p SetPosture) tell(to *content)    { to.text("posture", p.Posture) }

func (w SetWarming) tell(to *content) {
	to.must("enabled", strconv.FormatBool(w.Enabled))
	to.must("ceilingUsd", strconv.FormatFloat(w.CeilingUSD, 'g', -1, 64))
}

func (b Branch) tell(to *content) {
	to.text("parentSessionId", b.ParentSessionID)
	to.number("throughSessionSequence", b.Through)
	to.text("title", b.Title)
	to.text("clientKind", b.ClientKind)
}
