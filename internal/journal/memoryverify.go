package journal

import "context"

// Verify implements Keeper. It holds up writers while it walks.
func (m *Memory) Verify(ctx context.Context, options VerifyOptions) (Report, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return Report{}, ErrClosed
	}
	v := NewVerifier(m.identity, options)
	for session, stream := range m.streams {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		if stream.deleted {
			v.Tombstone()
			continue
		}
		m.verifySessionLocked(v.Session(session), stream)
	}
	for key, row := range m.rows {
		if m.damaged[key] {
			d := damageOf(row)
			v.Problem(Problem{Code: ProblemRow, Session: d.Session, Row: key.String(), Detail: d.Cause.Error()})
			continue
		}
		if row.Key() != key {
			v.Problem(Problem{Code: ProblemRow, Row: key.String(), Detail: "holds " + row.Key().String()})
		}
		v.Row(row, func(session string) (uint64, bool) {
			stream := m.streams[session]
			if stream == nil || stream.deleted {
				return 0, false
			}
			return uint64(len(stream.records)), true
		})
	}
	return v.Report(m.mark), nil
}

func (m *Memory) verifySessionLocked(check *SessionCheck, stream *memoryStream) {
	for _, record := range stream.records {
		check.Record(*record)
		if m.facts[record.Offset-1] != record {
			check.problem(ProblemOrder, record.Sequence, "offset %d holds another fact", record.Offset)
		}
	}
	check.Finish(func(key Key) (Row, error) {
		if m.damaged[key] {
			return nil, errMadeUnreadable
		}
		return m.rows[key], nil
	})
}
