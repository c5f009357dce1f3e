package journal

import "errors"

// Damage makes rows unreadable, as a disk may do, so that tests see what their readers
// make of it. Memory has no other way to lose one. A row that is written again is whole;
// a key without a row is no change.
func (m *Memory) Damage(keys ...Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if m.rows[key] != nil {
			m.damaged[key] = true
		}
	}
}

var errMadeUnreadable = errors.New("was made unreadable")

// damageOf is what lists tell of a row that cannot be read: whose it is, but for those
// that stand in lists under an id alone, and when a timer is due.
func damageOf(row Row) Damage {
	d := Damage{Key: row.Key(), Cause: errMadeUnreadable}
	switch row := row.(type) {
	case TimerRow:
		d.Session, d.Due = row.Session, row.Due
	case SessionRow, OpenWorkRow, MaterialRow, InterruptRow:
		d.Session = row.owner()
	case DecisionRow:
		d.Session = row.Of
	}
	return d
}
