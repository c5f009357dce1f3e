package desk

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// setUp follows what the session's next run works with.
func (s *State) setUp(c *narad.Custom) {
	switch c.Name {
	case facts.SessionMoved:
		m, _ := facts.Read[facts.Moved](c, c.Name)
		s.Cwd = m.Cwd
	case facts.SessionTitled:
		t, _ := facts.Read[facts.Titled](c, c.Name)
		s.Title = t.Title
	case facts.SessionModel:
		m, _ := facts.Read[facts.Modelled](c, c.Name)
		s.Provider, s.Model, s.Variant = m.Provider, m.Model, m.Variant
	case facts.SessionVariant:
		v, _ := facts.Read[facts.Varied](c, c.Name)
		s.Variant = v.Variant
	case facts.SessionStyle:
		y, _ := facts.Read[facts.Styled](c, c.Name)
		s.Style = y.Style
	case facts.SessionWarming:
		if w, ok := facts.Read[facts.Warmed](c, c.Name); ok {
			s.Warming = &w
		}
	}
}
