package pebble

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Every key begins with one letter. Numbers are big-endian, so that keys sort
// as the numbers do; texts hold no byte below 0x20, so a zero byte ends them.
// A session stands in keys as its sid, a number that is never given again.
//
//	m                            the store: its identity, which is also at A
//	n<session>                   sid of a session, or its tombstone
//	k<sid>                       the session of a sid
//	b<sid><sequence>             a batch, by its first sequence
//	o<offset>  v<event>          a commit group, by its first offset; that
//	                             offset, by the group's first event number
//	g<sid><kind><id>0<number>    a mark of a run, workflow or log (spans.go)
//	q<sid>                       which of them are current
//	l<sid>                       catalogue row
//	i<interrupt>                 interrupt; while open also P<offset><interrupt>
//	                             and p<sid><offset><interrupt>
//	R<run>  W<workflow>          run, workflow
//	x<sid>                       open work
//	u<sid><id>                   timer, also t<due><sid><id>
//	c<sid><hash of space, id>    command
//	a<space>0<alias>             alias
//	e<executor>  f<executor>0<id>   lease, token
//	y<id>                        owner record of an agent
//	h<sid><space>0<id>           attachment, artifact
//	d<session>0<id>              decision, in the list of a session or, of none, of all
//	s<sid><sequence>             control snapshot
//	z<sid>                       a deletion that is not complete
//
// The layout of DESIGN section 4 differs in three points: run and workflow
// marks stand under their session, so that a side session may use the same run
// id with sequences of its own; logs have marks like them; and "r/ w/" rows of
// single runs are index rows (R, W) which internal/index derives.
const (
	tagStore      = 'm'
	tagStoreAgain = 'A'
	tagSession    = 'n'
	tagSid        = 'k'
	tagBatch      = 'b'
	tagGroup      = 'o'
	tagEvent      = 'v'
	tagMark       = 'g'
	tagCurrent    = 'q'
	tagCatalogue  = 'l'
	tagInterrupt  = 'i'
	tagOpen       = 'P'
	tagOpenOf     = 'p'
	tagRun        = 'R'
	tagWorkflow   = 'W'
	tagOpenWork   = 'x'
	tagTimer      = 'u'
	tagDue        = 't'
	tagCommand    = 'c'
	tagAlias      = 'a'
	tagLease      = 'e'
	tagToken      = 'f'
	tagAgent      = 'y'
	tagMaterial   = 'h'
	tagDecision   = 'd'
	tagSnapshot   = 's'
	tagUnfinished = 'z'
)

// rowTags are the tags under which index rows themselves are stored.
var rowTags = map[journal.Kind]byte{
	journal.KindSession: tagCatalogue, journal.KindInterrupt: tagInterrupt, journal.KindRun: tagRun,
	journal.KindWorkflow: tagWorkflow, journal.KindOpenWork: tagOpenWork, journal.KindTimer: tagTimer,
	journal.KindCommand: tagCommand, journal.KindAlias: tagAlias, journal.KindLease: tagLease,
	journal.KindToken: tagToken, journal.KindAgent: tagAgent, journal.KindMaterial: tagMaterial,
	journal.KindDecision: tagDecision,
}

// keyOf starts a key of a tag and numbers.
func keyOf(tag byte, numbers ...uint64) []byte {
	key := make([]byte, 1, 1+8*len(numbers)+48)
	key[0] = tag
	for _, n := range numbers {
		key = binary.BigEndian.AppendUint64(key, n)
	}
	return key
}

func textKey(tag byte, text string) []byte { return append(keyOf(tag), text...) }

// tagsOfSid are the tags behind which a sid stands in keys.
var tagsOfSid = []byte{
	tagSid, tagBatch, tagMark, tagCurrent, tagCatalogue, tagOpenOf, tagOpenWork, tagTimer, tagCommand, tagMaterial, tagSnapshot,
}

func batchKey(sid, sequence uint64) []byte { return keyOf(tagBatch, sid, sequence) }

// batchEnd is behind every batch of a session, and before what begins a block that begins
// with the next one's. A seek to the next session's first batch would read that block, and
// fail with it.
func batchEnd(sid uint64) []byte { return batchKey(sid, lastNumber) }

// after is the first key behind every key with the prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// numberAt reads a number out of a key, 0 where the key is too short.
func numberAt(key []byte, at int) uint64 {
	if len(key) < at+8 {
		return 0
	}
	return binary.BigEndian.Uint64(key[at:])
}

// rowKey is where a row is stored; sid is that of the key's session, 0 for none.
func rowKey(key journal.Key, sid uint64) []byte {
	tag := rowTags[key.Kind]
	switch key.Kind {
	case journal.KindSession, journal.KindOpenWork:
		return keyOf(tag, sid)
	case journal.KindTimer:
		return append(keyOf(tag, sid), key.ID...)
	case journal.KindCommand:
		sum := sha256.Sum256([]byte(key.Space + "\x00" + key.ID))
		return append(keyOf(tag, sid), sum[:16]...)
	case journal.KindMaterial:
		return append(append(append(keyOf(tag, sid), key.Space...), 0), key.ID...)
	case journal.KindAlias, journal.KindToken, journal.KindDecision:
		return append(append(textKey(tag, key.Space), 0), key.ID...)
	default:
		return textKey(tag, key.ID)
	}
}

// sideKeys are the further keys of a row, with their values: those that lists
// are read from.
func sideKeys(row journal.Row, sid uint64) []entry {
	switch row := row.(type) {
	case journal.InterruptRow:
		if !row.Open {
			return nil
		}
		return []entry{
			{append(keyOf(tagOpen, row.Offset), row.ID...), nil},
			{append(keyOf(tagOpenOf, sid, row.Offset), row.ID...), nil},
		}
	case journal.TimerRow:
		return []entry{{dueKey(row.Due, sid, row.ID), nil}}
	default:
		return nil
	}
}

// entry is a key with its value.
type entry struct{ key, value []byte }

// dueKey sorts by due time, also before 1970.
func dueKey(due time.Time, sid uint64, id string) []byte {
	return append(keyOf(tagDue, dueNumber(due), sid), id...)
}

func dueNumber(due time.Time) uint64 { return uint64(due.UnixMicro()) ^ 1<<63 }

// dueTime is the time of a due number.
func dueTime(n uint64) time.Time { return time.UnixMicro(int64(n ^ 1<<63)).UTC() }
