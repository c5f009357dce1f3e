package client

import (
	"fmt"
	"iter"
)

// A DamagedEntry names an entry of a list whose stored data is damaged on the host. The
// host may have made the entry anew from other data, and then lists it too; its operator
// learns more from mahati verify. Where the host cannot tell, SessionID is empty.
type DamagedEntry struct {
	SessionID string `json:"sessionId"`
	// One of these names the entry in a list of them.
	InterruptID  string `json:"interruptId"`
	AttachmentID string `json:"attachmentId"`
	ArtifactID   string `json:"artifactId"`
}

// A DamageError is the last turn of a list that is whole but for entries whose stored data
// is damaged on the host: the first 1,000 of them.
type DamageError struct{ Entries []DamagedEntry }

func (e *DamageError) Error() string {
	return fmt.Sprintf("stored data of %d entries of the list is damaged on the host", len(e.Entries))
}

// listPage is one page of any list.
type listPage[T any] struct {
	Items      []T            `json:"items"`
	NextCursor string         `json:"nextCursor"`
	Damaged    []DamagedEntry `json:"damaged"`
}

// maxDamaged bounds the entries that a DamageError names.
const maxDamaged = 1_000

// pages goes through the items of all pages. A cursor that comes again would go on for
// ever, so it is an error.
func pages[T any](cursor string, read func(cursor string) (listPage[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var damaged []DamagedEntry
		for {
			page, err := read(cursor)
			if err == nil && page.NextCursor == cursor && cursor != "" {
				err = invalidAnswer("list", "the cursor of the next page is that of this one")
			}
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			damaged = append(damaged, page.Damaged[:min(len(page.Damaged), maxDamaged-len(damaged))]...)
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if len(damaged) > 0 {
			yield(none, &DamageError{damaged})
		}
	}
}
