package narad

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of one record. They are the public client's, measured as R7 says.
const (
	// MaxEventBytes bounds an event: its UTF-8 length without insignificant white
	// space, a number with an exponent counted as at least 25 bytes.
	MaxEventBytes = 512_000
	// MaxFrameBytes bounds the input that Decode looks at, white space included.
	MaxFrameBytes = 1 << 20
	// MaxDepth bounds nesting: the record is depth 0 and each value inside, scalars
	// too, is one deeper than what holds it.
	MaxDepth = 64
	// MaxInteger bounds sequences and revisions: above it a JavaScript client would
	// silently see another number.
	MaxInteger = 1<<53 - 1
)

// Code says what kind of refusal an [Error] is. The set is closed.
type Code string

// The codes of this package.
const (
	CodeInvalidJSON    Code = "invalid_json"         // not one JSON value, or not strictly one
	CodeTooLarge       Code = "event_too_large"      // above MaxEventBytes or MaxFrameBytes
	CodeTooDeep        Code = "json_depth_exceeded"  // above MaxDepth
	CodeUnknownRecord  Code = "unknown_record"       // not an object of any class
	CodeUnknownEvent   Code = "unknown_event"        // a type that narad/v1 lacks
	CodeUnsupported    Code = "unsupported_protocol" // protocolVersion is not narad/v1
	CodeInvalidRecord  Code = "invalid_record"       // a field is missing or has a wrong value
	CodeInvalidControl Code = "invalid_control"      // the same, in a control message
	CodeInvalidHydrate Code = "invalid_hydrate"      // the same, in a hydrate record
	CodeInvalidPatch   Code = "invalid_patch"        // not an applicable RFC 6902 patch
	CodeUnsafePatch    Code = "unsafe_patch_path"    // a patch path that some client must refuse
)

// Codes returns every code, in no particular order.
func Codes() []Code {
	return []Code{
		CodeInvalidJSON, CodeTooLarge, CodeTooDeep, CodeUnknownRecord, CodeUnknownEvent, CodeUnsupported,
		CodeInvalidRecord, CodeInvalidControl, CodeInvalidHydrate, CodeInvalidPatch, CodeUnsafePatch,
	}
}

// Error is the refusal of one record. Its text holds no value of the record, so
// it may be shown to anybody.
type Error struct {
	// Code is the kind of refusal.
	Code Code
	// Path is the JSON Pointer of the field at fault, "" for the record itself.
	Path string
	// Rule says what was demanded, as a phrase.
	Rule string
}

// Error returns code, path and rule in one line.
func (e *Error) Error() string {
	if e.Path == "" {
		return string(e.Code) + ": " + e.Rule
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Path, e.Rule)
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer makes the JSON Pointer of a name inside parent.
func pointer(parent, name string) string { return parent + "/" + escaper.Replace(name) }

// item makes the JSON Pointer of an element of the array of that name.
func item(parent, name string, i int) string { return pointer(parent, name) + "/" + strconv.Itoa(i) }
