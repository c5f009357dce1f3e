package naryahttp

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

// agentChoice is an agent that a session can have.
type agentChoice struct {
	Name    string `json:"name"`
	Default bool   `json:"default"`
	// Models is how many models it offers.
	Models int `json:"models"`
}

// modelChoice is a model that a session of an agent can run on.
type modelChoice struct {
	Agent    string   `json:"agent"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Variants []string `json:"variants,omitempty"`
	// Default says that a session of the agent gets it which names none.
	Default bool `json:"default"`
}

// styleChoice is a style in which answers can be asked for.
type styleChoice struct {
	Name string `json:"name"`
}

func (b *Binding) listAgents(w http.ResponseWriter, r *request) error {
	var all []agentChoice
	for _, name := range b.opt.Agents {
		all = append(all, agentChoice{name, name == b.host.DefaultAgent(), len(b.host.Models(name))})
	}
	return listOf(b, w, r, all, "agents")
}

func (b *Binding) listModels(w http.ResponseWriter, r *request) error {
	of := r.query.Get("agent")
	if r.query.Has("agent") && of == "" || server.CheckText("agent", of, maxName, oneLine) != nil {
		return malformed("agent is no name")
	}
	var all []modelChoice
	for _, name := range b.opt.Agents {
		if of != "" && of != name {
			continue
		}
		first, _ := b.host.DefaultModel(name)
		for _, m := range b.host.Models(name) {
			all = append(all, modelChoice{name, m.Provider, m.ID, m.Variants, m.Provider == first.Provider && m.ID == first.ID})
		}
	}
	if of != "" && !slices.Contains(b.opt.Agents, of) {
		return malformed("no agent has that name")
	}
	return listOf(b, w, r, all, "models", of)
}

func (b *Binding) listStyles(w http.ResponseWriter, r *request) error {
	var all []styleChoice
	for _, name := range b.host.Styles() {
		all = append(all, styleChoice{name})
	}
	return listOf(b, w, r, all, "styles")
}

// listOf answers with a page of a list that is at hand.
func listOf[T any](b *Binding, w http.ResponseWriter, r *request, all []T, scope ...string) error {
	if err := access.Authorize(r.principal(), access.ReadCapabilities, ""); err != nil {
		return err
	}
	at, err := b.page(r, append([]string{"narya"}, scope...)...)
	if err != nil {
		return err
	}
	from := 0
	if at.Cursor != "" {
		from, _ = strconv.Atoi(at.Cursor) // this list sealed it
	}
	rest := all[min(from, len(all)):]
	next := ""
	if len(rest) > at.Limit {
		rest, next = rest[:at.Limit], strconv.Itoa(from+at.Limit)
	}
	return writeList(w, at, rest, next)
}
