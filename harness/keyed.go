package harness

import "slices"

// keyed holds values by id, in the order in which the ids first came. The zero value is
// empty.
type keyed[T any] struct {
	byID map[string]*T
	ids  []string
}

func (k *keyed[T]) has(id string) bool { return k.byID[id] != nil }

// at returns the value of an id, which it makes where there is none.
func (k *keyed[T]) at(id string) *T {
	if value := k.byID[id]; value != nil {
		return value
	}
	if k.byID == nil {
		k.byID = map[string]*T{}
	}
	value := new(T)
	k.byID[id] = value
	k.ids = append(k.ids, id)
	return value
}

// sorted returns the ids by their bytes.
func (k *keyed[T]) sorted() []string { return slices.Sorted(slices.Values(k.ids)) }
