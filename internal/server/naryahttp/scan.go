package naryahttp

import (
	"bytes"
	"context"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// wants says which types of facts a scan looks at: all others are skipped without being
// read. A fact begins with its type.
type wants map[narad.Type]bool

var (
	wantsEntries = wants{
		narad.TypeMessageUserRecorded: true, narad.TypeMessageTextCompleted: true, narad.TypeToolCallStarted: true,
		narad.TypeToolCallFinished: true, narad.TypeSessionCustom: true, narad.TypeRunCustom: true,
	}
	wantsDeltas = wants{narad.TypeMessageTextDelta: true}
	wantsLanes  = wants{narad.TypeRunStarted: true, narad.TypeSessionCustom: true}
)

func (w wants) record(data []byte) bool {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	if !ok {
		return true // not as we write it: whoever decodes it sees
	}
	kind, _, _ := bytes.Cut(rest, []byte{'"'})
	if narad.Type(kind) == narad.TypeRunCustom && !bytes.Contains(data, anAnswer) {
		return false
	}
	return w[narad.Type(kind)]
}

// anAnswer is the name of the facts of runs that append entries: there are many others.
var anAnswer = []byte(`"` + facts.Intercom + `"`)

// scan visits the wanted facts of a session behind a sequence and up to another, in their
// order, until visit says that it has enough.
func scan(ctx context.Context, v *host.View, after, upTo uint64, w wants, visit func(uint64, narad.Authority) bool) error {
	for after < upTo {
		var broken error
		enough, before := false, after
		more, err := v.Scan(ctx, host.Cursor{After: after}, host.Page{Limit: int(min(upTo-after, 1000))}, func(r *host.Record) {
			if after = r.Sequence; enough || broken != nil || !w.record(r.Bytes) {
				return
			}
			rec, err := narad.Decode(r.Bytes)
			fact, ok := rec.(narad.Authority)
			if err != nil || !ok {
				broken = fmt.Errorf("read fact %d: %w", r.Sequence, host.ErrDamaged)
				return
			}
			enough = !visit(r.Sequence, fact)
		})
		switch {
		case err != nil:
			return err
		case broken != nil:
			return broken
		case enough, !more, after == before:
			return nil
		}
	}
	return nil
}
