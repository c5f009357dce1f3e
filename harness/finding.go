package harness

import "slices"

// Finding is what is wrong or remarkable about a log, though it could be read.
type Finding struct {
	// Note says that no rule of the page was broken: the log is sound, and yet worth a look.
	Note bool `json:"note,omitzero"`
	*Error
}

// maxFindings bounds what a reducer keeps of them.
const maxFindings = 32

// findings keeps the first of them and counts all.
type findings struct {
	first []Finding
	n     uint64
}

func (f *findings) note(what *Error, e *Event) {
	f.n++
	if len(f.first) < maxFindings {
		f.first = append(f.first, Finding{Note: true, Error: what.of(e)})
	}
}

// Findings returns the first 32 things worth a look in what was read, all of them notes,
// and the number of all. How a canceled log ends is among them.
func (r *Reducer) Findings() (first []Finding, all uint64) {
	f := findings{slices.Clone(r.findings.first), r.findings.n}
	if rule := r.ending(); rule != "" {
		f.note(&Error{Code: CodeTerminal, Rule: rule}, &Event{Sequence: r.order.last})
	}
	return f.first, f.n
}

// ending says what is remarkable about the end of a canceled log. Its terminal records are
// run.canceled and a checkpoint; the page names them in this order, the public fixture has
// the other, and both are taken.
func (r *Reducer) ending() string {
	switch {
	case !r.canceled || r.lastType == Checkpointed:
		return ""
	case r.beforeCancel == Checkpointed:
		return "the final checkpoint stands before run.canceled; the page has it after"
	}
	return "a canceled run ends with a checkpoint"
}
