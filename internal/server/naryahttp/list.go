package naryahttp

import "net/http"

// page is the place in a list that a request asks for. Its scope names the list and its
// filters: a cursor of another one is none.
type page struct {
	// Limit is how many items it has at most, Cursor what the list itself calls the place, ""
	// for its beginning.
	Limit  int
	Cursor string
	seal   func(place string) string
}

// page reads the place in a list.
func (b *Binding) page(r *request, scope ...string) (page, error) {
	limit, err := r.limit()
	if err != nil {
		return page{}, err
	}
	cursor, err := b.host.Unseal(r.query.Get("cursor"), scope...)
	if err != nil {
		return page{}, malformed("cursor was not given by this list with these filters")
	}
	return page{limit, cursor, func(place string) string { return b.host.Seal(place, scope...) }}, nil
}

// weigh is how many bytes of an answer an item takes.
func weigh(item any) int {
	data, _ := encode(item) // what cannot be encoded fails as the page is written
	return len(data)
}

// listed is a page of a list.
type listed[T any] struct {
	Items      []T    `json:"items"`
	Limit      int    `json:"limit"`
	NextCursor string `json:"nextCursor,omitzero"`
}

// writeList answers with a page; next is what the list itself calls the place behind it, ""
// where nothing is.
func writeList[T any](w http.ResponseWriter, at page, items []T, next string) error {
	if items == nil {
		items = []T{}
	}
	return write(w, http.StatusOK, listed[T]{items, at.Limit, at.seal(next)})
}
