package journal

import "fmt"

// The rules that every engine applies in the same words. They are called on
// the committer; rowAt reads a row as the group so far leaves it, nil for none.

// CheckCondition decides one condition of a batch.
func CheckCondition(index int, condition Condition, rowAt func(Key) (Row, error)) error {
	var key Key
	var want Row
	switch condition := condition.(type) {
	case IfAbsent:
		key = condition.Key
	case IfEqual:
		key, want = condition.Row.Key(), condition.Row
	}
	row, err := rowAt(key)
	if err != nil {
		return fmt.Errorf("condition %d on %s: %w", index, key, err)
	}
	if want == nil && row == nil || want != nil && row != nil && sameRow(row, want) {
		return nil
	}
	if row != nil {
		row = ownRow(row)
	}
	return &ConditionError{Index: index, Key: key, Row: row}
}

// CompleteRow puts into a row what it does not have to say: the host offset of an
// interrupt's request, and the beginning of a workflow. first is the receipt of the
// row's batch, which has so many facts.
func CompleteRow(row Row, facts int, first Receipt, rowAt func(Key) (Row, error)) (Row, error) {
	var err error
	switch row := row.(type) {
	case InterruptRow:
		row.Offset, err = offsetOfRequest(row, facts, first, rowAt)
		return row, err
	case WorkflowRow:
		if row.First != 0 {
			return row, nil
		}
		known, err := rowAt(row.Key())
		if err != nil {
			return nil, fmt.Errorf("row %s: %w", row.Key(), err)
		}
		return begunAs(row, known), nil
	}
	return row, nil
}

// begunAs gives a workflow's row the beginning in the row before it.
func begunAs(row WorkflowRow, before Row) WorkflowRow {
	if known, ok := before.(WorkflowRow); ok && row.First == 0 && known.Session == row.Session {
		row.First = known.First
	}
	return row
}

// offsetOfRequest finds the host offset of an interrupt's request: a fact of
// the same batch, or that of the row which is there already.
func offsetOfRequest(
	interrupt InterruptRow, facts int, receipt Receipt, rowAt func(Key) (Row, error),
) (uint64, error) {
	if first := receipt.FirstSequence; facts > 0 && interrupt.Sequence >= first && interrupt.Sequence-first < uint64(facts) {
		return receipt.FirstOffset + interrupt.Sequence - first, nil
	}
	row, err := rowAt(interrupt.Key())
	if err != nil {
		return 0, fmt.Errorf("row %s: %w", interrupt.Key(), err)
	}
	known, ok := row.(InterruptRow)
	if !ok || known.Sequence != interrupt.Sequence || known.Session != interrupt.Session {
		return 0, invalid("%s of sequence %d is neither in the batch nor known", interrupt.Key(), interrupt.Sequence)
	}
	return known.Offset, nil
}

// CheckNext holds the sequence of a run tree or workflow to follow its last.
func CheckNext(what, id string, last, sequence uint64) error {
	if sequence != last+1 {
		return invalid("sequence %d of %s %q, after %d", sequence, what, id, last)
	}
	return nil
}
