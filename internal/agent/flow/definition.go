package flow

import (
	"regexp"
	"slices"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Bounds of a workflow, in bytes where nothing else is said.
const (
	// MaxFile bounds a file.
	MaxFile = 256 << 10
	// MaxData bounds the working data, all of it.
	MaxData = 256 << 10
	// maxPrompt bounds what an agent is told (DESIGN §10).
	maxPrompt = 256 << 10
	// maxResult bounds what is kept of what an agent said.
	maxResult = 64 << 10
	maxNodes  = 200
	// maxBranches bounds the parallel branches of a node, and the options of a question.
	maxBranches = 32
	maxAttempts = 20
	maxSteps    = 1_000
	usualSteps  = 100
)

// Definition is a workflow that was read from a file.
type Definition struct {
	// Name is what people call the workflow, "" if the file does not say.
	Name string
	// Start is the first node.
	Start string

	limit int // of steps
	data  []entry
	nodes map[string]*node
	order []string // their ids, as they stand in the file
}

// entry is a named value of the working data.
type entry struct {
	name  string
	value narad.Raw
}

// Nodes returns how many nodes there are.
func (d *Definition) Nodes() int { return len(d.nodes) }

// Steps returns the ids of the nodes that are steps, those that do not end the workflow, in
// the order of the file.
func (d *Definition) Steps() []string {
	return slices.DeleteFunc(slices.Clone(d.order), func(id string) bool { return d.nodes[id].end != nil })
}

// Total returns how many steps the workflow takes if none fails; false where a condition
// decides it.
func (d *Definition) Total() (steps int, known bool) {
	for id := d.Start; steps <= len(d.nodes); steps++ {
		n := d.nodes[id]
		if n.end != nil {
			return steps, true
		}
		if len(n.next) != 1 {
			return 0, false
		}
		id = n.next[0].to
	}
	return 0, false // it goes round
}

// Agents returns the names of the configured agents that the nodes run, each once, in
// their alphabetical order.
func (d *Definition) Agents() []string {
	seen := map[string]bool{}
	for _, n := range d.nodes {
		for _, w := range n.work {
			if w.script == nil {
				seen[w.agent] = true
			}
		}
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// node is one place of the workflow. One of work, ask, set and end says what it does.
type node struct {
	id       string
	work     []work // one, or the parallel branches
	parallel bool
	ask      *question
	set      []assignment
	end      *ending

	as        string // the name of the result in the data
	attempts  int
	backoff   time.Duration
	next      []path
	onFailure string
}

// work is what an agent does for a node.
type work struct {
	name   string // of the branch
	agent  string // configured, "" for a script of the file
	script agent.Kind
	prompt template
	json   bool // the result is JSON
}

// question is what a person is asked.
type question struct {
	approval    bool
	title       template
	message     template
	text        template
	options     []string
	recommended int // -1 for none
	free        bool
	expires     time.Duration
}

// assignment sets a value of the data.
type assignment struct {
	name  string
	value value
}

// ending ends the workflow.
type ending struct {
	failed  bool
	code    string
	message template
	output  value
}

// path is one way on from a node. The last one has no condition.
type path struct {
	when *condition
	to   string
}

// condition reads one value of the data.
type condition struct {
	pointer string
	op      string
	value   narad.Raw
	pattern *regexp.Regexp
}
