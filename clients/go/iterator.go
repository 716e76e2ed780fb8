package constancia

// Iterator gives the items of a list one by one, and fetches more while they are used:
//
//	for list.Next() {
//		fmt.Println(list.Value())
//	}
//	if err := list.Err(); err != nil { … }
//
// It is for one goroutine.
type Iterator[T any] struct {
	fetch   func() ([]T, bool, error) // more items, and whether there are others after them
	items   []T
	at      int
	hasMore bool
	err     error
}

func newIterator[T any](fetch func() ([]T, bool, error)) *Iterator[T] {
	return &Iterator[T]{fetch: fetch, at: -1, hasMore: true}
}

// Next goes to the next item, the first one at the beginning. It returns false at the end, and after an error.
func (i *Iterator[T]) Next() bool {
	i.at++
	for i.at >= len(i.items) {
		if !i.hasMore || i.err != nil {
			return false
		}
		i.items, i.hasMore, i.err = i.fetch()
		i.at = 0
	}
	return true
}

// Value returns the item. Next must have returned true.
func (i *Iterator[T]) Value() T { return i.items[i.at] }

// Err returns what ended the list before its end, or nil.
func (i *Iterator[T]) Err() error { return i.err }

// All returns the items that are left, in memory.
func (i *Iterator[T]) All() ([]T, error) {
	var all []T
	for i.Next() {
		all = append(all, i.Value())
	}
	return all, i.err
}
