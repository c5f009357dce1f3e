package journal

// VerifyOptions are the options of Verify. The zero value walks everything
// that needs no knowledge of facts.
type VerifyOptions struct {
	// Progress is called now and then, on the goroutine that called Verify.
	Progress func(VerifyProgress)
	// Derive gives, for one session, a function that is called with each of its
	// records in order and returns what follows from the record. Without it derived
	// rows are checked for form only.
	Derive func(session string) func(Record) (Derived, error)
	// MaxProblems bounds the problems listed, 1,000 when 0. All are counted.
	MaxProblems int
}

// Derived is what follows from a record and those before it.
type Derived struct {
	// Changes are those of derived rows.
	Changes []Change
	// Numbers are those that the record must have; nil does not say.
	Numbers *Numbers
}

// VerifyProgress is how far Verify has come.
type VerifyProgress struct {
	Sessions, Facts, Bytes uint64
}

// Report is what Verify found.
type Report struct {
	Format   uint32 `json:"format"`
	Epoch    string `json:"epoch"`
	Sessions uint64 `json:"sessions"`
	Deleted  uint64 `json:"deletedSessions"`
	Batches  uint64 `json:"batches"`
	Facts    uint64 `json:"facts"`
	Bytes    uint64 `json:"bytes"`
	Rows     uint64 `json:"rows"`
	// Contents counts what is kept beside the journal. A journal knows nothing of it: who
	// keeps it adds to the report.
	Contents uint64 `json:"contents"`
	// LastOffset and LastEvent are the highest numbers given.
	LastOffset uint64 `json:"lastOffset"`
	LastEvent  uint64 `json:"lastEvent"`
	// ProblemCount counts all problems, Problems lists the first of them.
	ProblemCount uint64    `json:"problemCount"`
	Problems     []Problem `json:"problems"`
}

// maxProblems is how many problems are listed where no other number is given.
const maxProblems = 1_000

// Add adds a problem that was found outside of the journal.
func (r *Report) Add(p Problem) {
	r.ProblemCount++
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, p)
	}
}

// OK says that nothing was found.
func (r Report) OK() bool { return r.ProblemCount == 0 }

// Problem is one thing that does not fit.
type Problem struct {
	// Code is one of the Problem constants.
	Code ProblemCode `json:"code"`
	// Session and Sequence say where, as far as that is known.
	Session  string `json:"session,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	// Row names the index row concerned.
	Row    string `json:"row,omitempty"`
	Detail string `json:"detail"`
}

// ProblemCode is the kind of a problem.
type ProblemCode string

// The kinds of problems.
const (
	// ProblemDamaged: stored bytes cannot be read or fail their checksum.
	ProblemDamaged ProblemCode = "damaged"
	// ProblemGap: a number that should follow another does not.
	ProblemGap ProblemCode = "gap"
	// ProblemChain: a batch does not carry the hash of the one before it.
	ProblemChain ProblemCode = "chain"
	// ProblemInterval: a run, workflow or log is not where its marks say.
	ProblemInterval ProblemCode = "interval"
	// ProblemOrder: the order of the whole store and the sessions disagree.
	ProblemOrder ProblemCode = "order"
	// ProblemDangling: an index entry points to nothing.
	ProblemDangling ProblemCode = "dangling"
	// ProblemRow: a row cannot be read, or stands under a wrong key.
	ProblemRow ProblemCode = "row"
	// ProblemDerived: a derived row is not what the facts say.
	ProblemDerived ProblemCode = "derived"
	// ProblemNumbers: a fact has not as many numbers in another contract as it should.
	ProblemNumbers ProblemCode = "numbers"
	// ProblemContent: bytes that a fact names are missing or damaged.
	ProblemContent ProblemCode = "content"
)
