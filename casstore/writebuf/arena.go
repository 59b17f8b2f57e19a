package writebuf

import (
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena has slabs of maxSlab bytes, outside of Go's heap. Large writes come in bursts, between which the runtime gives
// its free memory back to the system, so each burst began with a page fault for every 4 KiB: in a virtual machine that
// took 24 to 41 ms for 64 MiB, as long as everything else about the write. Here memory is in huge pages (4 ms), it is
// used again at once, and the collector has nothing to do with it.
//
//	region    |uuuuufuucffuuuc|............................|    u in use  f free  c free, without memory  . never used
//	                          ^ high
//
// What was not used since the timer ran last loses its memory, so that a burst does not keep it while other work goes on.
//
// A slab has one owner, an extent. Who takes an extent out of a layer gives its slab back, when nobody else can be
// reading it; see Layer.free. When there are no more slabs, the heap serves.
type arena struct {
	mu     sync.Mutex
	region []byte // reserved address space, aligned to maxSlab; nil until the first take
	failed bool   // it cannot be had
	high   int    // bytes of region that have been used
	free   []int  // offsets in region, the last one given back at the end
	cold   []int  // those whose memory the system has
	spare  int    // the fewest that were free since trim last ran
	idle   *time.Timer
	told   int       // the bytes that changed was called with last
	change func(int) // see OnSlabs
}

// slabs is shared by all pools, like the heap that it stands beside.
var slabs arena

// OnSlabs sets the function that is called with how many bytes the slabs of large writes have beside Go's heap, when that
// has changed by slabStep or more, and when they have none any more: whoever bounds the memory of the process can leave to
// the heap what they do not need. It is called with a lock held, so it must neither block nor use a buffer.
func OnSlabs(f func(bytes int)) {
	slabs.mu.Lock()
	defer slabs.mu.Unlock()
	slabs.change, slabs.told = f, 0
	slabs.tellLocked()
}

// take returns a slab of length 0 and capacity maxSlab, or nil.
func (a *arena) take() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	var off int
	switch {
	case len(a.free) > 0:
		off = pop(&a.free)
		a.spare = min(a.spare, len(a.free))
	case len(a.cold) > 0:
		off = pop(&a.cold)
		a.tellLocked()
	case a.high < len(a.region) || a.reserveLocked():
		off = a.high
		if a.high += maxSlab; off == 0 {
			a.idle.Reset(arenaIdle)
		}
		a.tellLocked()
	default:
		return nil
	}
	return a.region[off : off : off+maxSlab]
}

// pop takes the last one of a list that has one.
func pop(list *[]int) int {
	n := len(*list) - 1
	last := (*list)[n]
	*list = (*list)[:n]
	return last
}

// bytes is how much memory the slabs have.
func (a *arena) bytes() int { return a.high - len(a.cold)*maxSlab }

func (a *arena) tellLocked() {
	now := a.bytes()
	if moved := max(now-a.told, a.told-now); a.change != nil && (moved >= slabStep || moved > 0 && now == 0) {
		a.told = now
		a.change(now)
	}
}

// reserveLocked maps the region, the first time, and reports whether it did.
func (a *arena) reserveLocked() bool {
	if a.region != nil || a.failed {
		return false
	}
	mapped, err := unix.Mmap(-1, 0, arenaSize+hugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		a.failed = true
		return false
	}
	skip := -int(address(mapped)) & (hugePage - 1)
	a.region = mapped[skip : skip+arenaSize]
	_ = unix.Madvise(a.region, unix.MADV_HUGEPAGE) // without it everything works, slower
	a.idle = time.AfterFunc(arenaIdle, a.trim)
	return true
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// give takes back the slab that data lies in. It does nothing for data from the heap.
func (a *arena) give(data []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	off := address(data) - address(a.region)
	if off >= uintptr(len(a.region)) {
		return
	}
	a.free = append(a.free, int(off)&^(maxSlab-1))
}

// trim gives the memory of slabs that were free all the time since it last ran back to the system. It runs by itself as
// long as there is any.
func (a *arena) trim() {
	a.mu.Lock()
	defer a.mu.Unlock()
	unused := a.free[:a.spare]
	for _, off := range unused {
		_ = unix.Madvise(a.region[off:off+maxSlab], unix.MADV_DONTNEED)
	}
	a.cold = append(a.cold, unused...)
	a.free = slices.Delete(a.free, 0, a.spare)
	a.spare = len(a.free)
	if a.bytes() == 0 {
		a.cold, a.high = a.cold[:0], 0 // it fills from the front again, where two slabs are a huge page
	} else {
		a.idle.Reset(arenaIdle)
	}
	a.tellLocked()
}

// giveLater gives the slabs of a layer back when nobody has the layer any more.
func (a *arena) giveLater(l *Layer) {
	var large [][]byte
	l.each(func(e *extent) {
		if e.held == maxSlab {
			large = append(large, e.data[:1])
		}
	})
	if len(large) > 0 {
		runtime.AddCleanup(l, func(large [][]byte) {
			for _, data := range large {
				a.give(data)
			}
		}, large)
	}
}
