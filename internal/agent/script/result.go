package script

import "sync"

// result is what a named step left behind.
type result struct{ decision, reason, answer, outcome, code string }

func (r result) field(name string) string {
	switch name {
	case "decision":
		return r.decision
	case "reason":
		return r.reason
	case "answer":
		return r.answer
	case "outcome":
		return r.outcome
	}
	return r.code
}

// results are the results of a whole run tree, by the names of their steps.
type results struct {
	mu     sync.Mutex
	byName map[string]result
}

func newResults() *results { return &results{byName: map[string]result{}} }

// set keeps a step's result, if the step has a name.
func (r *results) set(name string, res result) {
	if name == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byName[name] = res
}

func (r *results) get(name string) result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[name]
}
