package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// A stored row is its kind and then its fields in order. A field that a newer
// program appended is ignored by an older one, a field that is missing at the
// end is zero: rows only grow.

var errShort = errors.New("ends in the middle of a field")

// fieldVisitor appends the fields of a row to buf, or, when reading, takes
// them from it, or, when sizing, counts what would be appended. One list of fields a
// row type serves all three.
type fieldVisitor struct {
	reading, sizing bool
	buf             []byte
	size            int
	err             error
}

// sizeOf is the length of the stored form of a row.
func sizeOf(row Row) int {
	v := fieldVisitor{sizing: true, size: 1}
	row.fields(&v)
	return v.size
}

// EncodeRow gives the stored form of a row. Two rows are equal when these are.
func EncodeRow(row Row) []byte {
	v := fieldVisitor{buf: []byte{byte(row.Key().Kind)}}
	row.fields(&v)
	return v.buf
}

// DecodeRow reads a stored row. The row shares no memory with the input.
func DecodeRow(stored []byte) (Row, error) {
	if len(stored) == 0 {
		return nil, fmt.Errorf("row: %w", errShort)
	}
	v := &fieldVisitor{reading: true, buf: stored[1:]}
	row := decodeKind(Kind(stored[0]), v)
	if row == nil {
		return nil, fmt.Errorf("row of unknown kind %d", stored[0])
	}
	if v.err != nil {
		return nil, fmt.Errorf("row of a %s: %w", Kind(stored[0]), v.err)
	}
	if err := row.Key().Validate(); err != nil {
		return nil, fmt.Errorf("stored row: %w", err)
	}
	return row, nil
}

func decodeKind(kind Kind, v *fieldVisitor) Row {
	switch kind {
	case KindSession:
		return decodeInto(v, (*SessionRow).visit)
	case KindInterrupt:
		return decodeInto(v, (*InterruptRow).visit)
	case KindRun:
		return decodeInto(v, (*RunRow).visit)
	case KindWorkflow:
		return decodeInto(v, (*WorkflowRow).visit)
	case KindOpenWork:
		return decodeInto(v, (*OpenWorkRow).visit)
	case KindTimer:
		return decodeInto(v, (*TimerRow).visit)
	case KindCommand:
		return decodeInto(v, (*CommandRow).visit)
	case KindAlias:
		return decodeInto(v, (*AliasRow).visit)
	case KindLease:
		return decodeInto(v, (*LeaseRow).visit)
	case KindToken:
		return decodeInto(v, (*TokenRow).visit)
	case KindAgent:
		return decodeInto(v, (*AgentRow).visit)
	case KindMaterial:
		return decodeInto(v, (*MaterialRow).visit)
	case KindDecision:
		return decodeInto(v, (*DecisionRow).visit)
	default:
		return nil
	}
}

func decodeInto[R Row](v *fieldVisitor, visit func(*R, *fieldVisitor)) Row {
	var row R
	visit(&row, v)
	return row
}

// EqualRows compares two rows as they are stored.
func EqualRows(a, b Row) bool { return bytes.Equal(EncodeRow(a), EncodeRow(b)) }

// sameRow compares a row that a caller knows with the one stored, without what
// the engine itself put into it.
func sameRow(stored, known Row) bool {
	return EqualRows(withoutOffset(stored), withoutOffset(known))
}

func withoutOffset(row Row) Row {
	if interrupt, ok := row.(InterruptRow); ok {
		interrupt.Offset = 0
		return interrupt
	}
	return row
}

func (r SessionRow) fields(v *fieldVisitor)   { r.visit(v) }
func (r InterruptRow) fields(v *fieldVisitor) { r.visit(v) }
func (r RunRow) fields(v *fieldVisitor)       { r.visit(v) }
func (r WorkflowRow) fields(v *fieldVisitor)  { r.visit(v) }
func (r OpenWorkRow) fields(v *fieldVisitor)  { r.visit(v) }
func (r TimerRow) fields(v *fieldVisitor)     { r.visit(v) }
func (r CommandRow) fields(v *fieldVisitor)   { r.visit(v) }
func (r AliasRow) fields(v *fieldVisitor)     { r.visit(v) }
func (r LeaseRow) fields(v *fieldVisitor)     { r.visit(v) }
func (r TokenRow) fields(v *fieldVisitor)     { r.visit(v) }
func (r AgentRow) fields(v *fieldVisitor)     { r.visit(v) }
func (r MaterialRow) fields(v *fieldVisitor)  { r.visit(v) }
func (r DecisionRow) fields(v *fieldVisitor)  { r.visit(v) }

func (r *SessionRow) visit(v *fieldVisitor) {
	v.text(&r.Session)
	v.text(&r.Workspace)
	v.text(&r.State)
	v.bytes(&r.Value)
}

func (r *InterruptRow) visit(v *fieldVisitor) {
	v.text(&r.ID)
	v.text(&r.Session)
	v.number(&r.Sequence)
	v.flag(&r.Open)
	v.bytes(&r.Value)
	v.number(&r.Offset)
}

func (r *RunRow) visit(v *fieldVisitor) {
	v.text(&r.ID)
	v.text(&r.Session)
	v.text(&r.Root)
	v.number(&r.First)
	v.number(&r.Last)
	v.text(&r.State)
	v.bytes(&r.Value)
}

func (r *WorkflowRow) visit(v *fieldVisitor) {
	v.text(&r.ID)
	v.text(&r.Session)
	v.number(&r.First)
	v.number(&r.Last)
	v.text(&r.State)
	v.bytes(&r.Value)
}

func (r *OpenWorkRow) visit(v *fieldVisitor) {
	v.text(&r.Session)
	v.bytes(&r.Value)
}

func (r *TimerRow) visit(v *fieldVisitor) {
	v.text(&r.Session)
	v.text(&r.ID)
	v.time(&r.Due)
	v.flag(&r.Carried)
	v.bytes(&r.Value)
}

func (r *CommandRow) visit(v *fieldVisitor) {
	v.text(&r.Session)
	v.text(&r.Space)
	v.text(&r.ID)
	v.bytes(&r.Hash)
	v.bytes(&r.Value)
}

func (r *AliasRow) visit(v *fieldVisitor) {
	v.text(&r.Space)
	v.text(&r.Alias)
	v.text(&r.Session)
	v.text(&r.ID)
}

func (r *LeaseRow) visit(v *fieldVisitor) {
	v.text(&r.Executor)
	v.bytes(&r.Value)
}

func (r *TokenRow) visit(v *fieldVisitor) {
	v.text(&r.Executor)
	v.text(&r.ID)
	v.text(&r.Session)
	v.bytes(&r.Value)
}

func (r *AgentRow) visit(v *fieldVisitor) {
	v.text(&r.ID)
	v.text(&r.Session)
	v.bytes(&r.Value)
}

func (r *MaterialRow) visit(v *fieldVisitor) {
	v.text(&r.Session)
	v.text(&r.Space)
	v.text(&r.ID)
	v.text(&r.Digest)
	v.bytes(&r.Value)
}

func (r *DecisionRow) visit(v *fieldVisitor) {
	v.text(&r.Of)
	v.text(&r.ID)
	v.text(&r.Session)
	v.text(&r.Decision)
	v.bytes(&r.Value)
}

// done says that reading has come to its end: by an error, or because an older
// program wrote fewer fields.
func (v *fieldVisitor) done() bool { return v.err != nil || len(v.buf) == 0 }

func (v *fieldVisitor) number(n *uint64) {
	if v.sizing {
		v.size += max(1, (bits.Len64(*n)+6)/7) // of a uvarint
		return
	}
	if !v.reading {
		v.buf = binary.AppendUvarint(v.buf, *n)
		return
	}
	if v.done() {
		return
	}
	value, size := binary.Uvarint(v.buf)
	if size <= 0 {
		v.err = errShort
		return
	}
	*n, v.buf = value, v.buf[size:]
}

func (v *fieldVisitor) flag(b *bool) {
	var n uint64
	if *b {
		n = 1
	}
	v.number(&n)
	*b = n != 0
}

func (v *fieldVisitor) time(t *time.Time) {
	n := uint64(t.UnixMicro())
	v.number(&n)
	*t = time.UnixMicro(int64(n)).UTC()
}

func (v *fieldVisitor) bytes(b *[]byte) {
	n := uint64(len(*b))
	v.number(&n)
	switch {
	case v.sizing:
		v.size += len(*b)
		return
	case !v.reading:
		v.buf = append(v.buf, *b...)
		return
	}
	if v.err != nil || n == 0 {
		return
	}
	if n > uint64(len(v.buf)) {
		v.err = errShort
		return
	}
	*b, v.buf = bytes.Clone(v.buf[:n]), v.buf[n:]
}

func (v *fieldVisitor) text(s *string) {
	if v.sizing {
		n := uint64(len(*s))
		v.number(&n)
		v.size += len(*s)
		return
	}
	b := []byte(*s)
	v.bytes(&b)
	if v.reading {
		*s = string(b)
	}
}
