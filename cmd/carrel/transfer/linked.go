package transfer

import (
	"fmt"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// linked remembers the first name of every file that has more than one, by whatever identifies a file in the source.
type linked[K comparable] map[K]string

// seen returns the first path of a file that was seen before, or remembers this one.
func (l linked[K]) seen(key K, path string) (first string, err error) {
	if first, ok := l[key]; ok {
		return first, nil
	}
	if len(l) >= maxLinked {
		return "", fmt.Errorf("%q: over %d files with more than one name: %w", path, maxLinked, vfs.ErrTooBig)
	}
	l[key] = path
	return "", nil
}
