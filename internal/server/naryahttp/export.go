package naryahttp

import (
	"net/http"
)

// exportSession answers with a session and the entries of its transcript, one a line.
func (b *Binding) exportSession(w http.ResponseWriter, r *request) error {
	return malformed("")
}
