package harness

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// AppendLine appends the record as one line without its end: the fields in the contract's
// order, empty optional ones left out. The bytes of the payload are kept, but for line
// breaks between its tokens. A record that no consumer would take is refused.
func (e Event) AppendLine(to []byte) ([]byte, error) {
	if err := e.validate(); err != nil {
		return to, err
	}
	payload, err := e.onOneLine()
	if err != nil {
		return to, err
	}
	line := append(to, `{"version":`...)
	line = quote(line, e.Version)
	line = quote(append(line, `,"run_id":`...), e.RunID)
	line = strconv.AppendUint(append(line, `,"sequence":`...), e.Sequence, 10)
	line = quote(append(line, `,"event_id":`...), e.EventID)
	if e.CorrelationID != "" {
		line = quote(append(line, `,"correlation_id":`...), e.CorrelationID)
	}
	if e.CausationID != "" {
		line = quote(append(line, `,"causation_id":`...), e.CausationID)
	}
	line = quote(append(line, `,"type":`...), string(e.Type))
	if e.Sensitivity != "" {
		line = quote(append(line, `,"sensitivity":`...), string(e.Sensitivity))
	}
	if payload != nil {
		line = append(append(line, `,"payload":`...), payload...)
	}
	line = append(line, '}')
	if len(line)-len(to) > MaxLineBytes {
		return to, (&Error{Code: CodeLength, Rule: lengthRule}).of(&e)
	}
	return line, nil
}

// Encode returns the record as one line without its end. See [Event.AppendLine].
func Encode(e Event) ([]byte, error) { return e.AppendLine(nil) }

// onOneLine returns the payload's bytes, fit to stand inside a line.
func (e *Event) onOneLine() (narad.Raw, error) {
	if e.Payload == nil {
		return nil, nil
	}
	if !json.Valid(e.Payload) {
		return nil, (&Error{Code: CodeSyntax, Field: "payload", Rule: "a payload is one JSON value"}).of(e)
	}
	if !utf8.Valid(e.Payload) {
		return nil, (&Error{Code: CodeUTF8, Field: "payload", Rule: "a payload is UTF-8"}).of(e)
	}
	if !bytes.ContainsAny(e.Payload, "\n\r") {
		return bytes.Trim(e.Payload, " \t"), nil
	}
	var line bytes.Buffer
	err := json.Compact(&line, e.Payload)
	return line.Bytes(), err
}

// quote appends a JSON string. Bytes that are not UTF-8 become U+FFFD.
func quote(to []byte, text string) []byte {
	to, _ = jsontext.AppendQuote(to, text) // its error only reports the replacement
	return to
}
