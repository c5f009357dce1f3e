package script

import (
	"strings"
	"sync"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// tally counts facts that are told apart by their content alone.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) add(key string) {
	if key == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[key]++
}

// take takes one fact away, if there is one.
func (t *tally) take(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[key] == 0 {
		return false
	}
	t.counts[key]--
	return true
}

func (t *tally) total() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, count := range t.counts {
		n += count
	}
	return n
}

// drop takes away what is counted of a run, and returns how much that was.
func (t *tally) drop(runID string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for key, count := range t.counts {
		if strings.HasPrefix(key, runID+"\x00") {
			n += count
			delete(t.counts, key)
		}
	}
	return n
}

func activityKey(runID, id string, status narad.ProgressStatus, label, detail string) string {
	return strings.Join([]string{runID, "activity", id, string(status), label, detail}, "\x00")
}

// customKey returns "" for the host's own facts.
func customKey(runID, name string, value narad.Raw) string {
	if strings.HasPrefix(name, facts.Prefix) {
		return ""
	}
	return strings.Join([]string{runID, "custom", name, string(value)}, "\x00")
}
