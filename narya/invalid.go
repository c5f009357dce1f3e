package narya

import "strings"

// Limits of one event.
const (
	// MaxEventBytes bounds an event as it is read and written.
	MaxEventBytes = 1 << 20
	// MaxDepth bounds nesting: the event is depth 1 and each object or array inside is one
	// deeper.
	MaxDepth = 96
)

// InvalidCode says what kind of refusal an [Invalid] is. The set is closed.
type InvalidCode string

// The codes.
const (
	NotJSON      InvalidCode = "not_json"      // not one JSON value in UTF-8 with distinct names
	TooLarge     InvalidCode = "too_large"     // above MaxEventBytes
	TooDeep      InvalidCode = "too_deep"      // above MaxDepth
	UnknownType  InvalidCode = "unknown_type"  // a type that v1 lacks
	InvalidField InvalidCode = "invalid_field" // a field is missing or has a wrong value
)

// Invalid is the refusal of one event. Its text holds no value of the event, so it may be
// shown to anybody.
type Invalid struct {
	// Code is the kind of refusal.
	Code InvalidCode
	// Field is the JSON Pointer of the field at fault, "" for the event itself.
	Field string
	// Rule says what was demanded, as a phrase.
	Rule string
}

// Error returns code, field and rule in one line.
func (e *Invalid) Error() string {
	if e.Field == "" {
		return string(e.Code) + ": " + e.Rule
	}
	return string(e.Code) + ": " + e.Field + ": " + e.Rule
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer makes the JSON Pointer of a name inside parent.
func pointer(parent, name string) string { return parent + "/" + escaper.Replace(name) }
