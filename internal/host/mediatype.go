package host

import (
	"errors"
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultMediaType is that of bytes of which nothing is known.
const DefaultMediaType = "application/octet-stream"

var (
	errMaterialName = errors.New("a name is a file name of at most 255 bytes, without a path and control characters")
	errMediaType    = errors.New("a media type is type/subtype with parameters, of at most 255 bytes")
)

const maxMaterialName = 255

// CheckMaterialName holds the name of an attachment or artifact, which may be empty, to
// that of a file: it is offered as one.
func CheckMaterialName(name string) (string, error) {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) || r == '\u2028' || r == '\u2029'
	}
	if len(name) > maxMaterialName || name == "." || name == ".." || !utf8.ValidString(name) ||
		strings.ContainsAny(name, `/\`) || strings.ContainsFunc(name, hidden) {
		return "", errMaterialName
	}
	return name, nil
}

// CheckMediaType brings a media type into its one form.
func CheckMediaType(text string) (string, error) {
	if len(text) > maxMaterialName {
		return "", errMediaType
	}
	kind, parameters, err := mime.ParseMediaType(text)
	if err != nil || !strings.Contains(kind, "/") || strings.Contains(kind, "*") {
		return "", errMediaType
	}
	form := mime.FormatMediaType(kind, parameters)
	if form == "" || len(form) > maxMaterialName {
		return "", errMediaType
	}
	return form, nil
}
