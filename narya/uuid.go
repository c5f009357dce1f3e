package narya

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// namespace is that of Mahati's UUIDs in Narya (R5). Ids that clients have stored are made
// with it, so it never changes.
var namespace = [16]byte{0x5d, 0x0b, 0x6a, 0x54, 0x3c, 0x7e, 0x4f, 0x21, 0x9a, 0x86, 0x4e, 0x71, 0xc2, 0x90, 0xd8, 0x13}

// Kind says what a UUID names.
type Kind string

// The kinds.
const (
	KindSession   Kind = "session"
	KindRun       Kind = "run"       // a turn
	KindInterrupt Kind = "interrupt" // a permission or a question
	KindWorkflow  Kind = "workflow"  // a workflow's run
	KindAsk       Kind = "ask"       // of the intercom
	KindLane      Kind = "lane"      // of a run
	KindMainLane  Kind = "main lane" // of a session
	KindMember    Kind = "member"    // of a pack
)

// UUID returns an id as Narya shows it (R5): one that is a lower-case UUID as it is, any
// other as the UUIDv5 of its kind and itself. The way back of the latter is the host's to
// keep.
func UUID(kind Kind, id string) string {
	if isUUID(id) && strings.ToLower(id) == id {
		return id
	}
	return v5(namespace, string(kind)+":"+id)
}

// LaneID returns the lane of a run that is one of its own (R41).
func LaneID(runID string) string { return v5(namespace, "lane:"+runID) }

// MainLaneID returns the main lane of a session.
func MainLaneID(sessionID string) string { return v5(namespace, "lane:main:"+sessionID) }

// MessageEntryID, CallEntryID and ResultEntryID return the transcript entries of a
// message, of a tool call and of its result.
//
// A message's id is unique in its session alone.
func MessageEntryID(sessionID, messageID string) string {
	return v5(namespace, "entry:message:"+sessionID+"/"+messageID)
}

// CallEntryID returns the entry of a tool call.
func CallEntryID(toolCallID string) string { return v5(namespace, "entry:call:"+toolCallID) }

// ResultEntryID returns the entry of a tool call's result.
func ResultEntryID(toolCallID string) string { return v5(namespace, "entry:result:"+toolCallID) }

// MemberPermissionID returns the permission that a member of a pack is (R12). Its request
// id is unique in its interrupt alone.
func MemberPermissionID(interruptID, requestID string) string {
	return v5(namespace, "member:"+interruptID+":"+requestID)
}

// ParseUUID returns a UUID in its canonical form, which is lower case; false for any other
// text.
func ParseUUID(text string) (uuid string, ok bool) {
	return strings.ToLower(text), isUUID(text)
}

// v5 makes a UUID of a name (RFC 9562 §5.5).
func v5(space [16]byte, name string) string {
	sum := sha1.Sum(append(space[:], name...))
	sum[6] = sum[6]&0x0f | 0x50
	sum[8] = sum[8]&0x3f | 0x80
	text := hex.EncodeToString(sum[:16])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

// isUUID reports whether a text has the form of a UUID, in any case and of any version.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return false
		}
	}
	return true
}
