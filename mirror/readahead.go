package mirror

import (
	"sync"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// readers remembers where files were read last, and how far they are read ahead. When it is full, any one is forgotten.
type readers struct {
	mu    sync.Mutex
	files map[vfs.Ino]*reading
}

type reading struct {
	next  uint64 // where a sequential reader goes on
	ahead uint64 // how far is read ahead
	asked uint64 // up to where
}

func newReaderSet() *readers { return &readers{files: make(map[vfs.Ino]*reading)} }

// after notes a read, and returns how many bytes behind it are to be fetched: none unless it goes on where one has ended,
// or begins the file.
func (rs *readers) after(ino vfs.Ino, off, n uint64) uint64 {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.files[ino]
	if r == nil {
		for other := range rs.files {
			if len(rs.files) < maxReaders {
				break
			}
			delete(rs.files, other)
		}
		r = new(reading)
		rs.files[ino] = r
	}
	if off != r.next {
		*r = reading{next: off + n}
		return 0
	}
	r.next = off + n
	if r.next+r.ahead/2 < r.asked {
		return 0 // half of what was asked for is still in front
	}
	r.ahead = min(max(2*r.ahead, readAheadFirst), readAheadMost)
	r.asked = r.next + r.ahead
	return r.ahead
}
