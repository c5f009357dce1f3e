package pebble

import (
	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// Damage writes over the stored form of rows, behind the engine's back: it is seen from
// the next commit on.
func (j *Journal) Damage(rows ...journal.Key) error {
	for _, key := range rows {
		var sid uint64
		if key.Session != "" {
			s, err := j.current.Load().stream(key.Session)
			if err != nil {
				return err
			}
			sid = s.sid
		}
		if err := j.db.Set(rowKey(key, sid), []byte("\xffno row"), lsm.Sync); err != nil {
			return err
		}
	}
	return nil
}
