package casstore

import (
	"runtime"
	"testing"
	"weak"

	"github.com/carrelfs/carrel/casstore/writebuf"
)

// A file whose bytes are stored, and which stays in memory, keeps none of the layers that they were written in.
func TestFlushedBytesLeaveMemory(t *testing.T) {
	m := newMortal(t)
	ino := m.create("a")
	m.write(ino, 0, noise(1, 1<<20))
	m.w.mu.Lock()
	f := m.w.inodes[ino].file
	m.w.mu.Unlock()
	layer := func() weak.Pointer[writebuf.Layer] {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.freeze()
		return weak.Make(f.frozen[0].layer)
	}()
	m.must(m.w.Sync(bg))
	runtime.GC()
	if layer.Value() != nil {
		t.Error("the layer is still there")
	}
	runtime.KeepAlive(f)
	m.end()
}
