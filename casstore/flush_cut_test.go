package casstore

import (
	"bytes"
	"testing"

	"github.com/carrelfs/carrel/casstore/vfs"
)

// Where a large file is cut depends on its bytes, and not on when parts of it were flushed.
func TestCutsOfFlushes(t *testing.T) {
	const size, part = 12 << 20, 3 << 19
	m := newMortal(t)
	want := noise(1, size)
	body := func(name string, step int) []byte {
		ino := m.create(name)
		for off := 0; off < size; off += step {
			m.write(ino, off, want[off:off+step])
			_, err := m.w.Commit(bg)
			m.must(err)
		}
		records, _, err := m.w.Authority().Get(bg, []vfs.Key{{Kind: vfs.KeyInode, Ino: ino}})
		m.must(err)
		rec, err := vfs.DecodeInode(records[0].Value)
		m.must(err)
		return rec.Body.Data
	}
	if !bytes.Equal(body("at once", size), body("in parts", part)) {
		t.Error("a file that was flushed in parts has other chunks than one that was flushed at once")
	}
	m.end()
}
