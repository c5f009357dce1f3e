package pebble

import (
	"sync/atomic"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"
)

// mergeRest is how long no merge of tables begins after one met damage. Pebble would try the
// same again at once, for as long as it runs.
const mergeRest = 30 * time.Second

// rest is a time in which no merge begins.
type rest struct{ until atomic.Pointer[time.Time] }

func (r *rest) begin() {
	until := time.Now().Add(mergeRest)
	r.until.Store(&until)
}

func (r *rest) lasts() bool {
	until := r.until.Load()
	return until != nil && time.Now().Before(*until)
}

// mergeScheduler is Pebble's own but for the rests. It looks for work after each flush and
// merge, not every tenth of a second as well: that constructor is not exported.
type mergeScheduler struct {
	*lsm.ConcurrencyLimitScheduler
	rest *rest
}

func newMergeScheduler(r *rest) mergeScheduler {
	return mergeScheduler{lsm.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(), r}
}

// Register implements lsm.CompactionScheduler.
func (s mergeScheduler) Register(goroutines int, db lsm.DBForCompaction) {
	s.ConcurrencyLimitScheduler.Register(goroutines, restingDB{db, s.rest})
}

// restingDB allows no merge in a rest.
type restingDB struct {
	lsm.DBForCompaction
	rest *rest
}

// GetAllowedWithoutPermission implements lsm.DBForCompaction.
func (d restingDB) GetAllowedWithoutPermission() int {
	if d.rest.lasts() {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}
